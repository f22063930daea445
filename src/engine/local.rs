//! Producers in the same process: what they send, and what they are told.

use crate::engine::Engine;
use crate::engine::start::{Starter, Who};
use crate::proto::id::{ChatId, LocalId, RunId, Seq};
use crate::proto::parts::Ending;
use crate::proto::run::State;
use crate::wire::event;
use crate::wire::request::Start;

/// What a producer in this process does. It begins with `Start`; after `Finish` or `Gone` nothing follows.
#[derive(Debug)]
pub enum LocalInput {
    /// Starts a run.
    Start(ChatId, Start),
    /// Appends an event.
    Event(Vec<u8>),
    /// Is done; with a message if it failed.
    Finish(Option<String>),
    /// Was dropped without finishing.
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
            LocalInput::Start(chat, start) => self.start(Starter { who: Who::Local(id), chat, start }),
            LocalInput::Event(bytes) => self.local_event(id, &bytes),
            LocalInput::Finish(error) => {
                if let Some(key) = self.local_run(id) {
                    self.finish(key, error.as_deref());
                }
            }
            LocalInput::Gone => {
                self.forget_local_starter(id);
                if let Some(key) = self.local_run(id) {
                    self.lose(key);
                }
                self.locals.remove(&id);
            }
        }
    }

    fn local_event(&mut self, id: LocalId, bytes: &[u8]) {
        let Some(key) = self.local_run(id) else { return };
        let mut scratch = std::mem::take(&mut self.line);
        let limit = self.config.limits.run_bytes_max;
        match event::read(bytes, &mut scratch) {
            Ok(event) if self.registry.run(key).event_bytes + event.line.len() as u64 > limit => {
                let message =
                    format!("the run would hold more than {limit} bytes of events (--run-bytes-max)");
                self.end_producer(key, Ending::Broken, "too_large", &message);
            }
            Ok(event) => {
                self.registry.run_mut(key).produced += 1;
                self.append(key, event.line, &event.kind);
            }
            Err(fault) => self.end_producer(key, Ending::Broken, "agent_error", &fault.message()),
        }
        self.line = scratch;
    }

    /// The producer's run, if it takes events.
    fn local_run(&self, id: LocalId) -> Option<crate::proto::registry::RunKey> {
        let key = self.registry.of_id(*self.locals.get(&id)?)?;
        self.registry.run(key).state.is_open().then_some(key)
    }

    /// A producer that waited for a chat's finalization was dropped.
    fn forget_local_starter(&mut self, id: LocalId) {
        self.starters.retain(|_, waiting| {
            waiting.retain(|starter| !matches!(starter.who, Who::Local(other) if other == id));
            !waiting.is_empty()
        });
    }
}
