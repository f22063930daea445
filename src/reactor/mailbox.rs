//! The mailbox: how other threads reach the reactor. Any number of messages cost one wake-up.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender, unbounded};
use mio::{Registry, Token, Waker};

use crate::engine::LocalInput;
use crate::proto::history::Answer;
use crate::proto::id::{LocalId, Ticket};
use crate::reactor::locals::LocalChannel;
use crate::turns::acp::TurnEnd;
use crate::wire::snapshot::Snapshot;

/// What another thread has to say.
#[derive(Debug)]
pub enum Message {
    /// A snapshot job is done, or has failed, so many microseconds after it was given.
    Serialized(Ticket, Option<Snapshot>, u64),
    /// The store answered.
    Stored(Answer),
    /// A producer in this process makes itself known.
    Open(LocalId, LocalChannel),
    /// A producer in this process, or a turn, did something.
    Local(LocalId, LocalInput),
    /// A turn's thread is through; what it leaves of its agent's session.
    TurnOver(LocalId, Option<TurnEnd>),
    /// The server is to stop.
    Stop,
}

/// The sending end. What is under way is bounded at its sources: jobs in flight, store jobs, producers' budgets.
#[derive(Clone, Debug)]
pub struct Mailbox {
    messages: Sender<Message>,
    waker: Arc<Waker>,
    /// Whether the reactor was woken and has not yet begun to read.
    woken: Arc<AtomicBool>,
}

impl Mailbox {
    pub(super) fn new(registry: &Registry, token: Token) -> io::Result<(Mailbox, Receiver<Message>)> {
        let (messages, received) = unbounded();
        let waker = Arc::new(Waker::new(registry, token)?);
        Ok((Mailbox { messages, waker, woken: Arc::default() }, received))
    }

    /// Sends a message; `false` if the reactor is gone.
    pub fn send(&self, message: Message) -> bool {
        if self.messages.send(message).is_err() {
            return false;
        }
        // The flag is set after the message is in the channel and cleared before the channel is read: whoever finds
        // it set knows that the reactor will still look.
        if !self.woken.swap(true, Ordering::SeqCst)
            && let Err(error) = self.waker.wake()
        {
            tracing::error!(%error, "the reactor could not be woken");
        }
        true
    }

    /// From here on a message wakes the reactor again.
    pub(super) fn about_to_read(&self) {
        self.woken.store(false, Ordering::SeqCst);
    }
}
