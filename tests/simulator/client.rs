//! The clients: what each sends, and what it makes of the answers. They are the checker's eyes: what a client can see
//! that is not as the protocol says is a violation.

use serde_json::{Value, json};

use crate::checker::Checker;
use crate::plan;
use crate::reader::{Reader, Response};
use crate::rng::Rng;
use crate::swarm::Swarm;

/// A client, with or without a connection.
#[derive(Debug)]
pub enum Client {
    /// Sees everything: the bus with chunks, never slow, never cut.
    Tap,
    Producer(Producer),
    Observer(Observer),
    /// One request whose answer only has to be well-formed.
    Once(String),
    /// Wants something of the agent; never sends it twice.
    Sender(Vec<u8>),
    /// Sends what is no HTTP, or only the half of it.
    Garbage(Vec<u8>),
}

/// What a client does with its connection next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Waits.
    Wait,
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Is through with the connection.
    Close,
}

pub fn request(line: &str, version: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{line} HTTP/{version}\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Whether the server gave a request up because not all of it came: to the client it is a lost connection.
fn is_broken_off(response: &Response) -> bool {
    response.status == 408 || response.status == 400 && response.json()["error"]["code"] == "incomplete_body"
}

/// A push producer.
#[derive(Debug)]
pub struct Producer {
    chat: String,
    supersede: bool,
    pub plan: Vec<Value>,
    pub run: Option<String>,
    /// Events that were acknowledged.
    pub acked: usize,
    stage: Stage,
    /// Whether everything goes in the request that starts the run.
    stream: bool,
    /// Whether it stops in the middle and is never heard of again.
    vanishes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Start,
    Push,
    Finish,
    Done,
}

impl Producer {
    pub fn new(rng: &mut Rng, swarm: &Swarm, chat: String) -> Producer {
        Producer {
            chat,
            supersede: rng.chance(swarm.supersede),
            plan: plan::events(rng, swarm.delta_bytes),
            run: None,
            acked: 0,
            stage: Stage::Start,
            stream: rng.chance(25),
            vanishes: swarm.cut > 0 && rng.chance(15),
        }
    }

    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Faults are over: it goes on to its end.
    pub fn calm(&mut self) {
        self.vanishes = false;
    }

    fn next_request(&mut self, rng: &mut Rng) -> Option<Vec<u8>> {
        let run = self.run.clone().unwrap_or_default();
        match self.stage {
            Stage::Start if self.stream => {
                let line =
                    format!("POST /chats/{}/runs?stream=1&supersede={}", self.chat, u8::from(self.supersede));
                Some(self.body(rng, &line, 0, self.plan.len()))
            }
            Stage::Start => {
                let body = json!({"supersede": self.supersede}).to_string();
                Some(request(
                    &format!("POST /chats/{}/runs", self.chat),
                    "1.1",
                    "application/json",
                    body.as_bytes(),
                ))
            }
            Stage::Push if self.vanishes && self.acked > self.plan.len() / 2 => {
                self.stage = Stage::Done;
                None
            }
            Stage::Push if self.acked >= self.plan.len() => {
                self.stage = Stage::Finish;
                self.next_request(rng)
            }
            Stage::Push => {
                // Sometimes it sends again what it knows was taken: nothing may double.
                let from = self.acked - if rng.chance(30) { rng.below(self.acked + 1) } else { 0 };
                let until = (self.acked + 1 + rng.below(9)).min(self.plan.len());
                let line = format!("POST /runs/{run}/events?from_seq={}", from + 1);
                Some(self.body(rng, &line, from, until))
            }
            Stage::Finish => {
                Some(request(&format!("POST /runs/{run}/finish"), "1.1", "application/json", b"{}"))
            }
            Stage::Done => None,
        }
    }

    fn body(&self, rng: &mut Rng, line: &str, from: usize, until: usize) -> Vec<u8> {
        let events = &self.plan[from..until];
        let (kind, body) = match rng.below(3) {
            0 => ("application/json", serde_json::to_vec_pretty(events).unwrap()),
            1 => {
                let lines: Vec<String> = events.iter().map(|event| format!("{event}\n")).collect();
                ("application/x-ndjson", lines.join("\n").into_bytes())
            }
            _ => {
                let messages: Vec<String> =
                    events.iter().map(|event| format!(": c\r\ndata: {event}\r\n\r\n")).collect();
                ("text/event-stream", messages.concat().into_bytes())
            }
        };
        if rng.chance(50) {
            return request(line, "1.1", kind, &body);
        }
        let head = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        let mut out = head.into_bytes();
        for chunk in body.chunks(1 + rng.below(200)) {
            out.extend(format!("{:X}\r\n", chunk.len()).into_bytes());
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"0\r\n\r\n");
        out
    }

    fn answered(&mut self, response: &Response, checker: &mut Checker) {
        let body = response.json();
        let state = body["error"]["code"].as_str().unwrap_or("");
        match (self.stage, response.status) {
            (Stage::Start, 201) => {
                self.run = body["run_id"].as_str().map(str::to_owned);
                self.stage = Stage::Push;
            }
            (Stage::Start, 200) => {
                self.run = body["run_id"].as_str().map(str::to_owned);
                self.acked = self.plan.len();
                checker.finished(&body);
                self.stage = Stage::Done;
            }
            (Stage::Push, 200) => {
                let next = body["next"].as_u64().and_then(|next| usize::try_from(next).ok()).unwrap_or(0);
                checker.require(next > self.acked, || format!("acknowledged {next} after {}", self.acked));
                self.acked = next.saturating_sub(1);
                let seq = body["seq"].as_u64().unwrap_or(0);
                checker.acknowledged(self.run.as_deref().unwrap_or(""), seq);
            }
            (Stage::Push, 413 | 400) => self.stage = Stage::Finish,
            (Stage::Finish, 200) => {
                checker.finished(&body);
                self.stage = Stage::Done;
            }
            (_, 409 | 404 | 503) => {
                checker.require(state != "gap", || "a producer that counts was told of a gap".to_owned());
                self.stage = Stage::Done;
            }
            (Stage::Start, 413 | 400) => self.stage = Stage::Done,
            (stage, status) => checker.fail(format!("{stage:?} was answered with {status}: {body}")),
        }
    }
}

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
                let (run, head) = rng.pick(known).clone();
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

    fn next_request(&mut self) -> Option<Vec<u8>> {
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
        let cursor = own.or_else(|| self.invented.take());
        self.sent_cursor = cursor.clone();
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

    fn messages(&mut self, response: &mut Response, checker: &mut Checker) {
        while let Some(lines) = response.message() {
            let data: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("data: ")).collect();
            let id = lines.iter().find_map(|line| line.strip_prefix("id: "));
            match data.as_slice() {
                [] => checker.require(lines == [": keep-alive"], || format!("odd message {lines:?}")),
                [json] => match serde_json::from_str(json) {
                    Ok(value) => self.frame(value, id, checker),
                    Err(fault) => checker.fail(format!("no JSON: {fault}: {json}")),
                },
                _ => checker.fail(format!("a frame of several lines: {lines:?}")),
            }
        }
    }

    fn frame(&mut self, frame: Value, id: Option<&str>, checker: &mut Checker) {
        if self.flavour == Flavour::Legacy {
            return self.events.push(frame);
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
        match kind {
            "STREAM_SNAPSHOT" => {
                let Value::Array(events) = &frame["events"] else {
                    return checker.fail("no events".to_owned());
                };
                if same_run && !self.first {
                    checker.require(seq >= self.seq, || format!("snapshot at {seq} after {}", self.seq));
                }
                (self.run, self.seq, self.events) = (Some(run.clone()), seq, events.clone());
                checker.has(&run, seq, events.clone());
            }
            "STREAM_EVENT" => {
                let may = !self.first || self.sent_cursor.as_ref() == Some(&(run.clone(), self.seq));
                checker.require(may && same_run, || format!("first frame is {frame}"));
                checker.require(seq == self.seq + 1, || format!("event {seq} after {}", self.seq));
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
                checker.ended(&run, seq, flag("persisted"), flag("superseded"));
            }
            _ => checker.fail(format!("unknown frame {frame}")),
        }
        self.first = false;
    }

    fn complete(&mut self, response: &Response, checker: &mut Checker) {
        match response.status {
            204 | 409 | 503 => self.done = true,
            200 if self.flavour == Flavour::Legacy => {
                self.done = true;
                // HTTP/1.0 can't tell an end from a cut but by a reset, which the world's reader does not show here.
                if response.chunked {
                    checker.legacy_complete(&self.chat, self.events.clone());
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

impl Client {
    /// The first bytes on a new connection, or nothing if the client is through.
    pub fn connect(&mut self, rng: &mut Rng) -> Option<Vec<u8>> {
        match self {
            Client::Tap => Some(b"GET /events/stream?chunks=1 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
            Client::Producer(producer) => producer.next_request(rng),
            Client::Observer(observer) => observer.next_request(),
            Client::Once(request) => {
                Some(std::mem::take(request).into_bytes()).filter(|bytes| !bytes.is_empty())
            }
            Client::Garbage(bytes) | Client::Sender(bytes) => {
                Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty())
            }
        }
    }

    /// Looks at what has arrived.
    pub fn look(&mut self, reader: &mut Reader, rng: &mut Rng, checker: &mut Checker) -> Next {
        if let Some(response) = reader.current() {
            self.messages(response, checker);
        }
        let Some(mut response) = reader.done.pop_front() else { return Next::Wait };
        self.messages(&mut response, checker);
        if is_broken_off(&response) {
            return Next::Close;
        }
        match self {
            Client::Producer(producer) => {
                producer.answered(&response, checker);
                if response.close {
                    return Next::Close;
                }
                producer.next_request(rng).map_or(Next::Close, Next::Send)
            }
            Client::Observer(observer) => {
                observer.complete(&response, checker);
                Next::Close
            }
            Client::Tap => Next::Wait,
            Client::Once(_) => Next::Close,
            Client::Sender(_) => {
                let body = response.json();
                if response.status == 202 {
                    checker.accepted(body["run_id"].as_str().unwrap_or(""));
                }
                let known = [200, 202, 400, 404, 409, 503].contains(&response.status);
                checker.require(known, || format!("a sender was answered with {}: {body}", response.status));
                Next::Close
            }
            Client::Garbage(_) => {
                checker.require(response.status >= 400, || {
                    format!("garbage was answered with {}", response.status)
                });
                Next::Close
            }
        }
    }

    fn messages(&mut self, response: &mut Response, checker: &mut Checker) {
        match self {
            Client::Observer(observer) if response.status == 200 => observer.messages(response, checker),
            Client::Tap => {
                while let Some(lines) = response.message() {
                    for line in &lines {
                        if let Some(json) = line.strip_prefix("data: ") {
                            checker.tap(&serde_json::from_str(json).unwrap_or(Value::Null));
                        }
                    }
                }
            }
            Client::Observer(_)
            | Client::Producer(_)
            | Client::Once(_)
            | Client::Sender(_)
            | Client::Garbage(_) => {}
        }
    }
}
