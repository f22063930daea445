//! Starting runs: now, after the chat's finalization, or in the place of a run that goes on.

use crate::engine::caps::Cap;
use crate::engine::conn::{Role, Wait};
use crate::engine::produce::PushBody;
use crate::engine::producer::Producer;
use crate::engine::routes::Refusal;
use crate::engine::turns::{Answer, Plan};
use crate::engine::{Engine, LocalReply, Output};
use crate::proto::history::{Job, Trigger, Turn};
use crate::proto::id::{ChatId, ConnId, LocalId};
use crate::proto::run::{Run, State};
use crate::wire::body::Format;
use crate::wire::event::PUNCTUATION;
use crate::wire::frame::Flavour;
use crate::wire::reply;
use crate::wire::request::{self, Start};

/// A request to start a run.
#[derive(Debug)]
pub(super) struct Starter {
    pub(super) who: Who,
    pub(super) chat: ChatId,
    pub(super) start: Start,
    /// What the agent is to be asked, if this server asks it.
    pub(super) plan: Option<Box<Plan>>,
}

/// Who wants to start a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Who {
    /// A push producer that will send its events later.
    Push(ConnId),
    /// A push producer whose events follow in the same request.
    Stream(ConnId, Format),
    /// A producer in this process.
    Local(LocalId),
    /// Somebody who wants an agent to be asked.
    Turn(ConnId, Answer),
}

impl Starter {
    /// Whether it takes the place of a run that goes on, and of one that is being saved.
    fn replaces(&self) -> (bool, bool) {
        match &self.plan {
            Some(plan) => plan.replaces(),
            None => {
                let supersede = self.start.supersede && self.start.trigger != Trigger::Heartbeat;
                (supersede, supersede)
            }
        }
    }
}

impl Engine {
    pub(super) fn start_requested(&mut self, id: ConnId, chat: ChatId, body: &[u8]) -> Result<(), Refusal> {
        let start = request::start(body)?;
        self.start(Starter { who: Who::Push(id), chat, start, plan: None });
        Ok(())
    }

    pub(super) fn begin_stream(&mut self, id: ConnId, chat: ChatId, start: Start, format: Format) {
        self.start(Starter { who: Who::Stream(id, format), chat, start, plan: None });
    }

    /// Starts a run, now or when the chat's finalization is over.
    pub(super) fn start(&mut self, starter: Starter) {
        self.evict();
        if self.stopping {
            let refusal =
                Refusal::new(503, "shutting_down", "the server is being shut down; try again later");
            return self.start_refused(starter.who, &refusal);
        }
        if self.memory_full() {
            let refusal = Cap::Memory.refusal(&self.config.limits);
            return self.start_refused(starter.who, &refusal);
        }
        let (active_too, finalizing_too) = starter.replaces();
        match self.registry.of_chat(&starter.chat) {
            None => self.register(starter, None),
            Some(old) => match self.registry.run(old).state {
                State::Over(_) => self.register(starter, None),
                State::Registered | State::Active if active_too => {
                    let partial = self.replace(old);
                    self.register(starter, partial);
                }
                State::Finalizing if finalizing_too => {
                    let partial = self.replace(old);
                    self.register(starter, partial);
                }
                State::Registered | State::Active => {
                    let message = match starter.plan {
                        None => {
                            "a run of this chat is still active; wait for its end, or start with supersede"
                        }
                        Some(_) => {
                            "an answer in this chat is still being written; wait for its end, or steer it"
                        }
                    };
                    self.start_refused(starter.who, &Refusal::new(409, "already_streaming", message));
                }
                State::Finalizing => self.wait_for_outcome(starter),
            },
        }
    }

    fn wait_for_outcome(&mut self, starter: Starter) {
        match starter.who {
            Who::Push(id) | Who::Stream(id, _) | Who::Turn(id, _) => {
                if let Some(conn) = self.conn_mut(id) {
                    conn.role = Role::Waiting(Wait::Start(starter.chat.clone()));
                }
            }
            Who::Local(_) => {}
        }
        self.starters.entry(starter.chat.clone()).or_default().push_back(starter);
    }

    /// A chat's finalization is over: who waited for it starts now, in order.
    pub(super) fn start_waiting(&mut self, chat: &ChatId) {
        for starter in self.starters.remove(chat).unwrap_or_default() {
            self.start(starter);
        }
    }

    pub(super) fn forget_starter(&mut self, id: ConnId, chat: &ChatId) {
        let Some(waiting) = self.starters.get_mut(chat) else { return };
        waiting.retain(|starter| match starter.who {
            Who::Push(other) | Who::Stream(other, _) | Who::Turn(other, Answer::Stream(Flavour::Legacy)) => {
                other != id
            }
            // What a person sent is not lost because they closed the page.
            Who::Local(_) | Who::Turn(..) => true,
        });
        if waiting.is_empty() {
            self.starters.remove(chat);
        }
    }

    pub(super) fn start_refused(&mut self, who: Who, refusal: &Refusal) {
        match who {
            Who::Push(id) | Who::Turn(id, _) => self.refuse(id, refusal),
            Who::Stream(id, _) => self.refuse_and_close(id, refusal),
            Who::Local(id) => {
                let message = refusal.message.clone();
                self.output(Output::Local(id, LocalReply::Refused { code: refusal.code, message }));
            }
        }
    }

    /// Registers a run and lets its producer know; who waited for a run of the chat follows it from here on.
    /// `partial` is what there is of the answer of the run whose place it takes.
    fn register(&mut self, starter: Starter, partial: Option<Turn>) {
        let (who, chat, start) = (starter.who, starter.chat.clone(), starter.start);
        let id = self.run_id();
        let window = self.config.limits.window_events;
        let run = Run::new(id, chat.clone(), start.trigger, self.now, window, &PUNCTUATION);
        if let Some(old) = self.registry.of_chat(&chat) {
            self.registry.forget(old);
            self.release(old);
        }
        let key = self.registry.register(run);
        self.runs_bytes += self.registry.run(key).memory_bytes();
        self.totals.runs += 1;
        let local = match who {
            Who::Local(local) => Some(local),
            Who::Turn(..) => Some(self.next_turn()),
            Who::Push(_) | Who::Stream(..) => None,
        };
        let producer = Producer::new(local, self.now.mono_ms);
        self.producers.insert(id, producer);
        if let Some(local) = local {
            self.locals.insert(local, id);
        }
        match (who, local) {
            (Who::Turn(..), Some(turn)) => {
                let queued = self.turns_full();
                self.registry.run_mut(key).queued = queued;
                self.open_turn(key, turn, starter, partial);
            }
            (Who::Turn(..) | Who::Push(_) | Who::Stream(..) | Who::Local(_), _) => {
                if let Some(partial) = partial {
                    self.output(Output::Store(Job::Commit(partial)));
                }
                self.output(Output::Store(Job::Begin { run: id, chat: chat.clone() }));
            }
        }
        self.publish_started(key);
        self.log_registered(key);
        self.attach_waiters(&chat, key);
        match who {
            Who::Turn(..) => {}
            Who::Push(conn) => self.answer(conn, 201, &reply::started(id)),
            Who::Stream(conn, format) => {
                let body = PushBody::of_stream(id, self.reader(format));
                self.take_body(conn, body);
            }
            Who::Local(local) => self.output(Output::Local(local, LocalReply::Started(id))),
        }
        self.arm_run(id);
    }

    /// A server that is to stop: nobody waits for a run any more.
    pub(super) fn refuse_all_waiting(&mut self) {
        let waiting: Vec<ConnId> = self.waiters.values().flatten().copied().collect();
        for id in waiting {
            self.stop_waiting(id);
        }
        for starter in std::mem::take(&mut self.starters).into_values().flatten() {
            self.start(starter);
        }
    }
}
