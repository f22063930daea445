//! Faults: what a broken agent sends. Every event stays a JSON object with a string `type`; the order of events, and
//! the members of deltas, do not hold.

use super::rng::Rng;

const MALFORMED: [&str; 14] = [
    r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1"}"#,
    r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":5}"#,
    r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":null}"#,
    r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"a","delta":"b"}"#,
    r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m0","messageId":"m1","delta":"a"}"#,
    r#"{"type":"CUSTOM","type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"a"}"#,
    r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":7,"delta":"a"}"#,
    r#"{"type":"TEXT_MESSAGE_CONTENT","delta":"a"}"#,
    r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"a","metadata":[1]}"#,
    r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"a","metadata":null}"#,
    r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"a","timestamp":"soon"}"#,
    r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"of nothing"}"#,
    r#"{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"of nothing"}"#,
    r#"{"type":"TOOL_CALL_ARGS","toolCallId":"nobody","delta":"{}"}"#,
];

/// A message that is over early: what comes for it later is out of order, but the reducer takes it all the same.
const OVER: [&str; 2] =
    [r#"{"type":"TEXT_MESSAGE_START","messageId":"m1"}"#, r#"{"type":"TEXT_MESSAGE_END","messageId":"m1"}"#];

/// Breaks a sequence in a few places.
pub(super) fn inject(rng: &mut Rng, events: &mut Vec<String>) {
    events.splice(1..1, OVER.map(str::to_owned));
    for _ in 0..=rng.below(6) {
        let at = rng.below(events.len());
        match rng.below(6) {
            0 if events.len() > 1 => drop(events.remove(at)),
            1 => events.insert(at, events[at].clone()),
            2 => {
                let other = rng.below(events.len());
                events.swap(at, other);
            }
            3 => {
                let event = (*rng.pick(&MALFORMED)).to_owned();
                for _ in 0..=rng.below(3) {
                    events.insert(at, event.clone());
                }
            }
            4 => {
                let orphan = r#"{"type":"REASONING_MESSAGE_CONTENT","messageId":"nobody","delta":"lost "}"#;
                for _ in 0..=rng.below(4) {
                    events.insert(at, orphan.to_owned());
                }
            }
            _ => events.push((*rng.pick(&MALFORMED)).to_owned()),
        }
    }
}
