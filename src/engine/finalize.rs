//! Finalization: how a run ends, what is saved of it, and what its end may say.
//!
//! `persisted` is true only after the store said so. A commit whose answer does not come in time counts as not
//! saved and is withdrawn; should it land all the same, nobody was told that it did not exist, only that it is not
//! known to be saved.

use crate::engine::conn::{Role, Wait};
use crate::engine::timers::Timer;
use crate::engine::{Engine, LocalReply, Output};
use crate::proto::history::{Job, Outcome, Turn};
use crate::proto::id::{ChatId, ConnId, LocalId, RunId, Seq};
use crate::proto::parts::{Ending, Level};
use crate::proto::registry::RunKey;
use crate::proto::run::{Cause, End, State};
use crate::wire::{event, reply};

/// A commit under way.
#[derive(Debug)]
pub(super) struct Pending {
    chat: ChatId,
    seq: Seq,
    /// When it counts as failed, unless the run is already over for other reasons.
    until_ms: Option<u64>,
    /// Requests that wait for the outcome.
    waiting: Vec<ConnId>,
    /// The producer in this process that waits for it.
    local: Option<LocalId>,
    /// Why the run ends.
    cause: Cause,
}

impl Engine {
    /// The producer is done, one way or another: the run is closed so that AG-UI accepts it, and saved.
    pub(super) fn end_producer(&mut self, key: RunKey, ending: Ending, code: &'static str, message: &str) {
        let closing = self.registry.run(key).parts.closing(ending);
        let ends_here = closing.error && self.registry.run(key).parts.level() != Level::Finished;
        self.cancel_all_questions(key, ends_here);
        for (part, id) in &closing.parts {
            self.append_own(key, &event::part_end(*part, id));
        }
        if closing.error {
            *self.tallies.closed.entry(code).or_default() += 1;
            self.log_closed(key, code, message);
            self.append_own(key, &event::run_error(code, message));
        }
        let run = self.registry.run_mut(key);
        run.state = State::Finalizing;
        let id = run.id;
        let waiting = self.producers.get(&id).filter(|producer| producer.awaits_outcome);
        let local = waiting.and_then(|producer| producer.local);
        self.dismiss_producer(id, State::Finalizing, cancel_reason(code));
        let cause = if code == "shutdown" { Cause::Shutdown } else { Cause::Finalized };
        let until_ms = self.now.mono_ms + self.config.limits.commit_ms;
        self.timers.set(until_ms, Timer::Run(id));
        let turn = self.take_turn(key, closing.error.then_some(code), cause, Some(until_ms), local);
        self.output(Output::Store(Job::Commit(turn)));
    }

    /// The run's turn, to be given to the store, whose answer is awaited from here on.
    fn take_turn(
        &mut self,
        key: RunKey,
        closed: Option<&'static str>,
        cause: Cause,
        until_ms: Option<u64>,
        local: Option<LocalId>,
    ) -> Turn {
        let wall_ms = self.now.wall_ms;
        let run = self.registry.run_mut(key);
        let before = run.memory_bytes();
        run.text.seal(&mut self.pool);
        run.log.seal(&mut self.pool);
        let turn = Turn {
            run: run.id,
            chat: run.chat.clone(),
            trigger: run.trigger,
            seq: run.head(),
            started_wall_ms: run.started.wall_ms,
            ended_wall_ms: wall_ms,
            events: run.text.capture(),
            closed,
            superseded: cause == Cause::Superseded,
        };
        self.runs_bytes = self.runs_bytes - before + run.memory_bytes();
        let pending =
            Pending { chat: turn.chat.clone(), seq: turn.seq, until_ms, waiting: Vec::new(), local, cause };
        self.commits.insert(turn.run, pending);
        turn
    }

    /// A request waits for the outcome of a run's commit.
    pub(super) fn await_outcome(&mut self, id: ConnId, run: RunId) {
        if let Some(pending) = self.commits.get_mut(&run) {
            pending.waiting.push(id);
            if let Some(conn) = self.conn_mut(id) {
                conn.role = Role::Waiting(Wait::Outcome(run));
            }
        }
    }

    pub(super) fn forget_outcome(&mut self, id: ConnId, run: RunId) {
        if let Some(pending) = self.commits.get_mut(&run) {
            pending.waiting.retain(|other| *other != id);
        }
    }

    /// The store has said how a commit came out.
    pub(super) fn finalized(&mut self, run: RunId, outcome: Outcome) {
        // No entry: it was given up as timed out, and its run has ended unsaved. Late is too late.
        if let Some(pending) = self.commits.remove(&run) {
            match outcome {
                Outcome::Committed => self.totals.committed += 1,
                Outcome::Skipped => self.totals.skipped += 1,
                Outcome::Failed => self.totals.failed += 1,
            }
            self.conclude(run, pending, outcome == Outcome::Committed);
        }
    }

    /// A commit may have taken too long.
    pub(super) fn commit_due(&mut self, run: RunId) {
        let now_ms = self.now.mono_ms;
        let due = self.commits.get(&run).and_then(|pending| pending.until_ms);
        if due.is_some_and(|until| until <= now_ms)
            && let Some(pending) = self.commits.remove(&run)
        {
            self.totals.timed_out += 1;
            if let Some(key) = self.registry.of_id(run) {
                self.log_commit_timeout(key);
            }
            self.output(Output::Withdraw(run));
            self.conclude(run, pending, false);
        }
    }

    /// The run's chat is deleted: its commit is not wanted any more.
    pub(super) fn withdraw(&mut self, run: RunId) {
        if let Some(pending) = self.commits.get_mut(&run) {
            pending.until_ms = None;
            self.output(Output::Withdraw(run));
        }
    }

    fn conclude(&mut self, run: RunId, pending: Pending, persisted: bool) {
        if let Some(key) = self.registry.of_id(run)
            && self.registry.run(key).state == State::Finalizing
        {
            let end = End { persisted, cause: pending.cause };
            *(if persisted { &mut self.totals.saved } else { &mut self.totals.not_saved }) += 1;
            self.registry.run_mut(key).state = State::Over(end);
            self.registry.note_end(key, self.now.mono_ms);
            self.publish_ended(key, end);
            self.log_ended(key, end);
            self.changed(key);
        }
        let answer = reply::finished(run, pending.seq, persisted);
        for id in pending.waiting {
            self.answer(id, 200, &answer);
        }
        if let Some(local) = pending.local {
            self.locals.remove(&local);
            self.output(Output::Local(local, LocalReply::Finished { seq: pending.seq, persisted }));
        }
        self.start_waiting(&pending.chat);
    }

    /// A newer run takes the place of this one, in this very step. Returns what there is of an answer, to be saved.
    pub(super) fn replace(&mut self, key: RunKey) -> Option<Turn> {
        let over = State::Over(End { persisted: false, cause: Cause::Superseded });
        let (run, open) = {
            let run = self.registry.run(key);
            (run.id, run.state.is_open())
        };
        let partial = open.then(|| {
            let speak = matches!(self.registry.run(key).parts.level(), Level::None | Level::Started);
            self.cancel_all_questions(key, speak);
            self.dismiss_producer(run, over, Some("superseded"));
            self.take_turn(key, None, Cause::Superseded, None, None)
        });
        self.cut_off(key, Cause::Superseded);
        partial
    }

    /// The run is over before its time: its observers get their end now, the registry forgets it.
    pub(super) fn cut_off(&mut self, key: RunKey, cause: Cause) {
        let end = End { persisted: false, cause };
        self.totals.superseded += u64::from(cause == Cause::Superseded);
        self.attach_sender(key);
        self.registry.run_mut(key).state = State::Over(end);
        self.publish_ended(key, end);
        self.log_ended(key, end);
        self.changed(key);
        self.registry.forget(key);
        self.release(key);
    }
}

/// Why a producer that did not end by itself is told to stop.
fn cancel_reason(code: &'static str) -> Option<&'static str> {
    match code {
        "stopped" | "shutdown" | "timeout" | "too_large" | "producer_lost" => Some(code),
        _ => None,
    }
}
