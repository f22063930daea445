//! The *writer*: the thread that carries out jobs in order, many in one transaction.
//!
//! It answers a job only after the transaction's COMMIT succeeded. If a group fails, it is rolled back and each of its
//! jobs is carried out in a transaction of its own, so that one bad job doesn't sink the others.

use super::ledger::{self, Finalization};
use super::memory::{Begun, Owed, Withdrawn};
use super::reader;
use crate::proto::history::{Answer, Job, Opening, Outcome, RetryPoint, Turn};
use crate::proto::id::RunId;
use crossbeam_channel::Receiver;
use rusqlite::{Connection, ErrorCode};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Jobs in one transaction, at most: enough to share one fsync among many runs, few enough that the first isn't kept
/// waiting for long.
pub(super) const GROUP_JOBS_MAX: usize = 256;

/// A group takes no further job once its turns hold this many bytes, for the same reason.
pub(super) const GROUP_BYTES_MAX: u64 = 8 << 20;

/// The writing thread's state.
pub(super) struct Writer<F> {
    pub(super) db: Connection,
    /// What messages call the database.
    name: String,
    jobs: Receiver<Job>,
    withdrawals: Receiver<RunId>,
    answer: F,
    /// Jobs taken from the queue so far.
    taken: u64,
    begun: Begun,
    withdrawn: Withdrawn,
    owed: Owed,
    /// The job of this run panics.
    #[cfg(test)]
    pub(super) sabotaged: Option<RunId>,
}

/// Why a transaction failed.
#[derive(Debug)]
enum Trouble {
    Sqlite(rusqlite::Error),
    Panic,
}

impl Trouble {
    /// Another process holds the database: trying the next job at once would only wait again.
    fn locked(&self) -> bool {
        matches!(self, Trouble::Sqlite(error)
            if matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)))
    }

    /// The word that is recorded.
    fn reason(&self) -> &'static str {
        let Trouble::Sqlite(error) = self else { return "panic" };
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => "disk_full",
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "locked",
            Some(ErrorCode::ReadOnly) => "read_only",
            Some(ErrorCode::SystemIoFailure) => "io",
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => "corrupt",
            Some(ErrorCode::TooBig) => "too_big",
            _ => "other",
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Sqlite(error) => error.fmt(f),
            Trouble::Panic => f.write_str("the job panicked; this is a defect of the server"),
        }
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Trouble::Sqlite(error)
    }
}

impl<F: Fn(Answer)> Writer<F> {
    /// A writer on an open database.
    pub(super) fn new(
        db: Connection,
        name: String,
        jobs: Receiver<Job>,
        withdrawals: Receiver<RunId>,
        answer: F,
    ) -> Writer<F> {
        Writer {
            db,
            name,
            jobs,
            withdrawals,
            answer,
            taken: 0,
            begun: Begun::default(),
            withdrawn: Withdrawn::default(),
            owed: Owed::default(),
            #[cfg(test)]
            sabotaged: None,
        }
    }

    /// The thread's life: works until the queue is closed and empty.
    pub(super) fn run(mut self) {
        while let Some(group) = self.next_group() {
            self.carry_out(&group);
        }
        self.record_owed_alone();
    }

    /// Waits for a job and takes what is queued behind it; none when the queue is closed and empty.
    pub(super) fn next_group(&mut self) -> Option<Vec<Job>> {
        let first = self.jobs.recv().ok()?;
        let mut bytes = weight(&first);
        let mut group = vec![first];
        while group.len() < GROUP_JOBS_MAX && bytes < GROUP_BYTES_MAX {
            let Ok(job) = self.jobs.try_recv() else { break };
            bytes += weight(&job);
            group.push(job);
        }
        self.taken += group.len() as u64;
        Some(group)
    }

    /// Carries out a group and answers its jobs, in order.
    pub(super) fn carry_out(&mut self, group: &[Job]) {
        match self.together(group) {
            Ok(answers) => answers.into_iter().for_each(&self.answer),
            Err(trouble) => self.one_by_one(group, trouble),
        }
        self.withdrawn.forget(self.taken);
        if group.iter().any(|job| matches!(job, Job::Delete { .. })) {
            self.empty_log();
        }
    }

    /// Carries out the jobs of a group that failed.
    fn one_by_one(&mut self, group: &[Job], mut trouble: Trouble) {
        if group.len() > 1 {
            tracing::warn!(
                database = self.name, %trouble, jobs = group.len(),
                "a transaction failed: trying each of its jobs alone"
            );
        }
        for job in group {
            let futile = group.len() == 1 || (trouble.locked() && writes(job));
            let answers =
                if futile { Err(None) } else { self.together(std::slice::from_ref(job)).map_err(Some) };
            match answers {
                Ok(answers) => answers.into_iter().for_each(&self.answer),
                Err(own) => {
                    // A lock that shows only now spares the jobs behind it the wait.
                    trouble = own.unwrap_or(trouble);
                    self.fail(job, &trouble).into_iter().for_each(&self.answer);
                }
            }
        }
    }

    /// Carries out jobs in one transaction, all or none.
    fn together(&mut self, jobs: &[Job]) -> Result<Vec<Answer>, Trouble> {
        let attempt = catch_unwind(AssertUnwindSafe(|| self.attempt(jobs)));
        let result = attempt.unwrap_or(Err(Trouble::Panic));
        if result.is_ok() {
            self.begun.keep();
            return result;
        }
        self.begun.revert();
        // SQLite itself rolls back on some errors.
        if !self.db.is_autocommit()
            && let Err(error) = self.db.execute_batch("ROLLBACK")
        {
            tracing::error!(database = self.name, %error, "a failed transaction can't be rolled back");
        }
        result
    }

    fn attempt(&mut self, jobs: &[Job]) -> Result<Vec<Answer>, Trouble> {
        // Begins only read, and in WAL mode readers aren't held up by another process's lock.
        let writing = jobs.iter().any(writes);
        if writing {
            self.db.execute_batch("BEGIN IMMEDIATE")?;
            self.record_owed()?;
        }
        let mut answers = Vec::with_capacity(jobs.len());
        for job in jobs {
            answers.extend(self.job(job)?);
        }
        if writing {
            self.db.execute_batch("COMMIT")?;
            self.owed.clear();
        }
        Ok(answers)
    }

    /// Carries out one job inside the transaction.
    fn job(&mut self, job: &Job) -> Result<Vec<Answer>, Trouble> {
        match job {
            Job::Begin { run, chat } => {
                let revision = ledger::revision(&self.db, chat)?;
                self.begun.start(*run, chat.clone(), Some(revision));
                Ok(Vec::new())
            }
            Job::Commit(turn) => {
                #[cfg(test)]
                assert_ne!(self.sabotaged, Some(turn.run), "sabotaged");
                Ok(vec![self.finalize(turn)?])
            }
            Job::Open(opening) => Ok(self.open(opening)?),
            Job::Delete { ticket, chat, cut, wall_ms } => {
                ledger::delete(&self.db, chat, *cut, *wall_ms)?;
                self.begun.forget_chat(chat);
                Ok(vec![Answer::Deleted { ticket: *ticket, done: true }])
            }
            Job::FindRetry { ticket, chat, message_index } => {
                let point = ledger::find_retry(&self.db, chat, *message_index)?;
                Ok(vec![Answer::RetryPoint { ticket: *ticket, point }])
            }
            Job::Chats { .. } | Job::Chat { .. } => {
                Ok(reader::page(&self.db, &self.name, job).into_iter().collect())
            }
        }
    }

    fn finalize(&mut self, turn: &Turn) -> Result<Answer, Trouble> {
        self.take_withdrawals();
        let start = self.begun.take(turn.run);
        let outcome = ledger::finalize(&self.db, turn, start, self.withdrawn.contains(turn.run))?;
        Ok(Answer::Finalized { run: turn.run, outcome })
    }

    /// Begins a turn. The partial answer whose place it takes is stored with it, or neither is.
    fn open(&mut self, opening: &Opening) -> Result<Vec<Answer>, Trouble> {
        let mut answers = Vec::with_capacity(2);
        if let Some(turn) = &opening.replaced {
            answers.push(self.finalize(turn)?);
        }
        let opened = ledger::open(&self.db, opening)?;
        let revision = ledger::revision(&self.db, &opening.chat)?;
        self.begun.start(opening.run, opening.chat.clone(), Some(revision));
        answers.push(Answer::Opened { run: opening.run, opened: Some(opened) });
        Ok(answers)
    }

    /// Notes everything that was withdrawn so far. Its commits were queued before.
    fn take_withdrawals(&mut self) {
        while let Ok(run) = self.withdrawals.try_recv() {
            self.withdrawn.note(run, self.taken + self.jobs.len() as u64);
        }
    }

    /// What is left to do for a job that failed: remember what has to be recorded, and say so.
    fn fail(&mut self, job: &Job, trouble: &Trouble) -> Vec<Answer> {
        let database = &self.name;
        let answers = match job {
            Job::Begin { run, chat } => {
                tracing::error!(database, %run, %chat, %trouble, "a run's start isn't known: its turn won't be saved");
                self.begun.start(*run, chat.clone(), None);
                Vec::new()
            }
            Job::Commit(turn) => vec![self.fail_commit(turn, trouble)],
            Job::Open(opening) => {
                let (run, chat) = (opening.run, &opening.chat);
                tracing::error!(database, %run, %chat, %trouble, "a turn couldn't be begun: its message isn't saved");
                self.begun.start(run, chat.clone(), None);
                let replaced = opening.replaced.as_ref().map(|turn| self.fail_commit(turn, trouble));
                replaced.into_iter().chain([Answer::Opened { run, opened: None }]).collect()
            }
            Job::FindRetry { ticket, chat, .. } => {
                tracing::error!(database, %chat, %trouble, "a chat's last turn can't be read");
                vec![Answer::RetryPoint { ticket: *ticket, point: RetryPoint::Failed }]
            }
            Job::Delete { ticket, chat, cut, wall_ms } => {
                tracing::error!(database, %chat, %trouble, "a chat couldn't be deleted");
                if let Some(run) = *cut {
                    let (chat, outcome) = (Some(chat.clone()), Outcome::Skipped);
                    self.begun.take(run);
                    self.owed.push(Finalization {
                        run,
                        chat,
                        outcome,
                        reason: Some("deleted"),
                        at_ms: *wall_ms,
                    });
                }
                vec![Answer::Deleted { ticket: *ticket, done: false }]
            }
            Job::Chats { .. } | Job::Chat { .. } => {
                reader::page(&self.db, &self.name, job).into_iter().collect()
            }
        };
        self.begun.keep();
        answers
    }

    fn fail_commit(&mut self, turn: &Turn, trouble: &Trouble) -> Answer {
        let (run, outcome) = (turn.run, Outcome::Failed);
        tracing::error!(database = self.name, %run, chat = %turn.chat, %trouble, "a turn couldn't be saved");
        self.begun.take(run);
        self.owed.push(Finalization {
            run,
            chat: Some(turn.chat.clone()),
            outcome,
            reason: Some(trouble.reason()),
            at_ms: turn.ended_wall_ms,
        });
        Answer::Finalized { run, outcome }
    }

    /// Records, inside the transaction, the outcomes that couldn't be recorded when they came about.
    fn record_owed(&self) -> Result<(), Trouble> {
        for row in self.owed.iter() {
            ledger::record(&self.db, row)?;
        }
        Ok(())
    }

    /// A last attempt, for a disk that recovered with nobody writing to it.
    fn record_owed_alone(&mut self) {
        let record = || {
            self.db.execute_batch("BEGIN IMMEDIATE")?;
            self.record_owed()?;
            self.db.execute_batch("COMMIT")?;
            Ok::<(), Trouble>(())
        };
        if !self.owed.is_empty()
            && let Err(trouble) = record()
        {
            tracing::error!(database = self.name, %trouble, "the outcomes of failed commits couldn't be recorded");
        }
    }

    /// Folds the log into the file after a deletion, so that it keeps no copy of what was deleted. What a reader
    /// still holds back stays until the log is written over.
    fn empty_log(&self) {
        if let Err(error) = self.db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)") {
            tracing::warn!(database = self.name, %error, "the log of a deletion couldn't be emptied yet");
        }
    }
}

/// Whether a job needs the database's write lock.
fn writes(job: &Job) -> bool {
    matches!(job, Job::Commit(_) | Job::Open(_) | Job::Delete { .. })
}

/// Bytes that a job brings.
fn weight(job: &Job) -> u64 {
    match job {
        Job::Commit(turn) => turn.events.len(),
        Job::Open(opening) => opening.replaced.as_ref().map_or(0, |turn| turn.events.len()),
        Job::Begin { .. }
        | Job::FindRetry { .. }
        | Job::Delete { .. }
        | Job::Chats { .. }
        | Job::Chat { .. } => 0,
    }
}
