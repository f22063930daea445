//! The reactor's side of producers in this process: where their replies go, and how much they have under way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::engine::{LocalInput, LocalReply};
use crate::limits::PRODUCER_BYTES_MAX;
use crate::proto::id::LocalId;

/// The reactor's end of a producer's budget: it takes bytes off and says when there is room again.
#[derive(Clone, Debug)]
pub struct Budget {
    bytes: Arc<AtomicUsize>,
    room: Sender<()>,
}

/// The producer's end of its budget: what it has under way to the reactor is bounded.
#[derive(Debug)]
pub struct Allowance {
    bytes: Arc<AtomicUsize>,
    room: Receiver<()>,
}

/// Both ends of an empty budget.
pub fn budget() -> (Budget, Allowance) {
    let (sender, receiver) = bounded(1);
    let bytes = Arc::<AtomicUsize>::default();
    (Budget { bytes: bytes.clone(), room: sender }, Allowance { bytes, room: receiver })
}

impl Budget {
    pub(super) fn take(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        if before > PRODUCER_BYTES_MAX && before - bytes <= PRODUCER_BYTES_MAX {
            // A signal that is already there is as good.
            let _ = self.room.try_send(());
        }
    }
}

impl Allowance {
    /// Counts bytes as under way.
    pub fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Waits until no more is under way than may be; `false` if the reactor is gone.
    pub fn wait(&self) -> bool {
        while self.bytes.load(Ordering::Acquire) > PRODUCER_BYTES_MAX {
            if self.room.recv().is_err() {
                return false;
            }
        }
        true
    }
}

/// How a producer is reached.
#[derive(Clone, Debug)]
pub struct LocalChannel {
    /// Where replies go.
    pub replies: Sender<LocalReply>,
    /// What is under way.
    pub budget: Budget,
}

/// All producers in this process.
#[derive(Debug, Default)]
pub(super) struct Locals {
    channels: BTreeMap<LocalId, LocalChannel>,
}

impl Locals {
    pub(super) fn open(&mut self, id: LocalId, channel: LocalChannel) {
        self.channels.insert(id, channel);
    }

    pub(super) fn bytes_of(&self, input: &LocalInput) -> Option<usize> {
        match input {
            LocalInput::Event(bytes) => Some(bytes.len()),
            LocalInput::Ask(question) => Some(question.event.len()),
            LocalInput::Start(..) | LocalInput::Finish(_) | LocalInput::Failed(..) => Some(0),
            LocalInput::Gone => None,
        }
    }

    /// An input was taken; `None` if it was the producer's last.
    pub(super) fn taken(&mut self, id: LocalId, bytes: Option<usize>) {
        match bytes {
            None => {
                self.channels.remove(&id);
            }
            Some(bytes) => {
                if let Some(channel) = self.channels.get(&id) {
                    channel.budget.take(bytes);
                }
            }
        }
    }

    pub(super) fn reply(&mut self, id: LocalId, reply: LocalReply) {
        if let Some(channel) = self.channels.get(&id) {
            // A producer that was dropped has no use for replies.
            let _ = channel.replies.send(reply);
        }
    }
}
