//! The way from a turn thread to the reactor and back: bounded by bytes, and the thread's word on whether to go on.

use std::fmt;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, TryRecvError};

use crate::turns::{TurnControl, TurnMessage};

/// Takes a message, and waits while too much is under way; `false` if nobody wants it any more.
type Deliver = Box<dyn FnMut(TurnMessage) -> bool + Send>;

/// A turn thread's end.
pub struct TurnSink {
    deliver: Deliver,
    control: Receiver<TurnControl>,
}

/// The turn was cancelled, or the reactor is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Debug for TurnSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnSink").finish_non_exhaustive()
    }
}

impl TurnSink {
    /// A sink over a way to deliver and a channel of what the thread is told.
    pub fn new(
        deliver: impl FnMut(TurnMessage) -> bool + Send + 'static,
        control: Receiver<TurnControl>,
    ) -> TurnSink {
        TurnSink { deliver: Box::new(deliver), control }
    }

    /// Hands on a message. Waits while too much is under way.
    pub fn send(&mut self, message: TurnMessage) -> Result<(), Cancelled> {
        if (self.deliver)(message) { Ok(()) } else { Err(Cancelled) }
    }

    /// Where the thread is told things; to be selected over beside an agent's output.
    pub fn control(&self) -> &Receiver<TurnControl> {
        &self.control
    }

    /// What the thread was told, if anything: a closed channel is a cancel.
    pub fn told(&self) -> Option<TurnControl> {
        match self.control.try_recv() {
            Ok(control) => Some(control),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(TurnControl::Cancel),
        }
    }

    /// Waits to be told something; none if the time is over first.
    pub fn wait(&self, time: Duration) -> Option<TurnControl> {
        match self.control.recv_timeout(time) {
            Ok(control) => Some(control),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(TurnControl::Cancel),
        }
    }
}
