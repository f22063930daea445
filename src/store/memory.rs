//! What the writing thread remembers between transactions, and can take back when one fails.

use super::ledger::Finalization;
use crate::proto::id::{ChatId, RunId};
use std::collections::{BTreeMap, VecDeque};

/// Runs that began and whose commit hasn't come, at most: far more than a server has at once. The oldest is forgotten
/// beyond that (an engine that gave up on a commit never sends it), and its commit is skipped.
const BEGUN_MAX: usize = 65_536;

/// Failed finalizations that wait to be recorded, at most. More can't be recorded while the disk is full; the oldest
/// is dropped then, with a message in the log.
const OWED_MAX: usize = 4_096;

/// A run that began.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) chat: ChatId,
    /// The chat's revision at that time; none if it couldn't be read.
    pub(super) revision: Option<i64>,
    /// Rises with every start.
    order: u64,
}

/// The runs that began. Changes are kept or reverted together, as the transaction that they belong to ends.
#[derive(Debug, Default)]
pub(super) struct Begun {
    starts: BTreeMap<RunId, Start>,
    /// What `starts` held before each change since the last `keep` or `revert`.
    undo: Vec<(RunId, Option<Start>)>,
    /// Starts so far.
    count: u64,
}

impl Begun {
    /// Notes a start; the first one of a run counts.
    pub(super) fn start(&mut self, run: RunId, chat: ChatId, revision: Option<i64>) {
        if self.starts.contains_key(&run) {
            return;
        }
        if self.starts.len() >= BEGUN_MAX {
            let oldest = self.starts.iter().min_by_key(|(_, start)| start.order).map(|(run, _)| *run);
            if let Some(oldest) = oldest {
                tracing::warn!(run = %oldest, "too many runs without a commit: forgot the oldest");
                self.take(oldest);
            }
        }
        self.count += 1;
        self.starts.insert(run, Start { chat, revision, order: self.count });
        self.undo.push((run, None));
    }

    /// Takes a run's start out.
    pub(super) fn take(&mut self, run: RunId) -> Option<Start> {
        let start = self.starts.remove(&run)?;
        self.undo.push((run, Some(start.clone())));
        Some(start)
    }

    /// Takes out all runs of a chat.
    pub(super) fn forget_chat(&mut self, chat: &ChatId) {
        let runs: Vec<RunId> =
            self.starts.iter().filter(|(_, start)| start.chat == *chat).map(|(run, _)| *run).collect();
        for run in runs {
            self.take(run);
        }
    }

    /// The transaction succeeded.
    pub(super) fn keep(&mut self) {
        self.undo.clear();
    }

    /// The transaction failed: everything is as before.
    pub(super) fn revert(&mut self) {
        while let Some((run, before)) = self.undo.pop() {
            match before {
                Some(start) => self.starts.insert(run, start),
                None => self.starts.remove(&run),
            };
        }
    }
}

/// Runs whose commit is withdrawn, each until its commit must have been reached.
#[derive(Debug, Default)]
pub(super) struct Withdrawn(BTreeMap<RunId, u64>);

impl Withdrawn {
    /// Notes a withdrawal. Its commit is among the first `jobs` jobs of the store's life.
    pub(super) fn note(&mut self, run: RunId, jobs: u64) {
        self.0.insert(run, jobs);
    }

    pub(super) fn contains(&self, run: RunId) -> bool {
        self.0.contains_key(&run)
    }

    /// The first `jobs` jobs are done: forgets what had to be among them.
    pub(super) fn forget(&mut self, jobs: u64) {
        self.0.retain(|_, last| *last > jobs);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Finalizations that couldn't be recorded yet, oldest first.
#[derive(Debug, Default)]
pub(super) struct Owed(VecDeque<Finalization>);

impl Owed {
    pub(super) fn push(&mut self, row: Finalization) {
        if self.0.len() >= OWED_MAX
            && let Some(dropped) = self.0.pop_front()
        {
            tracing::error!(run = %dropped.run, "the outcome of a run will never be recorded: too many wait for the disk");
        }
        self.0.push_back(row);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Finalization> {
        self.0.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them are recorded.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reverting_restores_what_was_begun() {
        let (a, b) = (RunId::from_bits(1), RunId::from_bits(2));
        let chat = ChatId::parse("c").unwrap();
        let mut begun = Begun::default();
        begun.start(a, chat.clone(), Some(5));
        begun.keep();
        begun.start(b, chat.clone(), Some(6));
        begun.start(a, chat.clone(), Some(7));
        begun.forget_chat(&chat);
        begun.revert();
        assert!(begun.take(b).is_none());
        assert_eq!(begun.take(a).and_then(|start| start.revision), Some(5));
    }

    #[test]
    fn the_oldest_start_is_forgotten_beyond_the_bound() {
        let chat = ChatId::parse("c").unwrap();
        let mut begun = Begun::default();
        for number in 0..=BEGUN_MAX as u128 {
            begun.start(RunId::from_bits(number), chat.clone(), Some(0));
            begun.keep();
        }
        assert!(begun.take(RunId::from_bits(0)).is_none());
        assert!(begun.take(RunId::from_bits(1)).is_some());
    }

    #[test]
    fn a_withdrawal_is_forgotten_once_its_commit_must_have_been_reached() {
        let mut withdrawn = Withdrawn::default();
        withdrawn.note(RunId::from_bits(1), 3);
        withdrawn.forget(2);
        assert!(withdrawn.contains(RunId::from_bits(1)));
        withdrawn.forget(3);
        assert_eq!(withdrawn.len(), 0);
    }
}
