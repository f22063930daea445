//! An observer: it follows the run of a chat with a cursor, and checks each frame against what it has.

use serde_json::{Value, json};

use crate::checker::Checker;
use crate::client::request;
use crate::reader::Response;
use crate::rng::Rng;

/// An observer: what it has, and how it asks.
#[derive(Debug)]
pub struct Observer {
    pub chat: String,
    /// Its first request asks the agent; it never does that again.
    sends: bool,
    /// It has asked the agent, and waits for its message to be saved.
    pub asked: bool,
    flavour: Flavour,
    old_http: bool,
    wait_ms: usize,
    /// The run it follows, and the events it has of it, compacted as it got them.
    pub run: Option<String>,
    pub seq: u64,
    pub events: Vec<Value>,
    /// A cursor that it makes up for its first request.
    invented: Option<(String, u64)>,
    /// Whether its first frame may be an event: it sent a cursor of a run.
    sent_cursor: Option<(String, u64)>,
    first: bool,
    ended: bool,
    pub done: bool,
    attempts: usize,
    /// Runs of the chat that were replaced, when it looked last: in the legacy format each of them cuts it off.
    replaced: usize,
    connected_ms: u64,
    /// Faults are over: it may not need to give up any more.
    calm: bool,
    pub gave_up: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavour {
    Post,
    Get,
    Legacy,
}

impl Observer {
    pub fn new(rng: &mut Rng, chat: String, known: &[(String, u64)]) -> Observer {
        let invented = match rng.below(5) {
            0 if !known.is_empty() => {
                let newest = if rng.chance(60) { 1 } else { known.len() };
                let (run, head) = rng.pick(&known[..newest]).clone();
                Some((run, rng.below(usize::try_from(head).unwrap() + 3) as u64))
            }
            1 => Some(("nonsense".to_owned(), 3)),
            _ => None,
        };
        Observer {
            chat,
            sends: false,
            asked: false,
            flavour: *rng.pick(&[Flavour::Post, Flavour::Post, Flavour::Get, Flavour::Legacy]),
            old_http: rng.chance(20),
            wait_ms: *rng.pick(&[0, 50, 5_000, 60_000]),
            run: None,
            seq: 0,
            events: Vec::new(),
            invented,
            sent_cursor: None,
            first: true,
            ended: false,
            done: false,
            attempts: 0,
            replaced: 0,
            connected_ms: 0,
            calm: false,
            gave_up: false,
        }
    }

    /// Faults are over: it tries again as if it had just come.
    pub fn calm(&mut self) {
        if !std::mem::replace(&mut self.calm, true) {
            self.attempts = 0;
        }
    }

    /// One who asks the agent and reads the answer on the same response.
    pub fn sending(rng: &mut Rng, chat: String) -> Observer {
        let flavour = *rng.pick(&[Flavour::Post, Flavour::Post, Flavour::Legacy]);
        Observer { sends: true, flavour, invented: None, wait_ms: 0, ..Observer::new(rng, chat, &[]) }
    }

    /// The run it follows, how far it is, and whether it has seen the end; `None` while nothing has come yet.
    pub fn position(&self) -> Option<(&str, u64, bool)> {
        if self.first || self.flavour == Flavour::Legacy {
            return None;
        }
        Some((self.run.as_deref()?, self.seq, self.ended))
    }

    pub fn next_request(&mut self, now_ms: u64) -> Option<Vec<u8>> {
        self.attempts += 1;
        if self.done || self.attempts > 12 {
            self.gave_up = self.calm && !self.done;
            self.done = true;
            return None;
        }
        if self.flavour == Flavour::Legacy {
            self.events.clear();
        }
        let own = self.run.clone().map(|run| (run, self.seq));
        let cursor = own.or_else(|| self.invented.take()).filter(|_| self.flavour != Flavour::Legacy);
        self.sent_cursor = cursor.clone();
        self.connected_ms = now_ms;
        (self.first, self.ended) = (true, false);
        let version = if self.old_http { "1.0" } else { "1.1" };
        let (chat, wait_ms) = (&self.chat, self.wait_ms);
        if self.flavour == Flavour::Get {
            let cursor = cursor.map_or(String::new(), |(run, seq)| format!("Last-Event-ID: {run}:{seq}\r\n"));
            let line = format!("GET /chat/live?chat_id={chat}&wait_ms={wait_ms} HTTP/{version}");
            return Some(format!("{line}\r\nHost: localhost\r\n{cursor}\r\n").into_bytes());
        }
        let mut body = json!({"chat_id": chat, "wait_ms": wait_ms});
        self.asked = std::mem::take(&mut self.sends);
        if self.asked {
            body["message"] = json!("hello");
            if self.flavour == Flavour::Post {
                body["protocol"] = json!(1);
            }
            return Some(request("POST /chat", version, "application/json", body.to_string().as_bytes()));
        }
        if self.flavour == Flavour::Post {
            body["protocol"] = json!(1);
            if let Some((run, seq)) = cursor {
                (body["run_id"], body["after_seq"]) = (json!(run), json!(seq));
            }
        }
        Some(request("POST /chat/live", version, "application/json", body.to_string().as_bytes()))
    }

    /// `torn`: a part of what comes now was taken by the connection before.
    pub fn messages(&mut self, response: &mut Response, torn: bool, checker: &mut Checker) {
        let replaced = checker.replaced(&self.chat);
        if std::mem::replace(&mut self.replaced, replaced) < replaced {
            self.attempts = 0;
        }
        while let Some(lines) = response.message() {
            let data: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("data: ")).collect();
            let id = lines.iter().find_map(|line| line.strip_prefix("id: "));
            match data.as_slice() {
                [] => checker.require(lines == [": keep-alive"], || format!("odd message {lines:?}")),
                [json] => match serde_json::from_str(json) {
                    Ok(value) => {
                        self.frame(&value, id, checker);
                        if !torn && value["type"] == "STREAM_EVENT" && response.chunked {
                            checker.in_window(&value);
                        }
                    }
                    Err(fault) => checker.fail(format!("no JSON: {fault}: {json}")),
                },
                _ => checker.fail(format!("a frame of several lines: {lines:?}")),
            }
        }
    }

    fn frame(&mut self, frame: &Value, id: Option<&str>, checker: &mut Checker) {
        if self.flavour == Flavour::Legacy {
            return self.events.push(frame.clone());
        }
        let run = frame["run_id"].as_str().unwrap_or("").to_owned();
        let seq = frame["seq"].as_u64().unwrap_or(u64::MAX);
        checker.require(!self.ended, || format!("a frame after the end: {frame}"));
        if let Some((sent, after)) = self.sent_cursor.clone()
            && self.first
            && self.run.is_none()
            && sent == run
            && let Some(events) = checker.prefix(&run, after)
        {
            // A made-up cursor that fits by now counts as what this client has.
            (self.run, self.seq, self.events) = (Some(sent), after, events);
        }
        let same_run = self.run.as_ref() == Some(&run);
        let kind = frame["type"].as_str().unwrap_or("");
        if self.flavour == Flavour::Get {
            let expected = if kind == "STREAM_END" { format!("{run}:end") } else { format!("{run}:{seq}") };
            checker.require(id == Some(expected.as_str()), || format!("id {id:?}, not {expected}"));
        }
        if self.first {
            checker.served(&run, self.connected_ms);
        }
        match kind {
            "STREAM_SNAPSHOT" => {
                let Value::Array(events) = &frame["events"] else {
                    return checker.fail("no events".to_owned());
                };
                if same_run && !self.first {
                    checker.require(seq >= self.seq, || format!("snapshot at {seq} after {}", self.seq));
                    checker.saw("a slow observer started again from a snapshot");
                }
                (self.run, self.seq, self.events) = (Some(run.clone()), seq, events.clone());
                checker.has(&run, seq, events.clone());
            }
            "STREAM_EVENT" => {
                let may = !self.first || self.sent_cursor.as_ref() == Some(&(run.clone(), self.seq));
                checker.require(may && same_run, || format!("first frame is {frame}"));
                checker.require(seq == self.seq + 1, || format!("event {seq} after {}", self.seq));
                if self.first {
                    checker.saw("an observer went on from its cursor");
                }
                self.seq = seq;
                self.events.push(frame["event"].clone());
            }
            "STREAM_END" => {
                self.ended = true;
                self.attempts = 0;
                checker.require(same_run, || format!("the end of another run: {frame}"));
                checker.require(seq == self.seq, || format!("end at {seq} after {}", self.seq));
                checker.has(&run, seq, self.events.clone());
                let flag = |name: &str| frame[name].as_bool().unwrap_or(false);
                if flag("superseded") {
                    checker.saw("an observer saw its run replaced");
                } else if !flag("persisted") {
                    checker.saw("an observer was told that the answer is not saved");
                }
                checker.ended(&run, seq, flag("persisted"), flag("superseded"));
            }
            _ => checker.fail(format!("unknown frame {frame}")),
        }
        self.first = false;
    }

    pub fn complete(&mut self, response: &Response, checker: &mut Checker) {
        match response.status {
            204 => {
                if let Some((run, _)) = self.sent_cursor.take() {
                    checker.not_served(&self.chat, &run);
                }
                self.done = true;
            }
            409 | 503 => self.done = true,
            200 if self.flavour == Flavour::Legacy => {
                self.done = true;
                // HTTP/1.0 can't tell an end from a cut but by a reset, which the world's reader does not show here.
                if response.chunked {
                    checker.legacy_complete(&self.chat, self.events.clone());
                    checker.saw("a legacy stream was complete");
                }
            }
            200 => {
                if response.chunked {
                    checker.require(self.ended, || "a complete body without STREAM_END".to_owned());
                }
                self.done = self.ended;
            }
            status => checker.fail(format!("an observer was answered with {status}: {}", response.json())),
        }
    }
}
