//! What a producer means to say: the events of one run, in order.

use serde_json::{Value, json};

use crate::rng::Rng;

/// Texts that are hard to pass on: multi-byte, escapes of every kind, line ends, and what looks like a frame.
const PIECES: [&str; 10] =
    ["a", "word ", "é", "日本", "👩‍👩‍👧", "\n\ndata: x", "\"", "\\", "\u{2028}", "\u{1}\r\n"];

/// The events of a run, some of them interleaved, most of them complete.
pub fn events(rng: &mut Rng, delta_bytes: usize) -> Vec<Value> {
    let mut events = vec![json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})];
    for part in 0..rng.below(5) {
        match rng.below(4) {
            0 => events
                .push(json!({"type": "CUSTOM", "name": "n", "value": {"deep": [1, {"x": text(rng, 9)}]}})),
            1 => calls(rng, part, delta_bytes, &mut events),
            2 => message(rng, "TEXT_MESSAGE", &format!("m{part}"), delta_bytes, &mut events),
            _ => message(rng, "REASONING_MESSAGE", &format!("r{part}"), delta_bytes, &mut events),
        }
    }
    if rng.chance(80) {
        events.push(json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}));
    }
    events
}

fn message(rng: &mut Rng, kind: &str, id: &str, delta_bytes: usize, events: &mut Vec<Value>) {
    events.push(json!({"type": format!("{kind}_START"), "messageId": id, "role": "assistant"}));
    for _ in 0..rng.below(12) {
        let mut delta =
            json!({"type": format!("{kind}_CONTENT"), "messageId": id, "delta": text(rng, delta_bytes)});
        if rng.chance(20) {
            delta["timestamp"] = json!(rng.below(1_000));
        }
        if rng.chance(5) {
            delta["other"] = json!(rng.below(2));
        }
        events.push(delta);
        if rng.chance(5) {
            events.push(json!({"type": "STATE_DELTA", "delta": []}));
        }
    }
    if rng.chance(90) {
        events.push(json!({"type": format!("{kind}_END"), "messageId": id}));
    }
}

/// Parallel tool calls, their arguments interleaved.
fn calls(rng: &mut Rng, part: usize, delta_bytes: usize, events: &mut Vec<Value>) {
    let ids: Vec<String> = (0..=rng.below(3)).map(|call| format!("c{part}-{call}")).collect();
    for id in &ids {
        events.push(json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "f"}));
    }
    for _ in 0..rng.below(15) {
        let id = rng.pick(&ids).clone();
        events.push(json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": text(rng, delta_bytes)}));
    }
    for id in &ids {
        events.push(json!({"type": "TOOL_CALL_END", "toolCallId": id}));
    }
}

fn text(rng: &mut Rng, most: usize) -> String {
    let bytes = rng.below(most + 1);
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(PIECES[rng.below(PIECES.len())]);
    }
    text
}
