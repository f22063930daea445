//! Producers inside the server's process: what a `Producer` of the library sends, without its thread.

use std::collections::VecDeque;

use rejoin::engine::{LocalInput, LocalReply};
use rejoin::proto::history::Trigger;
use rejoin::proto::id::{ChatId, LocalId};
use rejoin::wire::request::Start;
use serde_json::Value;

use crate::checker::Checker;
use crate::plan;
use crate::rng::Rng;
use crate::swarm::Swarm;

/// One producer, from its start to its drop.
#[derive(Debug)]
pub struct LocalProducer {
    pub id: LocalId,
    chat: String,
    supersede: bool,
    said: VecDeque<Value>,
    pub plan: Vec<Value>,
    pub run: Option<String>,
    /// Events that are known to be in the run.
    pub acked: usize,
    stage: Stage,
    fails: bool,
    /// It is dropped when it has said this many events.
    dropped_at: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    Asked,
    Open,
    Ending,
    Over,
}

impl LocalProducer {
    pub fn new(id: LocalId, rng: &mut Rng, swarm: &Swarm, chat: String) -> LocalProducer {
        let plan = plan::events(rng, swarm.delta_bytes);
        LocalProducer {
            id,
            chat,
            supersede: rng.chance(swarm.supersede),
            said: plan.clone().into(),
            dropped_at: rng.chance(20).then(|| rng.below(plan.len() + 1)),
            plan,
            run: None,
            acked: 0,
            stage: Stage::New,
            fails: rng.chance(10),
        }
    }

    /// Whether it can't go on before it is told something.
    pub fn waits(&self) -> bool {
        matches!(self.stage, Stage::Asked | Stage::Ending)
    }

    /// What it does next, if anything. After `Gone` it is gone.
    pub fn step(&mut self) -> Option<LocalInput> {
        match self.stage {
            Stage::New => {
                self.stage = Stage::Asked;
                let start = Start { trigger: Trigger::default(), supersede: self.supersede };
                Some(LocalInput::Start(ChatId::parse(&self.chat).unwrap(), start))
            }
            Stage::Asked | Stage::Open if self.dropped_at == Some(self.plan.len() - self.said.len()) => {
                Some(LocalInput::Gone)
            }
            Stage::Open => match self.said.pop_front() {
                Some(event) => Some(LocalInput::Event(event.to_string().into_bytes())),
                None => {
                    self.stage = Stage::Ending;
                    Some(LocalInput::Finish(self.fails.then(|| "it broke".to_owned())))
                }
            },
            Stage::Over => Some(LocalInput::Gone),
            Stage::Asked | Stage::Ending => None,
        }
    }

    /// What the engine tells it.
    pub fn told(&mut self, reply: &LocalReply, checker: &mut Checker) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        match reply {
            LocalReply::Started(run) => {
                checker.require(stage == Stage::Asked, || format!("started in {stage:?}"));
                self.run = Some(run.to_string());
                self.stage = Stage::Open;
            }
            LocalReply::Refused { .. } => {
                checker.require(stage == Stage::Asked, || format!("refused in {stage:?}"));
            }
            LocalReply::Finished { seq, persisted } => {
                checker.require(stage == Stage::Ending, || format!("finished in {stage:?}"));
                self.acked = self.plan.len();
                checker.saw("a producer inside the server finished");
                checker.finished(self.run.as_deref().unwrap_or(""), seq.0, *persisted);
            }
            LocalReply::Cancelled(_) => checker.saw("a producer inside the server was told to stop"),
            LocalReply::Answered { .. } => checker.fail("it asked nothing".to_owned()),
        }
    }
}
