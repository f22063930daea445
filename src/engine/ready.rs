//! Readiness: whether the server takes new work, and if not, why. A server that is alive but not ready is left in
//! peace by what starts servers, and left out by what sends them clients.

use crate::engine::Engine;
use crate::engine::caps::Cap;
use crate::engine::routes::Refusal;
use crate::limits::STORE_SILENT_MS;
use crate::proto::history::Job;
use crate::proto::id::Now;

/// What the store owes, and since when it has been silent.
#[derive(Debug, Default)]
pub(super) struct StoreWatch {
    /// Answers that are to come.
    pub(super) owed: u64,
    /// When the store last answered, or was first asked again.
    since_ms: u64,
}

impl StoreWatch {
    /// The store is given a job.
    pub(super) fn asked(&mut self, now: Now, job: &Job) {
        let answers = match job {
            Job::Begin { .. } => 0,
            Job::Open(opening) => 1 + u64::from(opening.replaced.is_some()),
            Job::Commit(_)
            | Job::Delete { .. }
            | Job::FindRetry { .. }
            | Job::Chats { .. }
            | Job::Chat { .. } => 1,
        };
        if self.owed == 0 {
            self.since_ms = now.mono_ms;
        }
        self.owed += answers;
    }

    /// The store answered.
    pub(super) fn answered(&mut self, now: Now) {
        debug_assert!(self.owed > 0, "the store answers what it is asked, once");
        self.owed = self.owed.saturating_sub(1);
        self.since_ms = now.mono_ms;
    }

    fn is_stuck(&self, now: Now) -> bool {
        self.owed > 0 && now.mono_ms >= self.since_ms + STORE_SILENT_MS
    }
}

impl Engine {
    /// Why no new work is taken, if none is.
    pub(super) fn unready(&self) -> Option<Refusal> {
        let limits = &self.config.limits;
        if self.stopping {
            Some(Refusal::new(503, "shutting_down", "the server is being shut down"))
        } else if self.store_watch.is_stuck(self.now) {
            let message = "the history does not answer; look at the disk, and at who else uses the database";
            Some(Refusal::new(503, "store_stuck", message))
        } else if self.memory_full() {
            Some(Cap::Memory.refusal(limits))
        } else if self.connections_full() {
            Some(Cap::Connections.refusal(limits))
        } else {
            None
        }
    }
}
