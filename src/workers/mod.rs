//! Workers serialise snapshots on a rayon pool. They know wire values and nothing of the engine; what they make
//! goes back through a callback, in any order.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use crate::proto::id::Ticket;
use crate::wire::snapshot::{Snapshot, SnapshotJob};

/// A pool of worker threads.
#[derive(Debug)]
pub struct Workers {
    pool: ThreadPool,
}

impl Workers {
    /// Starts `threads` workers.
    pub fn new(threads: usize) -> Result<Workers, ThreadPoolBuildError> {
        let name = |number| format!("snapshot-{number}");
        Ok(Workers { pool: ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build()? })
    }

    /// Serialises a snapshot on some worker and passes it to `done`; `None` if the job panicked.
    pub fn submit(&self, job: SnapshotJob, done: impl FnOnce(Ticket, Option<Snapshot>) + Send + 'static) {
        self.pool.spawn(move || {
            let ticket = job.ticket;
            let snapshot = catch_unwind(AssertUnwindSafe(|| job.encode())).ok();
            if snapshot.is_none() {
                tracing::error!(run = %job.run, "a snapshot could not be serialised; its observers are disconnected");
            }
            done(ticket, snapshot);
        });
    }
}
