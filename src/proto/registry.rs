//! The registry names the one run that is retained for each chat, and remembers for a while how runs ended that are
//! no longer retained. Nothing in here happens by timer: eviction is lazy, on reads and registrations.

use std::collections::{BTreeMap, VecDeque};

use slab::Slab;

use crate::limits::TOMBSTONES_MAX;
use crate::proto::id::{ChatId, RunId, Seq};
use crate::proto::run::{Run, State};

/// A run's place in the registry, valid until the run is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey(usize);

/// What is known of a run id.
#[derive(Debug)]
pub enum Known<'a> {
    /// The run is retained.
    Run(RunKey),
    /// It was replaced, evicted or deleted.
    Gone(&'a Tombstone),
}

/// What is left of a run that is not retained any more.
#[derive(Clone, Debug)]
pub struct Tombstone {
    /// Its chat.
    pub chat: ChatId,
    /// Its last state.
    pub state: State,
    /// Its last seq.
    pub seq: Seq,
    /// Events of its producer.
    pub produced: u64,
}

/// All runs.
#[derive(Debug)]
pub struct Registry<S> {
    runs: Slab<Run<S>>,
    by_chat: BTreeMap<ChatId, RunKey>,
    by_id: BTreeMap<RunId, RunKey>,
    /// Retained runs that are over, in the order of their end, with its time.
    ended: VecDeque<(u64, RunKey)>,
    tombstones: BTreeMap<RunId, Tombstone>,
    tombstone_order: VecDeque<RunId>,
    retention_ms: u64,
    retention_max: usize,
}

impl<S> Registry<S> {
    /// No runs yet. Ended ones will be kept for `retention_ms`, `retention_max` at most.
    pub fn new(retention_ms: u64, retention_max: usize) -> Registry<S> {
        Registry {
            runs: Slab::new(),
            by_chat: BTreeMap::new(),
            by_id: BTreeMap::new(),
            ended: VecDeque::new(),
            tombstones: BTreeMap::new(),
            tombstone_order: VecDeque::new(),
            retention_ms,
            retention_max,
        }
    }

    /// The run at this place.
    pub fn run(&self, key: RunKey) -> &Run<S> {
        &self.runs[key.0]
    }

    /// The run at this place, to be changed.
    pub fn run_mut(&mut self, key: RunKey) -> &mut Run<S> {
        &mut self.runs[key.0]
    }

    /// The run that is retained for a chat.
    pub fn of_chat(&self, chat: &ChatId) -> Option<RunKey> {
        self.by_chat.get(chat).copied()
    }

    /// What is known of a run id.
    pub fn known(&self, id: RunId) -> Option<Known<'_>> {
        match self.by_id.get(&id) {
            Some(key) => Some(Known::Run(*key)),
            None => self.tombstones.get(&id).map(Known::Gone),
        }
    }

    /// The retained run of that id.
    pub fn of_id(&self, id: RunId) -> Option<RunKey> {
        self.by_id.get(&id).copied()
    }

    /// All runs, also those that live on only for their observers.
    pub fn all(&self) -> impl Iterator<Item = &Run<S>> {
        self.runs.iter().map(|(_, run)| run)
    }

    /// All retained runs, in the order of their chats.
    pub fn retained(&self) -> impl Iterator<Item = (RunKey, &Run<S>)> {
        self.by_chat.values().map(|key| (*key, self.run(*key)))
    }

    /// Registers a run. The chat must not have another that is open or finalizing; an ended one makes room.
    pub fn register(&mut self, run: Run<S>) -> RunKey {
        let (id, chat) = (run.id, run.chat.clone());
        if let Some(old) = self.of_chat(&chat) {
            assert!(matches!(self.run(old).state, State::Over(_)), "the old run must be over");
            self.forget(old);
        }
        let key = RunKey(self.runs.insert(run));
        self.by_chat.insert(chat, key);
        self.by_id.insert(id, key);
        key
    }

    /// Takes note that a retained run has ended: from now on its age counts.
    pub fn note_end(&mut self, key: RunKey, now_ms: u64) {
        let run = self.run(key);
        debug_assert!(run.retained && matches!(run.state, State::Over(_)));
        self.ended.push_back((now_ms, key));
    }

    /// Lets go of ended runs that are too old or too many, oldest first. Returns their places; those that still
    /// have observers live on until [`Registry::remove`].
    pub fn evict(&mut self, now_ms: u64) -> Vec<RunKey> {
        let mut evicted = Vec::new();
        while let Some((ended_ms, key)) = self.ended.front().copied() {
            let old = now_ms.saturating_sub(ended_ms) >= self.retention_ms;
            if !old && self.ended.len() <= self.retention_max {
                break;
            }
            self.forget(key);
            evicted.push(key);
        }
        evicted
    }

    /// The chat's retained run is not named any more; a tombstone keeps its state.
    pub fn forget(&mut self, key: RunKey) {
        let run = &mut self.runs[key.0];
        debug_assert!(run.retained, "a run is forgotten once");
        run.retained = false;
        let (id, chat, state) = (run.id, run.chat.clone(), run.state);
        let stone = Tombstone { chat: chat.clone(), state, seq: run.head(), produced: run.produced };
        debug_assert!(matches!(state, State::Over(_)), "only what is over is forgotten");
        if self.by_chat.get(&chat) == Some(&key) {
            self.by_chat.remove(&chat);
        }
        self.by_id.remove(&id);
        self.ended.retain(|(_, ended)| *ended != key);
        self.bury(id, stone);
    }

    /// Takes a run that is neither retained nor observed out of memory.
    pub fn remove(&mut self, key: RunKey) -> Run<S> {
        let run = self.runs.remove(key.0);
        debug_assert!(!run.retained && run.observers.is_empty());
        run
    }

    /// Number of runs in memory.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether there is no run in memory.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    fn bury(&mut self, id: RunId, stone: Tombstone) {
        self.tombstones.insert(id, stone);
        self.tombstone_order.push_back(id);
        if self.tombstone_order.len() > TOMBSTONES_MAX
            && let Some(oldest) = self.tombstone_order.pop_front()
        {
            self.tombstones.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::accumulator::Punctuation;
    use crate::proto::history::Trigger;
    use crate::proto::id::Now;
    use crate::proto::run::{Cause, End};

    static NONE: Punctuation = Punctuation {
        separator: b"",
        text_end: b"",
        attributes_start: b"",
        attribute_separator: b"",
        attributes_end: b"",
        entry_end: b"",
    };

    fn run(number: u128, chat: &str) -> Run<()> {
        let chat = ChatId::parse(chat).unwrap();
        Run::new(RunId::from_bits(number), chat, Trigger::User, Now::default(), 8, &NONE)
    }

    fn end(registry: &mut Registry<()>, key: RunKey, now_ms: u64) {
        registry.run_mut(key).state = State::Over(End { persisted: true, cause: Cause::Finalized });
        registry.note_end(key, now_ms);
    }

    #[test]
    fn ended_runs_go_by_age_and_count_oldest_first_and_open_ones_never() {
        let mut registry = Registry::new(1_000, 2);
        let keys: Vec<_> = (0..5).map(|n| registry.register(run(n, &format!("chat {n}")))).collect();
        for (time, key) in keys[..4].iter().enumerate() {
            end(&mut registry, *key, time as u64 * 100);
        }
        assert_eq!(registry.evict(400), keys[..2]);
        assert_eq!(registry.evict(1_199), []);
        assert_eq!(registry.evict(1_200), keys[2..3]);
        assert_eq!(registry.evict(9_999), keys[3..4]);
        assert_eq!(registry.evict(99_999), []);
        assert_eq!(registry.of_chat(&ChatId::parse("chat 4").unwrap()), Some(keys[4]));
        assert!(matches!(registry.known(RunId::from_bits(0)), Some(Known::Gone(_))));
    }

    #[test]
    fn a_new_run_takes_the_place_of_an_ended_one_and_only_that() {
        let mut registry = Registry::new(1_000, 2);
        let old = registry.register(run(1, "c"));
        end(&mut registry, old, 0);
        let new = registry.register(run(2, "c"));
        assert_eq!(registry.of_chat(&ChatId::parse("c").unwrap()), Some(new));
        assert_eq!(registry.evict(99_999), []);
        assert_eq!(registry.of_id(RunId::from_bits(2)), Some(new));
    }

    #[test]
    fn tombstones_are_bounded() {
        let mut registry = Registry::new(0, 0);
        for number in 0..TOMBSTONES_MAX as u128 + 10 {
            let key = registry.register(run(number, "c"));
            end(&mut registry, key, 0);
            for key in registry.evict(0) {
                registry.remove(key);
            }
        }
        assert_eq!(registry.tombstones.len(), TOMBSTONES_MAX);
        assert!(registry.known(RunId::from_bits(0)).is_none());
        assert!(registry.is_empty());
    }
}
