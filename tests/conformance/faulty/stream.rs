//! What each fault does to the messages of a stream.

use serde_json::{Value, json};

use super::{Fault, Request};

/// Spoils one stream.
pub(super) struct Stream {
    fault: Option<Fault>,
    cursor: Option<(String, u64)>,
    waits: bool,
    legacy: bool,
    /// Events since the last snapshot; none, if there was none.
    since_snapshot: Option<u64>,
    /// Kept back until the next message.
    held: Option<String>,
}

impl Stream {
    pub(super) fn new(fault: Option<Fault>, request: &Request) -> Stream {
        Stream {
            fault,
            cursor: request.cursor(),
            waits: request.text().contains("wait_ms"),
            legacy: request.line == "POST /chat/live" && !request.text().contains("protocol"),
            since_snapshot: None,
            held: None,
        }
    }

    pub(super) fn always_complete(&self) -> bool {
        self.fault == Some(Fault::CompletesWhatWasReplaced)
    }

    /// What is still said at the end.
    pub(super) fn last_words(&mut self) -> Vec<String> {
        let done = self.legacy && self.fault == Some(Fault::SaysDone);
        self.held.take().into_iter().chain(done.then(|| "data: [DONE]\n\n".to_owned())).collect()
    }

    /// What becomes of a message.
    pub(super) fn message(&mut self, message: &str) -> Vec<String> {
        let kind = ["STREAM_SNAPSHOT", "STREAM_EVENT", "STREAM_END"]
            .into_iter()
            .find(|kind| message.contains(&format!("data: {{\"type\":\"{kind}\"")));
        match kind {
            Some("STREAM_SNAPSHOT") => {
                self.since_snapshot = Some(0);
                self.snapshot(message)
            }
            Some("STREAM_EVENT") => {
                self.since_snapshot = self.since_snapshot.map(|count| count + 1);
                self.event(message)
            }
            Some(_) => self.end(message),
            None => self.notice(message),
        }
    }

    fn snapshot(&mut self, message: &str) -> Vec<String> {
        match (self.fault, &self.cursor) {
            (Some(Fault::SendsNoSnapshotForAnOldCursor), Some(_)) => Vec::new(),
            (Some(Fault::HonoursACursorOfAnotherRun), Some((run, after))) if !message.contains(run) => {
                let frame = data(message);
                let events = frame["events"].as_array().cloned().unwrap_or_default();
                let later = (1..).zip(events).filter(|(seq, _)| seq > after);
                later.map(|(seq, event)| event_frame(&frame["run_id"], seq, &event)).collect()
            }
            (Some(Fault::AttachesWaitersLate), None) if self.waits => Vec::new(),
            (Some(Fault::JoinsAcrossABoundary), _) => vec![rewritten(message, join_first_and_last)],
            (Some(Fault::ReplacesHalves), _) => vec![message.replace("\\ud83d\"", "\u{fffd}\"")],
            _ => vec![message.to_owned()],
        }
    }

    fn event(&mut self, message: &str) -> Vec<String> {
        let same = message.to_owned();
        match (self.fault, self.since_snapshot) {
            (Some(Fault::DropsAnEventAtTheHandoff), Some(1)) => Vec::new(),
            (Some(Fault::DoublesAnEventAtTheHandoff), Some(1)) => vec![same.clone(), same],
            (Some(Fault::CountsFromOneBehindASnapshot), Some(count)) => {
                vec![rewritten(message, |frame| frame["seq"] = json!(count))]
            }
            (Some(Fault::AttachesWaitersLate), Some(1)) if self.waits => {
                let Value::Object(mut frame) = data(message) else { return Vec::new() };
                let events = json!([frame.remove("event")]);
                let run = frame.remove("run_id").unwrap_or_default();
                vec![format!(
                    "data: {{\"type\":\"STREAM_SNAPSHOT\",\"run_id\":{run},\"seq\":1,\"events\":{events}}}\n\n"
                )]
            }
            (Some(Fault::HasASmallerWindow), None) if self.cursor.take().is_some() => Vec::new(),
            (Some(Fault::EndsAtRunFinished), _) if message.contains("\"RUN_FINISHED\"") => {
                let frame = data(message);
                let (run, seq) = (&frame["run_id"], &frame["seq"]);
                vec![
                    same,
                    format!(
                        "data: {{\"type\":\"STREAM_END\",\"run_id\":{run},\"seq\":{seq},\"persisted\":true,\"superseded\":false}}\n\n"
                    ),
                ]
            }
            (Some(Fault::RebuildsEvents), _) => vec![rewritten(message, |_| ())],
            (Some(Fault::WritesTwoDataLines), _) => {
                vec![message.replacen(",\"event\"", ",\ndata: \"event\"", 1)]
            }
            (Some(Fault::MiscountsIds), _) => {
                let seq = data(message)["seq"].as_u64().unwrap_or_default();
                vec![message.replacen(&format!(":{seq}\n"), &format!(":{}\n", seq - 1), 1)]
            }
            _ => vec![same],
        }
    }

    fn end(&self, message: &str) -> Vec<String> {
        let same = message.to_owned();
        match self.fault {
            Some(Fault::EndsTwice) => vec![same.clone(), same],
            Some(Fault::EndsWithoutAFrame) => Vec::new(),
            Some(Fault::SaysPersistedAlways) => {
                vec![same.replace("\"persisted\":false", "\"persisted\":true")]
            }
            Some(Fault::SaysSupersededNever) => {
                vec![same.replace("\"superseded\":true", "\"superseded\":false")]
            }
            _ => vec![same],
        }
    }

    /// A message of the event bus, or a bare event.
    fn notice(&mut self, message: &str) -> Vec<String> {
        if self.fault == Some(Fault::TellsTheNewRunFirst) && message.contains("\"stream_ended\"") {
            self.held = Some(message.to_owned());
            return Vec::new();
        }
        [Some(message.to_owned()), self.held.take()].into_iter().flatten().collect()
    }
}

/// Joins a snapshot's first event and its last, if both are deltas, whatever stands between them.
fn join_first_and_last(frame: &mut Value) {
    let Some(events) = frame["events"].as_array_mut() else { return };
    if let [first, .., last] = events.as_mut_slice()
        && first["type"] == last["type"]
        && let (Some(one), Some(other)) = (first["delta"].as_str(), last["delta"].as_str())
    {
        first["delta"] = json!(format!("{one}{other}"));
        events.pop();
    }
}

/// The data of a message; null, if it can't be read.
fn data(message: &str) -> Value {
    let data = message.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_default();
    serde_json::from_str(data).unwrap_or_default()
}

/// The message, read and written again, if it can be read.
fn rewritten(message: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut frame = data(message);
    if frame.is_null() {
        return message.to_owned();
    }
    change(&mut frame);
    format!("data: {frame}\n\n")
}

fn event_frame(run: &Value, seq: u64, event: &Value) -> String {
    format!("data: {{\"type\":\"STREAM_EVENT\",\"run_id\":{run},\"seq\":{seq},\"event\":{event}}}\n\n")
}
