//! The store's model: the same jobs and answers, on maps, with delays, failures and hangs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rejoin::proto::history::{Answer, Job, Opened, Opening, Outcome, Page, RetryPoint, Turn};
use rejoin::proto::id::{ChatId, RunId};

use crate::rng::Rng;
use crate::swarm::Swarm;

/// A turn's number and the message that it began with.
type Begun = (u64, Option<Vec<u8>>);

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
    /// Turns of agents, by chat.
    turns: BTreeMap<ChatId, Vec<Begun>>,
    last_turn: u64,
    /// Runs whose turn was begun.
    pub opened: BTreeSet<RunId>,
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
    pub fn step(&mut self, now_ms: u64, rng: &mut Rng, swarm: &Swarm) -> Vec<Answer> {
        match self.hangs_until_ms {
            Some(until) if until > now_ms => return Vec::new(),
            Some(_) => self.hangs_until_ms = None,
            None => {
                let commit = matches!(self.queue.front(), Some(Job::Commit(_) | Job::Open(_)));
                if commit && rng.below(100) < swarm.commit_hangs {
                    self.hangs_until_ms = Some(now_ms + rng.below(60_000) as u64);
                    return Vec::new();
                }
            }
        }
        let Some(job) = self.queue.pop_front() else { return Vec::new() };
        match job {
            Job::Begin { run, chat } => {
                let revision = self.revisions.get(&chat).copied().unwrap_or(0);
                self.begun.insert(run, (chat, revision));
                Vec::new()
            }
            Job::Commit(turn) => vec![self.commit(&turn, rng.below(100) < swarm.commit_fails)],
            Job::Open(opening) => self.open(*opening, rng.below(100) < swarm.commit_fails),
            Job::FindRetry { ticket, chat, message_index } => {
                let turns = self.turns.get(&chat).map_or(&[][..], Vec::as_slice);
                let found = match message_index {
                    None => turns.last(),
                    Some(index) => turns.get(usize::try_from(index).unwrap()),
                };
                let point = match found {
                    Some((turn, Some(message))) => RetryPoint::Turn(*turn, message.clone()),
                    Some((_, None)) | None if message_index.is_none() => RetryPoint::Nothing,
                    Some((_, None)) | None => RetryPoint::NoUserMessage,
                };
                vec![Answer::RetryPoint { ticket, point }]
            }
            Job::Delete { ticket, chat, .. } => {
                self.revisions.remove(&chat);
                self.begun.retain(|_, (begun, _)| *begun != chat);
                self.turns.remove(&chat);
                vec![Answer::Deleted { ticket, done: true }]
            }
            Job::Chats { ticket, .. } => vec![Answer::Page { ticket, page: Page::Found(b"{}".to_vec()) }],
            Job::Chat { ticket, .. } => vec![Answer::Page { ticket, page: Page::Missing }],
        }
    }

    /// All of it, or nothing.
    fn open(&mut self, opening: Opening, fails: bool) -> Vec<Answer> {
        let mut answers: Vec<Answer> = opening.replaced.iter().map(|turn| self.commit(turn, fails)).collect();
        if fails {
            self.begun.remove(&opening.run);
            answers.push(Answer::Opened { run: opening.run, opened: None });
            return answers;
        }
        self.last_revision += 1;
        self.last_turn += 1;
        self.revisions.insert(opening.chat.clone(), self.last_revision);
        self.begun.insert(opening.run, (opening.chat.clone(), self.last_revision));
        self.opened.insert(opening.run);
        let turns = self.turns.entry(opening.chat).or_default();
        turns.retain(|(turn, _)| opening.drop_from_turn.is_none_or(|dropped| *turn < dropped));
        let has_history = !turns.is_empty();
        turns.push((self.last_turn, opening.messages.first().map(|message| message.json.clone())));
        let opened = Opened { messages: Vec::new(), runtime: opening.runtime_default, has_history };
        answers.push(Answer::Opened { run: opening.run, opened: Some(opened) });
        answers
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
