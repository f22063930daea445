//! Deadlines: what has to be looked at when. A timer that comes too early costs a look and is set again; so nothing
//! is moved when a connection is merely used.

use std::collections::BTreeSet;

use crate::engine::Engine;
use crate::proto::id::{ConnId, RunId, Ticket};

/// What a deadline is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A connection: keep-alive, stall, waiting, a request that takes too long.
    Conn(ConnId),
    /// A run: grace, silence, commit.
    Run(RunId),
    /// A question to the store.
    Question(Ticket),
    /// Questions that a run's agent asked.
    Asked(RunId),
}

/// Deadlines in order.
#[derive(Debug, Default)]
pub(super) struct Timers {
    due: BTreeSet<(u64, Timer)>,
}

impl Timers {
    pub(super) fn set(&mut self, at_ms: u64, timer: Timer) {
        self.due.insert((at_ms, timer));
    }

    pub(super) fn unset(&mut self, at_ms: u64, timer: Timer) {
        self.due.remove(&(at_ms, timer));
    }

    pub(super) fn next(&self) -> Option<u64> {
        self.due.first().map(|(at_ms, _)| *at_ms)
    }

    fn pop(&mut self, now_ms: u64) -> Option<Timer> {
        let first = self.due.first()?;
        if first.0 > now_ms {
            return None;
        }
        self.due.pop_first().map(|(_, timer)| timer)
    }
}

impl Engine {
    /// Looks at everything that is due.
    pub(super) fn tick(&mut self) {
        while let Some(timer) = self.timers.pop(self.now.mono_ms) {
            match timer {
                Timer::Conn(id) => self.conn_due(id),
                Timer::Run(id) => self.run_due(id),
                Timer::Question(ticket) => self.question_due(ticket),
                Timer::Asked(run) => self.questions_due(run),
            }
        }
    }
}
