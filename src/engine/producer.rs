//! A run's producer: how long it may be silent, what it is told, and how it says that it is done.

use crate::engine::conn::Role;
use crate::engine::produce::Reading;
use crate::engine::routes::{Refusal, unknown_run};
use crate::engine::timers::Timer;
use crate::engine::{Engine, LocalReply, Output};
use crate::limits;
use crate::proto::id::{ConnId, LocalId, RunId, Seq};
use crate::proto::parts::Ending;
use crate::proto::registry::{Known, RunKey};
use crate::proto::run::{Cause, End, State};
use crate::wire::frame::{self, Flavour};
use crate::wire::reply;
use crate::wire::request;

/// Who writes a run that is not over.
#[derive(Debug)]
pub(super) struct Producer {
    /// The body whose events are appended.
    pub(super) body: Option<ConnId>,
    /// The stream on which the producer is told things.
    control: Option<ConnId>,
    /// The producer in this process, if it is one.
    pub(super) local: Option<LocalId>,
    /// That one said that it is done, and waits for the outcome.
    pub(super) awaits_outcome: bool,
    /// A body broke off then, and no other came yet.
    pub(super) broken_ms: Option<u64>,
    /// When there was last a body or a control stream.
    pub(super) quiet_ms: u64,
    /// When its timer is set.
    armed_ms: u64,
    /// What the reading of its next events goes on from.
    pub(super) reading: Option<Box<Reading>>,
}

impl Producer {
    pub(super) fn new(local: Option<LocalId>, now_ms: u64) -> Producer {
        Producer {
            body: None,
            control: None,
            local,
            awaits_outcome: false,
            broken_ms: None,
            quiet_ms: now_ms,
            armed_ms: u64::MAX,
            reading: None,
        }
    }

    /// When it has to show itself.
    fn due(&self) -> Option<u64> {
        if let Some(broken) = self.broken_ms {
            return Some(broken + limits::GRACE_MS);
        }
        let quiet = self.body.is_none() && self.control.is_none() && self.local.is_none();
        quiet.then_some(self.quiet_ms + limits::PRODUCER_IDLE_MS)
    }
}

const LOST: &str = "the connection to the agent was lost";
const SILENT: &str = "the agent was silent for too long";
const UNFINISHED: &str = "the agent ended without finishing its run";

impl Engine {
    /// The run, if it takes events from a push producer; else what to answer.
    pub(super) fn open_run(&mut self, run: RunId) -> Result<RunKey, (u16, Vec<u8>)> {
        self.evict();
        match self.registry.known(run) {
            None => {
                let refusal = unknown_run();
                Err((refusal.status, reply::error(refusal.code, &refusal.message)))
            }
            Some(Known::Gone(stone)) => Err((409, run_over(stone.state))),
            Some(Known::Run(key)) => {
                let state = self.registry.run(key).state;
                if !state.is_open() {
                    return Err((409, run_over(state)));
                }
                if self.producers.get(&run).is_some_and(|producer| producer.local.is_some()) {
                    let message = "this run is written by a producer inside the server";
                    return Err((409, reply::error("other_producer", message)));
                }
                Ok(key)
            }
        }
    }

    pub(super) fn run_state(&mut self, id: ConnId, run: RunId) -> Result<(), Refusal> {
        self.evict();
        let body = match self.registry.known(run).ok_or_else(unknown_run)? {
            Known::Gone(stone) => reply::run_state(run, &stone.chat, stone.state, stone.seq, stone.produced),
            Known::Run(key) => {
                let known = self.registry.run(key);
                reply::run_state(run, &known.chat, known.state, known.head(), known.produced)
            }
        };
        self.answer(id, 200, &body);
        Ok(())
    }

    pub(super) fn control(&mut self, id: ConnId, run: RunId) -> Result<(), Refusal> {
        match self.open_run(run) {
            Err((404, _)) => return Err(unknown_run()),
            Err((status, body)) => self.answer(id, status, &body),
            Ok(_) => {
                let older = self.producers.get_mut(&run).and_then(|producer| producer.control.replace(id));
                if let Some(older) = older {
                    self.end_stream(older);
                }
                self.begin_stream_answer(id, Flavour::Post);
                if let Some(conn) = self.conn_mut(id) {
                    conn.role = Role::Control(run);
                }
                self.arm(id);
            }
        }
        Ok(())
    }

    pub(super) fn control_left(&mut self, id: ConnId, run: RunId) {
        let now_ms = self.now.mono_ms;
        let Some(producer) = self.producers.get_mut(&run) else { return };
        if producer.control == Some(id) {
            producer.control = None;
            producer.quiet_ms = now_ms;
            self.arm_run(run);
        }
    }

    pub(super) fn finish_requested(&mut self, id: ConnId, run: RunId, body: &[u8]) -> Result<(), Refusal> {
        let error = request::finish(body)?;
        self.evict();
        match self.registry.known(run).ok_or_else(unknown_run)? {
            Known::Gone(stone) => {
                let (state, seq) = (stone.state, stone.seq);
                self.answer_over(id, run, state, seq);
            }
            Known::Run(key) => match self.registry.run(key).state {
                State::Registered | State::Active => {
                    self.finish(key, error.as_deref());
                    self.await_outcome(id, run);
                }
                State::Finalizing => self.await_outcome(id, run),
                state @ State::Over(_) => {
                    let seq = self.registry.run(key).head();
                    self.answer_over(id, run, state, seq);
                }
            },
        }
        Ok(())
    }

    /// The producer says that it is done.
    pub(super) fn finish(&mut self, key: RunKey, error: Option<&str>) {
        match error {
            None => self.end_producer(key, Ending::ByItself, "agent_error", UNFINISHED),
            Some(message) => self.end_producer(key, Ending::Broken, "agent_error", message),
        }
    }

    /// A producer that did not hear the answer to its finish asks again.
    fn answer_over(&mut self, id: ConnId, run: RunId, state: State, seq: Seq) {
        match state {
            State::Over(End { persisted, cause: Cause::Finalized | Cause::Shutdown }) => {
                self.answer(id, 200, &reply::finished(run, seq, persisted));
            }
            State::Over(_) | State::Registered | State::Active | State::Finalizing => {
                self.answer(id, 409, &run_over(state));
            }
        }
    }

    /// The run takes no more events: its producer is told, and why.
    pub(super) fn dismiss_producer(&mut self, run: RunId, state: State, cancel: Option<&str>) {
        let Some(producer) = self.producers.remove(&run) else { return };
        self.timers.unset(producer.armed_ms, Timer::Run(run));
        if let Some(body) = producer.body {
            self.answer_and_close(body, 409, &run_over(state));
        }
        if let Some(control) = producer.control {
            if let Some(reason) = cancel
                && let Some(conn) = self.conn_mut(control)
            {
                let message = reply::control_cancel(reason);
                frame::message(&[&message], conn.chunked, conn.out.tail());
            }
            self.end_stream(control);
        }
        if let Some(local) = producer.local
            && !producer.awaits_outcome
        {
            self.locals.remove(&local);
            self.output(Output::Local(local, LocalReply::Cancelled(state)));
        }
    }

    /// Sets the run's timer for the next deadline of its producer.
    pub(super) fn arm_run(&mut self, run: RunId) {
        let Some(producer) = self.producers.get_mut(&run) else { return };
        if let Some(due) = producer.due()
            && due < producer.armed_ms
        {
            let before = std::mem::replace(&mut producer.armed_ms, due);
            self.timers.unset(before, Timer::Run(run));
            self.timers.set(due, Timer::Run(run));
        }
    }

    /// A deadline of a run may have come.
    pub(super) fn run_due(&mut self, run: RunId) {
        self.commit_due(run);
        let now_ms = self.now.mono_ms;
        let Some(key) = self.registry.of_id(run) else { return };
        let Some(producer) = self.producers.get_mut(&run) else { return };
        producer.armed_ms = u64::MAX;
        match producer.due() {
            Some(due) if due <= now_ms => match producer.broken_ms {
                Some(_) => self.end_producer(key, Ending::Broken, "producer_lost", LOST),
                None => self.end_producer(key, Ending::Broken, "timeout", SILENT),
            },
            Some(_) => self.arm_run(run),
            None => {}
        }
    }

    /// Every producer of an open run has to stop.
    pub(super) fn close_all_runs(&mut self) {
        let open: Vec<RunKey> =
            self.registry.retained().filter(|(_, run)| run.state.is_open()).map(|(key, _)| key).collect();
        for key in open {
            self.end_producer(key, Ending::Broken, "shutdown", "the server was shut down");
        }
    }

    /// A producer vanished in a way that ends its run at once.
    pub(super) fn lose(&mut self, key: RunKey) {
        self.end_producer(key, Ending::Broken, "producer_lost", LOST);
    }
}

fn run_over(state: State) -> Vec<u8> {
    let message = format!("the run is {}; it takes no more events", state.name());
    reply::producer_error("run_over", &message, None, None, Some(state))
}
