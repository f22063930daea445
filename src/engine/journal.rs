//! What is logged about runs: their lives at debug level, what went wrong with them at warn, each with the ids to look
//! for. Nothing is logged per event or per write, and nothing is decided here.

use crate::engine::Engine;
use crate::proto::id::ConnId;
use crate::proto::registry::RunKey;
use crate::proto::run::{Cause, End};

impl Engine {
    pub(super) fn log_registered(&self, key: RunKey) {
        let run = self.registry.run(key);
        tracing::debug!(run = %run.id, chat = %run.chat, trigger = run.trigger.name(), "a run is registered");
    }

    /// The server closes a run with RUN_ERROR.
    pub(super) fn log_closed(&self, key: RunKey, code: &str, reason: &str) {
        let run = self.registry.run(key);
        let (id, chat) = (run.id, &run.chat);
        match code {
            "stopped" | "shutdown" => tracing::debug!(run = %id, %chat, code, reason, "a run is closed"),
            _ => tracing::warn!(run = %id, %chat, code, reason, "a run went wrong and is closed"),
        }
    }

    pub(super) fn log_commit_timeout(&self, key: RunKey) {
        let run = self.registry.run(key);
        let waited_ms = self.config.limits.commit_ms;
        tracing::warn!(run = %run.id, chat = %run.chat, waited_ms, "the history did not answer in time; the run ends unsaved");
    }

    pub(super) fn log_ended(&self, key: RunKey, end: End) {
        let run = self.registry.run(key);
        let (id, chat, seq) = (run.id, &run.chat, run.head().0);
        let ms = self.now.mono_ms.saturating_sub(run.started.mono_ms);
        match end.cause {
            Cause::Superseded => {
                tracing::debug!(run = %id, %chat, seq, ms, "a newer run took the place of a run");
            }
            Cause::Deleted => tracing::debug!(run = %id, %chat, seq, ms, "a run ends with its chat"),
            Cause::Finalized | Cause::Shutdown => {
                tracing::debug!(run = %id, %chat, seq, ms, saved = end.persisted, "a run ended");
            }
        }
    }

    /// An observer fell out of the window and gets a snapshot.
    pub(super) fn log_reset(&self, id: ConnId) {
        if let Some(observer) = self.observer(id) {
            let run = self.registry.run(observer.run);
            tracing::debug!(run = %run.id, chat = %run.chat, "an observer is too slow for the window and gets a snapshot");
        }
    }

    /// An observer is about to be disconnected because it reads too slowly.
    pub(super) fn log_cut(&self, id: ConnId) {
        if let Some(observer) = self.observer(id) {
            let run = self.registry.run(observer.run);
            tracing::info!(run = %run.id, chat = %run.chat, "an observer reads too slowly and is disconnected");
        }
    }
}
