//! The store's model: the same jobs and answers, on maps, with delays, failures and hangs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rejoin::proto::history::{Answer, Job, Outcome, Page, Turn};
use rejoin::proto::id::{ChatId, RunId};

use crate::rng::Rng;
use crate::swarm::Swarm;

/// What the store knows.
#[derive(Debug, Default)]
pub struct StoreModel {
    queue: VecDeque<Job>,
    revisions: BTreeMap<ChatId, u64>,
    last_revision: u64,
    begun: BTreeMap<RunId, (ChatId, u64)>,
    withdrawn: BTreeSet<RunId>,
    /// The commit that is being carried out takes until then.
    hangs_until_ms: Option<u64>,
    /// Runs that are in the history.
    pub committed: BTreeSet<RunId>,
    /// Outcomes that were answered.
    pub answered: BTreeMap<RunId, Outcome>,
    /// The compacted events of each run that came to be committed.
    pub saved: BTreeMap<RunId, Vec<u8>>,
}

impl StoreModel {
    pub fn submit(&mut self, job: Job) {
        self.queue.push_back(job);
    }

    pub fn withdraw(&mut self, run: RunId) {
        self.withdrawn.insert(run);
    }

    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Carries out the next job, unless the store hangs.
    pub fn step(&mut self, now_ms: u64, rng: &mut Rng, swarm: &Swarm) -> Option<Answer> {
        match self.hangs_until_ms {
            Some(until) if until > now_ms => return None,
            Some(_) => self.hangs_until_ms = None,
            None => {
                let commit = matches!(self.queue.front(), Some(Job::Commit(_)));
                if commit && rng.below(100) < swarm.commit_hangs {
                    self.hangs_until_ms = Some(now_ms + rng.below(60_000) as u64);
                    return None;
                }
            }
        }
        match self.queue.pop_front()? {
            Job::Begin { run, chat } => {
                let revision = self.revisions.get(&chat).copied().unwrap_or(0);
                self.begun.insert(run, (chat, revision));
                None
            }
            Job::Commit(turn) => Some(self.commit(&turn, rng.below(100) < swarm.commit_fails)),
            Job::Delete { ticket, chat, .. } => {
                self.revisions.remove(&chat);
                self.begun.retain(|_, (begun, _)| *begun != chat);
                Some(Answer::Deleted { ticket, done: true })
            }
            Job::Chats { ticket, .. } => Some(Answer::Page { ticket, page: Page::Found(b"{}".to_vec()) }),
            Job::Chat { ticket, .. } => Some(Answer::Page { ticket, page: Page::Missing }),
        }
    }

    fn commit(&mut self, turn: &Turn, fails: bool) -> Answer {
        assert!(!self.answered.contains_key(&turn.run), "{} is committed twice", turn.run);
        self.saved.insert(turn.run, turn.events.to_vec());
        let current = self.revisions.get(&turn.chat).copied().unwrap_or(0);
        let outcome = if self.withdrawn.contains(&turn.run)
            || self.begun.get(&turn.run).map(|(_, revision)| *revision) != Some(current)
        {
            Outcome::Skipped
        } else if fails {
            Outcome::Failed
        } else {
            self.last_revision += 1;
            self.revisions.insert(turn.chat.clone(), self.last_revision);
            self.committed.insert(turn.run);
            Outcome::Committed
        };
        self.answered.insert(turn.run, outcome);
        Answer::Finalized { run: turn.run, outcome }
    }
}
