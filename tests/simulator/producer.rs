//! A push producer: it starts a run, pushes its events in bodies of every kind, sends some of them twice, and finishes.

use serde_json::{Value, json};

use crate::checker::Checker;
use crate::client::request;
use crate::plan;
use crate::reader::Response;
use crate::rng::Rng;
use crate::swarm::Swarm;

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

    pub fn next_request(&mut self, rng: &mut Rng) -> Option<Vec<u8>> {
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

    pub fn answered(&mut self, response: &Response, checker: &mut Checker) {
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
                finished(&body, checker);
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
                finished(&body, checker);
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

fn finished(body: &Value, checker: &mut Checker) {
    let persisted = body["persisted"].as_bool().unwrap_or(false);
    checker.finished(
        body["run_id"].as_str().unwrap_or(""),
        body["seq"].as_u64().unwrap_or(u64::MAX),
        persisted,
    );
}
