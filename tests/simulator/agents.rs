//! Agents: what a turn's thread does, without the thread. They stream, ask, fail, hang, go on talking after a cancel, and
//! vanish.

use std::collections::VecDeque;

use rejoin::engine::{LocalInput, LocalReply};
use rejoin::proto::id::LocalId;
use rejoin::proto::turn::{Question, QuestionKind, TurnOrder};
use serde_json::{Value, json};

use crate::plan;
use crate::rng::Rng;
use crate::swarm::Swarm;

/// A turn that has a thread.
#[derive(Debug)]
pub struct Agent {
    pub turn: LocalId,
    pub run: String,
    said: VecDeque<Value>,
    /// Everything that it means to say.
    pub plan: Vec<Value>,
    fate: Fate,
    /// It waits for the answer to its question.
    asking: bool,
    cancelled: bool,
    over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Done,
    Fails,
    /// Its thread is gone without a word.
    Vanishes,
    /// It says nothing more until it is cancelled, or given up as silent.
    Hangs,
}

/// The name of every question: runs tell them apart.
pub const REQUEST: &str = "q-1";

const ASKS: &str = "acp.permission_request";

impl Agent {
    pub fn new(order: &TurnOrder, rng: &mut Rng, swarm: &Swarm) -> Agent {
        let mut plan = plan::events(rng, swarm.delta_bytes);
        if rng.chance(30) {
            let asks = json!({"type": "CUSTOM", "name": ASKS, "value": {"request_id": REQUEST}});
            plan.insert(1 + rng.below(plan.len()), asks);
        }
        let fate = match rng.below(10) {
            0 => Fate::Fails,
            1 => Fate::Vanishes,
            2 => Fate::Hangs,
            _ => Fate::Done,
        };
        Agent {
            turn: order.turn,
            run: order.run.to_string(),
            said: plan.clone().into(),
            plan,
            fate,
            asking: false,
            cancelled: false,
            over: false,
        }
    }

    /// Whether only time or a person can move it.
    pub fn waits(&self) -> bool {
        self.asking && !self.cancelled && !self.over
    }

    /// What the engine tells it.
    pub fn told(&mut self, reply: &LocalReply) {
        match reply {
            LocalReply::Cancelled(_) => self.cancelled = true,
            LocalReply::Answered { .. } => self.asking = false,
            LocalReply::Started(_) | LocalReply::Refused { .. } | LocalReply::Finished { .. } => {}
        }
    }

    /// What it does next, if anything. After `Gone` it is gone.
    pub fn step(&mut self, rng: &mut Rng, calm: bool) -> Option<LocalInput> {
        // One that is cancelled goes on for a while: nothing of that may count.
        if self.over || (self.cancelled && (calm || rng.chance(30))) {
            return Some(LocalInput::Gone);
        }
        if self.asking {
            return None;
        }
        if let Some(event) = self.said.pop_front() {
            let asks = event["name"] == ASKS;
            let bytes = event.to_string().into_bytes();
            self.asking = asks;
            let kind = QuestionKind::Permission(vec!["yes".to_owned()]);
            return Some(match asks {
                true => LocalInput::Ask(Question { request: REQUEST.to_owned(), event: bytes, kind }),
                false => LocalInput::Event(bytes),
            });
        }
        let last = match self.fate {
            Fate::Done => LocalInput::Finish(None),
            Fate::Fails => LocalInput::Failed("agent_error", "it broke".to_owned()),
            Fate::Vanishes => LocalInput::Gone,
            Fate::Hangs if calm => LocalInput::Failed("timeout", "it was silent".to_owned()),
            Fate::Hangs => return None,
        };
        self.over = true;
        Some(last)
    }
}
