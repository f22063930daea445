//! A subscriber of the event bus like any other: it comes when it likes, reads slowly, is cut. What it gets has no gap.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::checker::Checker;
use crate::rng::Rng;

/// One subscription.
#[derive(Debug)]
pub struct Listener {
    chunks: bool,
    old_http: bool,
    asked: bool,
    /// Whether the first message, which says what goes on, has come.
    begun: bool,
    /// Runs that go on, with the seq of the last event of each, if one came.
    runs: BTreeMap<String, Option<u64>>,
}

impl Listener {
    pub fn new(rng: &mut Rng) -> Listener {
        Listener {
            chunks: rng.chance(70),
            old_http: rng.chance(30),
            asked: false,
            begun: false,
            runs: BTreeMap::new(),
        }
    }

    /// Its one request: who was cut does not come again.
    pub fn request(&mut self) -> Option<Vec<u8>> {
        if std::mem::replace(&mut self.asked, true) {
            return None;
        }
        let (chunks, version) = (u8::from(self.chunks), u8::from(!self.old_http));
        format!("GET /events/stream?chunks={chunks} HTTP/1.{version}\r\nHost: localhost\r\n\r\n")
            .into_bytes()
            .into()
    }

    /// A message of the bus.
    pub fn message(&mut self, message: &Value, checker: &mut Checker) {
        let run = message["run_id"].as_str().unwrap_or("").to_owned();
        let first = !std::mem::replace(&mut self.begun, true);
        let kind = message["event"].as_str().unwrap_or("");
        checker.require(first == (kind == "snapshot"), || format!("a listener's first message: {message}"));
        match kind {
            "snapshot" => {
                let streams = message["streams"].as_array().map_or(&[][..], Vec::as_slice);
                let open = streams.iter().filter_map(|stream| stream["run_id"].as_str());
                self.runs = open.map(|run| (run.to_owned(), None)).collect();
            }
            "stream_started" => {
                // It says so again when a turn that waited has a thread.
                self.runs.entry(run).or_insert(Some(0));
            }
            "chunk" => self.chunk(&run, message, checker),
            "stream_ended" => {
                let known = self.runs.remove(&run);
                checker
                    .require(known.is_some(), || format!("a listener is told of the end of unknown {run}"));
                if let Some(Some(seq)) = known
                    && self.chunks
                {
                    checker.heard_all(&run, seq);
                }
            }
            _ => checker.fail(format!("odd message for a listener: {message}")),
        }
    }

    fn chunk(&mut self, run: &str, message: &Value, checker: &mut Checker) {
        checker.require(self.chunks, || "chunks for a listener that wants none".to_owned());
        let seq = message["seq"].as_u64().unwrap_or(0);
        let Some(last) = self.runs.get_mut(run) else {
            return checker.fail(format!("a listener hears of unknown {run}"));
        };
        let follows = last.is_none_or(|last| seq == last + 1);
        checker.require(follows, || format!("a listener hears {seq} of {run} after {last:?}"));
        *last = Some(seq);
        checker.heard(run, seq, message["data"].clone());
    }
}
