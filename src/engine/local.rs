//! Producers in the same process, and turns with agents: what they send, and what they are told.

use crate::engine::Engine;
use crate::engine::start::{Starter, Who};
use crate::proto::id::{ChatId, LocalId, RunId, Seq};
use crate::proto::parts::Ending;
use crate::proto::registry::RunKey;
use crate::proto::run::State;
use crate::proto::turn::{Decision, Question};
use crate::wire::request::Start;

/// What a producer in this process does. It begins with `Start`, unless it is a turn; after `Finish` or `Failed` only
/// `Gone` follows, after `Gone` nothing.
#[derive(Debug)]
pub enum LocalInput {
    /// Starts a run.
    Start(ChatId, Start),
    /// Appends an event.
    Event(Vec<u8>),
    /// Is done; with a message if it failed.
    Finish(Option<String>),
    /// A turn went wrong: the code of its RUN_ERROR, and the message.
    Failed(&'static str, String),
    /// A turn's agent asks a person.
    Ask(Question),
    /// Was dropped, or is through: nothing follows.
    Gone,
}

/// What a producer in this process is told.
#[derive(Clone, Debug)]
pub enum LocalReply {
    /// The run is registered.
    Started(RunId),
    /// The run can't be started.
    Refused {
        /// A short name of the reason.
        code: &'static str,
        /// What to change.
        message: String,
    },
    /// The run takes no more events.
    Cancelled(State),
    /// A question of a turn's agent is decided.
    Answered {
        /// Which question.
        request: String,
        /// What was decided.
        decision: Decision,
    },
    /// The run is finalized.
    Finished {
        /// Its head.
        seq: Seq,
        /// Whether it is saved.
        persisted: bool,
    },
}

impl Engine {
    pub(super) fn local(&mut self, id: LocalId, input: LocalInput) {
        match input {
            LocalInput::Start(chat, start) => {
                self.start(Starter { who: Who::Local(id), chat, start, plan: None });
            }
            LocalInput::Event(bytes) => self.local_event(id, &bytes),
            LocalInput::Finish(error) => {
                if let Some(key) = self.local_run(id) {
                    self.awaits_outcome(id, key);
                    self.finish(key, error.as_deref());
                }
            }
            LocalInput::Failed(code, message) => {
                if let Some(key) = self.local_run(id) {
                    self.end_producer(key, Ending::Broken, code, &message);
                }
            }
            LocalInput::Ask(question) => self.local_asks(id, question),
            LocalInput::Gone => {
                self.forget_local_starter(id);
                if let Some(key) = self.local_run(id) {
                    self.lose(key);
                }
                self.locals.remove(&id);
                if id.is_turn() {
                    self.turn_gone();
                }
            }
        }
    }

    pub(super) fn local_event(&mut self, id: LocalId, bytes: &[u8]) {
        let Some(key) = self.local_run(id) else { return };
        let mut reading = self.begin_reading(key);
        let appended = self.append_read(key, bytes, &mut reading);
        self.end_reading(key, reading);
        match appended {
            Ok(true) => {}
            Ok(false) => {
                let limit = self.config.limits.run_bytes_max;
                let message =
                    format!("the run would hold more than {limit} bytes of events (--run-bytes-max)");
                self.end_producer(key, Ending::Broken, "too_large", &message);
            }
            Err(fault) => self.end_producer(key, Ending::Broken, "agent_error", &fault.message()),
        }
    }

    /// The producer's run, if it takes events.
    pub(super) fn local_run(&self, id: LocalId) -> Option<RunKey> {
        let key = self.registry.of_id(*self.locals.get(&id)?)?;
        self.registry.run(key).state.is_open().then_some(key)
    }

    /// A producer wants to hear how its run comes out; a turn does not.
    fn awaits_outcome(&mut self, id: LocalId, key: RunKey) {
        let run = self.registry.run(key).id;
        if let Some(producer) = self.producers.get_mut(&run) {
            producer.awaits_outcome = !id.is_turn();
        }
    }

    /// A producer that waited for a chat's finalization was dropped.
    fn forget_local_starter(&mut self, id: LocalId) {
        self.starters.retain(|_, waiting| {
            waiting.retain(|starter| !matches!(starter.who, Who::Local(other) if other == id));
            !waiting.is_empty()
        });
    }
}
