//! Caps: a newcomer for whom there is no room is refused with 503 and a time to come back. Nobody who is here has to
//! go for it: clients that are put out come back and put out the next.

use rand_chacha::rand_core::Rng;

use crate::engine::Engine;
use crate::engine::routes::Refusal;
use crate::limits::{Limits, RETRY_AFTER_S_MAX, RETRY_AFTER_S_MIN};
use crate::proto::id::{ChatId, ConnId};

/// What there may be only so much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cap {
    /// Connections.
    Connections,
    /// Observers of one chat.
    Observers,
    /// Streams with one token.
    Token,
    /// Requests that wait for a run.
    Waiting,
    /// Memory.
    Memory,
}

impl Cap {
    /// What a newcomer is told.
    pub(super) fn refusal(self, limits: &Limits) -> Refusal {
        let (code, message) = match self {
            Cap::Connections => (
                "too_many_connections",
                format!(
                    "the server has {} connections, as many as it may (--connections-max)",
                    limits.connections_max
                ),
            ),
            Cap::Observers => (
                "too_many_observers",
                format!(
                    "the chat has {} observers, as many as it may (--observers-per-chat)",
                    limits.observers_per_chat_max
                ),
            ),
            Cap::Token => (
                "too_many_with_token",
                format!(
                    "{} streams are open with this token, as many as may (--observers-per-token)",
                    limits.observers_per_token_max
                ),
            ),
            Cap::Waiting => (
                "too_many_waiting",
                format!(
                    "{} requests wait for a run, as many as may (--waiting-max); or ask without wait_ms",
                    limits.waiting_max
                ),
            ),
            Cap::Memory => (
                "out_of_memory",
                format!("the server's memory is used up: {} bytes (--memory-max)", limits.memory_bytes_max),
            ),
        };
        Refusal::new(503, code, format!("{message}; try again later"))
    }
}

impl Engine {
    /// Seconds after which somebody who is told to come later may come: not the same for all, or a herd that was
    /// refused together returns together.
    pub(super) fn retry_after_s(&mut self) -> u64 {
        let choices = RETRY_AFTER_S_MAX - RETRY_AFTER_S_MIN + 1;
        RETRY_AFTER_S_MIN + self.delays.next_u64() % choices
    }

    /// Whether there is room for one more connection.
    pub(super) fn connections_full(&self) -> bool {
        self.conns_len - self.surplus_len >= self.config.limits.connections_max
    }

    /// Whether there is no room for new work in memory.
    pub(super) fn memory_full(&self) -> bool {
        self.memory_bytes() >= self.config.limits.memory_bytes_max
    }

    /// Whether the connection is one for which there was no room.
    pub(super) fn is_surplus(&self, id: ConnId) -> bool {
        self.conn(id).is_some_and(|conn| conn.surplus)
    }

    /// Whether there is no room for one more that follows the chat's run or waits for one: who waits will follow.
    pub(super) fn observers_full(&self, chat: &ChatId) -> bool {
        let following = self.registry.of_chat(chat).map_or(0, |key| self.registry.run(key).observers.len());
        let waiting = self.waiters.get(chat).map_or(0, std::collections::BTreeSet::len);
        following + waiting >= self.config.limits.observers_per_chat_max
    }

    /// Whether there is no room for one more that waits for a run.
    pub(super) fn waiting_full(&self) -> bool {
        self.waiting_len >= self.config.limits.waiting_max
    }
}
