//! The *store* keeps committed turns in SQLite, on a thread of its own.
//!
//! It carries out [`Job`]s in order and answers each when it is done; what a job means for a run is the engine's
//! business. It knows no run state, no socket and no clock: times come with the jobs.
//!
//! A file database has a second thread with a read-only connection, so that a slow commit doesn't hold up readers.
//! A page that is asked for after a commit's answer was delivered shows that commit.

mod error;
mod examine;
mod ledger;
mod memory;
mod reader;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

pub use error::OpenError;
pub use examine::{Examination, examine};

use crate::proto::history::{Answer, Job};
use crate::proto::id::RunId;
use crossbeam_channel::{Sender, bounded, unbounded};
use std::path::PathBuf;
use std::thread::JoinHandle;

/// Where the history is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DbPath {
    /// In memory: gone with the process.
    Memory,
    /// In this file, which is created if there is none.
    File(PathBuf),
}

/// What a store is opened with.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Where the history is kept.
    pub path: DbPath,
    /// Jobs that may wait, at most; readers' jobs wait in a queue of the same size.
    pub queue_jobs_max: usize,
    /// How long a job waits for a database that another process has locked, in milliseconds, before it fails.
    pub busy_ms: u64,
}

/// The handle of a running store.
#[derive(Debug)]
pub struct Store {
    jobs: Sender<Job>,
    /// The queue of the reading thread, if there is one.
    reads: Option<Sender<Job>>,
    /// Runs whose commit is withdrawn. The engine withdraws a commit at most once and only while it waits for the
    /// answer, so the full job queue bounds this one.
    withdrawals: Sender<RunId>,
    writer: JoinHandle<()>,
    reader: Option<JoinHandle<()>>,
}

impl Store {
    /// Opens the database and starts its threads. `answer` is called on them, once for each job but `Begin`; while
    /// it runs, nothing else is stored.
    pub fn open(
        config: &StoreConfig,
        answer: impl Fn(Answer) + Send + Sync + Clone + 'static,
    ) -> Result<Store, OpenError> {
        let path = config.path.name();
        let name = path.display().to_string();
        let db = schema::open_writer(config)?;
        let (reads, reader) = match &config.path {
            DbPath::Memory => (None, None),
            DbPath::File(file) => {
                let (reads, jobs) = bounded(config.queue_jobs_max);
                let db = schema::open_reader(config, file)?;
                let (name, answer) = (name.clone(), answer.clone());
                let thread = spawn("store-read", move || reader::run(&db, &name, &jobs, answer));
                (Some(reads), Some(thread.map_err(|error| OpenError::System { path: path.clone(), error })?))
            }
        };
        let (jobs, queued) = bounded(config.queue_jobs_max);
        let (withdrawals, withdrawn) = unbounded();
        let writer = writer::Writer::new(db, name, queued, withdrawn, answer);
        let writer =
            spawn("store", move || writer.run()).map_err(|error| OpenError::System { path, error })?;
        Ok(Store { jobs, reads, withdrawals, writer, reader })
    }

    /// Queues a job, without ever waiting. The job comes back if the queue is full or its thread is gone.
    #[expect(
        clippy::result_large_err,
        reason = "a refused job goes back to its owner, who still has to answer for it"
    )]
    pub fn submit(&self, job: Job) -> Result<(), Job> {
        let queue = match (&job, &self.reads) {
            (Job::Chats { .. } | Job::Chat { .. }, Some(reads)) => reads,
            _ => &self.jobs,
        };
        queue.try_send(job).map_err(|refused| refused.into_inner())
    }

    /// Withdraws the commit of a run: if it hasn't been started yet, it will be recorded as skipped. Its answer comes
    /// all the same. Works while the store's thread is stuck.
    pub fn withdraw(&self, run: RunId) {
        // The thread takes these before each commit; if it is gone, there is no commit to withdraw.
        let _ = self.withdrawals.send(run);
    }

    /// Lets the queued jobs finish and waits for the threads to end.
    pub fn close(self) {
        // Readers first: the last connection to close is then the one that can fold the log into the file.
        drop(self.reads);
        let reader = self.reader.map_or(Ok(()), JoinHandle::join);
        drop(self.jobs);
        if self.writer.join().and(reader).is_err() {
            tracing::error!("a store thread ended in a panic");
        }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body)
}
