//! The queue of turns: each needs a thread, and threads are bounded. A turn that waits is only a value.

use std::collections::VecDeque;

use crate::engine::{Engine, Output};
use crate::proto::id::LocalId;
use crate::proto::registry::RunKey;
use crate::proto::turn::TurnOrder;
use crate::wire::status::Turns;

/// Turns that have a thread, and turns that wait for one, in order.
#[derive(Debug, Default)]
pub(in crate::engine) struct TurnQueue {
    running: usize,
    waiting: VecDeque<TurnOrder>,
    /// Turns so far.
    begun: u64,
}

impl TurnQueue {
    pub(in crate::engine) fn status(&self) -> Turns {
        Turns { running: self.running, queued: self.waiting.len() }
    }
}

impl Engine {
    /// The id of the next turn.
    pub(in crate::engine) fn next_turn(&mut self) -> LocalId {
        self.turns.begun += 1;
        LocalId::of_turn(self.turns.begun)
    }

    /// Whether a turn that comes now has to wait for a thread.
    pub(in crate::engine) fn turns_full(&self) -> bool {
        self.turns.running + self.turns.waiting.len() >= self.config.limits.turns_max
    }

    /// Starts a turn, or puts it behind those that wait.
    pub(super) fn enqueue(&mut self, key: RunKey, order: TurnOrder) {
        if self.turns.running < self.config.limits.turns_max {
            return self.give_thread(key, order);
        }
        self.turns.waiting.push_back(order);
        self.set_queued(key, true);
    }

    fn give_thread(&mut self, key: RunKey, order: TurnOrder) {
        self.turns.running += 1;
        self.set_queued(key, false);
        self.output(Output::StartTurn(Box::new(order)));
    }

    /// The bus tells who waits for a thread, and when the wait is over.
    fn set_queued(&mut self, key: RunKey, queued: bool) {
        let run = self.registry.run_mut(key);
        if std::mem::replace(&mut run.queued, queued) != queued {
            self.publish_started(key);
        }
    }

    /// A turn's thread is free.
    pub(in crate::engine) fn turn_gone(&mut self) {
        debug_assert!(self.turns.running > 0, "only a turn that has a thread gives one back");
        self.turns.running -= 1;
        while let Some(order) = self.turns.waiting.pop_front() {
            let key = self.registry.of_id(order.run);
            if let Some(key) = key.filter(|key| self.registry.run(*key).state.is_open()) {
                return self.give_thread(key, order);
            }
        }
    }
}
