//! The frames of protocol 1, typed. The AG-UI events in them stay as the server wrote them, byte for byte.
//!
//! This module reads one message at a time and knows nothing of order: whether a frame may be applied is for
//! [`super::follow`] to say.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::proto::id::{RunId, Seq};

/// One frame.
#[derive(Clone, Debug)]
pub enum Frame {
    /// STREAM_SNAPSHOT.
    Snapshot(Snapshot),
    /// STREAM_EVENT.
    Event(Event),
    /// STREAM_END.
    End(End),
}

/// All events of a run so far, deltas joined.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The run.
    pub run: RunId,
    /// Number of the last event in it.
    pub seq: Seq,
    /// AG-UI events, to be reduced from an empty state.
    pub events: Vec<Box<RawValue>>,
}

/// One event of a run.
#[derive(Clone, Debug)]
pub struct Event {
    /// The run.
    pub run: RunId,
    /// The event's number.
    pub seq: Seq,
    /// The AG-UI event.
    pub event: Box<RawValue>,
}

/// The end of a run, as the server told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The run.
    pub run: RunId,
    /// Number of its last event.
    pub seq: Seq,
    /// The turn is in the history.
    pub persisted: bool,
    /// A newer run took its place.
    pub superseded: bool,
}

/// A message that is no frame of protocol 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoFrame;

impl Frame {
    /// Reads the data of one message.
    pub fn read(data: &[u8]) -> Result<Frame, NoFrame> {
        let Wire { kind, run_id, seq, events, event, persisted, superseded } =
            serde_json::from_slice(data).map_err(|_| NoFrame)?;
        let (run, seq) = (RunId::parse(&run_id).ok_or(NoFrame)?, Seq(seq));
        match (&*kind, events, event, persisted, superseded) {
            ("STREAM_SNAPSHOT", Some(events), ..) => {
                let events = events.into_iter().map(RawValue::to_owned).collect();
                Ok(Frame::Snapshot(Snapshot { run, seq, events }))
            }
            ("STREAM_EVENT", _, Some(event), ..) => {
                Ok(Frame::Event(Event { run, seq, event: event.to_owned() }))
            }
            ("STREAM_END", .., Some(persisted), Some(superseded)) => {
                Ok(Frame::End(End { run, seq, persisted, superseded }))
            }
            _ => Err(NoFrame),
        }
    }
}

/// The members of all three, of which each has some.
#[derive(Deserialize, Serialize)]
struct Wire<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    run_id: Cow<'a, str>,
    seq: u64,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    events: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    event: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    persisted: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    superseded: Option<bool>,
}

impl<'a> Wire<'a> {
    fn new(kind: &'a str, run: &'a RunId, seq: Seq) -> Wire<'a> {
        let (kind, run_id) = (Cow::Borrowed(kind), Cow::Borrowed(run.as_str()));
        Wire { kind, run_id, seq: seq.0, events: None, event: None, persisted: None, superseded: None }
    }

    fn json(&self) -> String {
        // Serialising fails for maps without string keys and for failing writers; there is neither here.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Snapshot {
    /// The frame as one line of JSON.
    pub fn json(&self) -> String {
        let events = Some(self.events.iter().map(|event| &**event).collect());
        Wire { events, ..Wire::new("STREAM_SNAPSHOT", &self.run, self.seq) }.json()
    }
}

impl Event {
    /// The frame as one line of JSON.
    pub fn json(&self) -> String {
        Wire { event: Some(&self.event), ..Wire::new("STREAM_EVENT", &self.run, self.seq) }.json()
    }
}

impl End {
    /// The frame as one line of JSON.
    pub fn json(&self) -> String {
        let (persisted, superseded) = (Some(self.persisted), Some(self.superseded));
        Wire { persisted, superseded, ..Wire::new("STREAM_END", &self.run, self.seq) }.json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_through_byte_for_byte() {
        let run = RunId::from_bits(7);
        let event = r#"{"type" : "X", "n":1.0e2,"half":"\ud83d","x":1,"x":2}"#;
        for json in [
            format!(r#"{{"type":"STREAM_SNAPSHOT","run_id":"{run}","seq":0,"events":[]}}"#),
            format!(r#"{{"type":"STREAM_SNAPSHOT","run_id":"{run}","seq":9,"events":[{event},{event}]}}"#),
            format!(r#"{{"type":"STREAM_EVENT","run_id":"{run}","seq":3,"event":{event}}}"#),
            format!(
                r#"{{"type":"STREAM_END","run_id":"{run}","seq":3,"persisted":false,"superseded":true}}"#
            ),
        ] {
            let again = match Frame::read(json.as_bytes()).unwrap() {
                Frame::Snapshot(snapshot) => snapshot.json(),
                Frame::Event(event) => event.json(),
                Frame::End(end) => end.json(),
            };
            assert_eq!(again, json);
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let run = RunId::from_bits(7);
        for bad in [
            String::new(),
            "[DONE]".to_owned(),
            r#"{"type":"RUN_STARTED"}"#.to_owned(),
            r#"{"type":"STREAM_EVENT","run_id":"short","seq":1,"event":{}}"#.to_owned(),
            format!(r#"{{"type":"STREAM_EVENT","run_id":"{run}","seq":-1,"event":{{}}}}"#),
            format!(r#"{{"type":"STREAM_EVENT","run_id":"{run}","seq":1}}"#),
            format!(r#"{{"type":"STREAM_END","run_id":"{run}","seq":1,"persisted":true}}"#),
            format!(r#"{{"type":"STREAM_OTHER","run_id":"{run}","seq":1}}"#),
        ] {
            assert_eq!(Frame::read(bad.as_bytes()).err(), Some(NoFrame), "{bad}");
        }
    }
}
