//! A run: the events of one turn in two shapes (the log's last frames and all of them compacted), its life cycle,
//! and who observes it.

use std::sync::Arc;

use crate::proto::accumulator::{Accumulator, EntryId, Punctuation};
use crate::proto::event::{Kind, Mark};
use crate::proto::history::Trigger;
use crate::proto::id::{ChatId, ConnId, Now, RunId, Seq, Ticket};
use crate::proto::log::Log;
use crate::proto::parts::Parts;
use crate::proto::pool::BlockPool;
use crate::proto::turn::Asked;

/// Where a run stands: registered → active → finalizing → ended, or cut off before the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It exists; no event came yet.
    Registered,
    /// Its producer writes.
    Active,
    /// Its producer is done; the commit's outcome is awaited.
    Finalizing,
    /// It is over.
    Over(End),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The turn is in the history.
    pub persisted: bool,
    /// Why there are no further events.
    pub cause: Cause,
}

/// Why a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its producer was done and the store answered, or did not answer in time.
    Finalized,
    /// A newer run took its place.
    Superseded,
    /// Its chat was deleted.
    Deleted,
    /// The server is being shut down.
    Shutdown,
}

impl State {
    /// All names that a state can have on the wire.
    pub const NAMES: [&str; 6] = ["registered", "active", "finalizing", "ended", "superseded", "deleted"];

    /// Whether events can be appended.
    pub fn is_open(self) -> bool {
        matches!(self, State::Registered | State::Active)
    }

    /// The state's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            State::Registered => "registered",
            State::Active => "active",
            State::Finalizing => "finalizing",
            State::Over(End { cause: Cause::Superseded, .. }) => "superseded",
            State::Over(End { cause: Cause::Deleted, .. }) => "deleted",
            State::Over(End { cause: Cause::Finalized | Cause::Shutdown, .. }) => "ended",
        }
    }
}

/// One run. `S` is a serialised snapshot, which this room does not look into.
#[derive(Debug)]
pub struct Run<S> {
    /// Its id: the epoch of every cursor.
    pub id: RunId,
    /// Its conversation.
    pub chat: ChatId,
    /// What started it.
    pub trigger: Trigger,
    /// When it was registered.
    pub started: Now,
    /// Where it stands.
    pub state: State,
    /// The last events as frames.
    pub log: Log,
    /// All events, compacted.
    pub text: Accumulator,
    /// Open parts and the agent's own run.
    pub parts: Parts,
    /// Events of the producer itself; what the engine appends does not count.
    pub produced: u64,
    /// Bytes of all events.
    pub event_bytes: u64,
    /// Who follows it. Each knows its place in here.
    pub observers: Vec<ConnId>,
    /// Snapshots in the making or ready, oldest first.
    pub snapshots: Vec<SnapshotSlot<S>>,
    /// Whether its observers have yet to be told of news in this turn of the reactor.
    pub news: bool,
    /// What the turn's agent asked so far.
    pub asked: Vec<Asked>,
    /// Whether its turn waits for a thread.
    pub queued: bool,
    /// Whether the registry still names it; if not, it lives until its last observer leaves.
    pub retained: bool,
}

/// A snapshot of a run.
#[derive(Debug)]
pub struct SnapshotSlot<S> {
    /// Names the job.
    pub ticket: Ticket,
    /// The head that it reaches.
    pub seq: Seq,
    /// Whether it is in the legacy format.
    pub legacy: bool,
    /// How far it is.
    pub stage: Stage<S>,
}

/// How far a snapshot is.
#[derive(Debug)]
pub enum Stage<S> {
    /// Being serialised; these observers wait for it.
    Making(Vec<ConnId>),
    /// Ready to send.
    Ready(Arc<S>),
}

impl<S> Run<S> {
    /// A run without events.
    pub fn new(
        id: RunId,
        chat: ChatId,
        trigger: Trigger,
        started: Now,
        window: usize,
        punctuation: &'static Punctuation,
    ) -> Run<S> {
        Run {
            id,
            chat,
            trigger,
            started,
            state: State::Registered,
            log: Log::new(window),
            text: Accumulator::new(punctuation),
            parts: Parts::default(),
            produced: 0,
            event_bytes: 0,
            observers: Vec::new(),
            snapshots: Vec::new(),
            news: false,
            asked: Vec::new(),
            queued: false,
            retained: true,
        }
    }

    /// Seq of the last event.
    pub fn head(&self) -> Seq {
        self.log.head()
    }

    /// Takes note of an event that was put into the log.
    pub fn note(&mut self, line: &[u8], kind: &Kind<'_>, pool: &mut BlockPool) {
        debug_assert!(self.state.is_open(), "a run that is {} takes no event", self.state.name());
        self.state = State::Active;
        self.event_bytes += line.len() as u64;
        match kind {
            Kind::Delta(delta) => self.text.delta(delta, pool),
            Kind::Chunk(chunk) => self.text.chunk(chunk, pool),
            Kind::Boundary(mark) => {
                self.text.boundary(line, mark, pool);
                if *mark != Mark::Plain {
                    self.parts.note(mark);
                }
            }
        }
    }

    /// As [`Run::note`], for a delta that differs from one that `entry` took in its text alone. Returns false, and does
    /// nothing, if it may no longer join that entry.
    #[inline]
    pub fn join(&mut self, entry: EntryId, line: &[u8], text: &[u8], pool: &mut BlockPool) -> bool {
        debug_assert!(self.state.is_open(), "a run that is {} takes no event", self.state.name());
        let joined = self.text.join(entry, text, pool);
        if joined {
            self.event_bytes += line.len() as u64;
        }
        joined
    }

    /// Gives back what its events took, as far as no snapshot shares it.
    pub fn release(mut self, pool: &mut BlockPool) {
        self.log.release(pool);
        self.snapshots.clear();
        self.text.release(pool);
    }

    /// Bytes of memory held for events.
    pub fn memory_bytes(&self) -> u64 {
        self.log.memory_bytes() + self.text.memory_bytes()
    }

    /// A snapshot, ready or in the making, for an observer that has everything up to `after`: recent enough that
    /// what follows it is in the newer half of the window, and not behind what the observer already got.
    pub fn shared_snapshot(
        &mut self,
        legacy: bool,
        after: Seq,
        behind_max: u64,
    ) -> Option<&mut SnapshotSlot<S>> {
        let head = self.head();
        self.snapshots
            .iter_mut()
            .rev()
            .find(|slot| slot.legacy == legacy && slot.seq >= after && head.0 - slot.seq.0 <= behind_max)
    }

    /// Forgets snapshots that nobody needs: all but the newest of each format, unless an observer still sends it.
    /// Returns the oldest one in use if there are more than `max`.
    pub fn drop_stale_snapshots(&mut self, max: usize) -> Option<Arc<S>> {
        let newest = [false, true].map(|legacy| {
            self.snapshots.iter().rev().find(|slot| slot.legacy == legacy).map(|slot| slot.ticket)
        });
        self.snapshots.retain(|slot| match &slot.stage {
            Stage::Making(_) => true,
            Stage::Ready(snapshot) => Arc::strong_count(snapshot) > 1 || newest.contains(&Some(slot.ticket)),
        });
        if self.snapshots.len() <= max {
            return None;
        }
        self.snapshots.iter().find_map(|slot| match &slot.stage {
            Stage::Ready(snapshot) if Arc::strong_count(snapshot) > 1 => Some(snapshot.clone()),
            Stage::Ready(_) | Stage::Making(_) => None,
        })
    }
}
