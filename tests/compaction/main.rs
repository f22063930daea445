//! Compaction: every rule as a named test, and AG-UI's own reducer and verifier as the judge of what none of them
//! foresaw.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../support/generate.rs"]
mod generate;
#[path = "../support/oracle.rs"]
mod oracle;

mod chunks;
mod growth;
mod judged;
mod rules;

use rejoin::proto::history::Trigger;
use rejoin::proto::id::{ChatId, Now, RunId};
use rejoin::proto::pool::BlockPool;
use rejoin::proto::run::Run;
use rejoin::wire::event::{self, PUNCTUATION};

/// A run that takes events as the engine gives them to it.
struct Gathered(Run<()>);

impl Gathered {
    fn new() -> Gathered {
        let chat = ChatId::parse("c").unwrap();
        Gathered(Run::new(RunId::from_bits(7), chat, Trigger::User, Now::default(), 16, &PUNCTUATION))
    }

    fn of(events: &[impl AsRef<str>]) -> Gathered {
        let mut gathered = Gathered::new();
        for event in events {
            gathered.add(event.as_ref());
        }
        gathered
    }

    fn add(&mut self, event: &str) {
        let mut scratch = Vec::new();
        let event = event::read(event.as_bytes(), &mut scratch).unwrap();
        self.0.note(event.line, &event.kind, &mut BlockPool::default());
    }

    /// The events of a snapshot, as a JSON array.
    fn snapshot(&self) -> Vec<u8> {
        let mut all = b"[".to_vec();
        all.extend(self.0.text.capture().to_vec());
        all.push(b']');
        all
    }
}

/// Compacts events, and holds the result to exactly these.
fn check(events: &[&str], compact: &[&str]) {
    let snapshot = Gathered::of(events).snapshot();
    assert_eq!(String::from_utf8(snapshot).unwrap(), format!("[{}]", compact.join(",")), "of {events:?}");
}

/// These events are not compacted at all.
fn unchanged(events: &[&str]) {
    check(events, events);
}

fn text(id: &str, delta: &str) -> String {
    format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"{id}","delta":"{delta}"}}"#)
}

fn reasoning(id: &str, delta: &str) -> String {
    format!(r#"{{"type":"REASONING_MESSAGE_CONTENT","messageId":"{id}","delta":"{delta}"}}"#)
}

fn args(id: &str, delta: &str) -> String {
    format!(r#"{{"type":"TOOL_CALL_ARGS","toolCallId":"{id}","delta":"{delta}"}}"#)
}

fn thinking(delta: &str) -> String {
    format!(r#"{{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"{delta}"}}"#)
}

/// Events as slices.
fn all(events: &[String]) -> Vec<&str> {
    events.iter().map(String::as_str).collect()
}
