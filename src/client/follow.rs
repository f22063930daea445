//! Following: the rules by which an observer applies frames and comes back after a loss.
//!
//! Pure: a [`Follower`] is told what happened and says what to do next. It opens no connection, reads no clock and
//! never waits; randomness is an argument. It asks for frames only, and never for anything that starts a turn.

use std::fmt;
use std::io;
use std::time::Duration;

use super::backoff::{Backoff, Jitter};
use super::frame::{End, Event, Frame, Snapshot};
use crate::limits::WAIT_MS_MAX;
use crate::proto::id::{RunId, Seq};

/// The last event that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The run that it belongs to.
    pub run: RunId,
    /// Its number.
    pub after: Seq,
}

/// What to ask the server for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Where to go on; none: from the start of whatever run there is.
    pub cursor: Option<Cursor>,
    /// How long the server may wait for a run, in milliseconds.
    pub wait_ms: u64,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Wait this long, then ask.
    Ask(Duration, Request),
    /// Read the next frame of the answer.
    Read,
    /// Nothing: it is over.
    Stop,
}

/// What happened, for whoever shows the run.
#[derive(Clone, Debug)]
pub enum Notice {
    /// Replace all that is shown of the run by these events.
    Snapshot(Snapshot),
    /// Apply this event.
    Event(Event),
    /// The run is over. If it was superseded, the newer one follows; else this is the last notice, and it was saved
    /// only if `persisted` says so.
    Ended(End),
    /// The connection was lost; it is tried again after the delay.
    Reconnecting {
        /// The attempt that comes, counted from 1 since the last progress.
        attempt: u32,
        /// How many there may be.
        attempts_max: u32,
        /// How long until then.
        delay: Duration,
        /// What was wrong.
        loss: Loss,
    },
    /// No attempt is left; what was received stays, and whether it was saved isn't known. The last notice.
    GaveUp(Loss),
    /// There is nothing to observe. The last notice.
    Idle {
        /// A run was followed before, and the server has forgotten it: the history has what was saved.
        attached: bool,
    },
    /// The server does not want this request, and would not the next time. The last notice.
    Refused {
        /// Status code of the answer.
        status: u16,
        /// What the server says about it.
        message: String,
    },
}

/// Why a connection doesn't count any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The network, or nobody listens.
    Io(io::ErrorKind),
    /// The answer ended without STREAM_END.
    EndOfFile,
    /// Three keep-alives are missing.
    Silent,
    /// The server answered with a status that says to come later.
    Status(u16),
    /// What came is no HTTP, no event stream or no frame.
    Malformed,
    /// An event is missing before the one that came, or it belongs to a run that was not announced.
    Gap,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Io(kind) => kind.fmt(f),
            Loss::EndOfFile => f.write_str("the stream was cut"),
            Loss::Silent => f.write_str("the stream is silent"),
            Loss::Status(status) => write!(f, "the server answered with status {status}"),
            Loss::Malformed => f.write_str("what came is not rejoin's protocol"),
            Loss::Gap => f.write_str("an event is missing"),
        }
    }
}

/// Where an observer stands.
#[derive(Clone, Debug)]
pub struct Follower {
    backoff: Backoff,
    wait_ms: u64,
    cursor: Option<Cursor>,
    /// Attempts since the last progress.
    attempts: u32,
    /// Whether a run was followed, now or before.
    attached: bool,
    /// The run that a newer one has replaced, while the newer one is looked for.
    replaced: Option<RunId>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Asking(Duration),
    Reading,
    Over,
}

impl Follower {
    /// An observer that has nothing, or that comes back with a cursor. `wait_ms`: how long the server may wait for
    /// a run to begin with.
    pub fn new(from: Option<Cursor>, wait_ms: u64, backoff: Backoff) -> Follower {
        Follower {
            backoff,
            wait_ms,
            cursor: from,
            attempts: 0,
            attached: from.is_some(),
            replaced: None,
            phase: Phase::Asking(Duration::ZERO),
        }
    }

    /// What to do now.
    pub fn next(&self) -> Next {
        match self.phase {
            Phase::Asking(delay) => Next::Ask(delay, self.request()),
            Phase::Reading => Next::Read,
            Phase::Over => Next::Stop,
        }
    }

    /// The answer is a stream of frames.
    pub fn opened(&mut self) {
        self.phase = Phase::Reading;
    }

    /// The answer is 204.
    pub fn nothing(&mut self) -> Notice {
        self.phase = Phase::Over;
        Notice::Idle { attached: self.attached }
    }

    /// The answer is a refusal that would come again.
    pub fn refused(&mut self, status: u16, message: String) -> Notice {
        self.phase = Phase::Over;
        Notice::Refused { status, message }
    }

    /// The connection is lost, or can't be made.
    pub fn lost(&mut self, loss: Loss, jitter: Jitter) -> Notice {
        self.lost_until(loss, Duration::ZERO, jitter)
    }

    /// The same, and the server asks not to be asked before this has passed: the delay comes on top, so that those
    /// who were told the same don't come back in the same instant.
    pub fn lost_until(&mut self, loss: Loss, earliest: Duration, jitter: Jitter) -> Notice {
        self.attempts += 1;
        match self.backoff.delay(self.attempts, jitter) {
            Some(delay) => {
                let delay = delay + earliest;
                self.phase = Phase::Asking(delay);
                let attempts_max = self.backoff.attempts_max;
                Notice::Reconnecting { attempt: self.attempts, attempts_max, delay, loss }
            }
            None => {
                self.phase = Phase::Over;
                Notice::GaveUp(loss)
            }
        }
    }

    /// A frame came. Nothing is told about one that was applied before.
    pub fn frame(&mut self, frame: Frame, jitter: Jitter) -> Option<Notice> {
        match frame {
            Frame::Snapshot(snapshot) => Some(self.snapshot(snapshot)),
            Frame::Event(event) => self.event(event, jitter),
            Frame::End(end) => Some(self.end(end, jitter)),
        }
    }

    fn snapshot(&mut self, snapshot: Snapshot) -> Notice {
        let cursor = Cursor { run: snapshot.run, after: snapshot.seq };
        // A server that only ever repeats what is known makes no progress, however often it answers.
        let news = self.cursor.is_none_or(|known| known.run != cursor.run || known.after < cursor.after);
        if news {
            self.progress();
        }
        self.cursor = Some(cursor);
        self.attached = true;
        Notice::Snapshot(snapshot)
    }

    fn event(&mut self, event: Event, jitter: Jitter) -> Option<Notice> {
        match self.cursor {
            Some(Cursor { run, after }) if run == event.run && event.seq <= after => None,
            Some(Cursor { run, after }) if run == event.run && event.seq == after.next() => {
                self.cursor = Some(Cursor { run, after: event.seq });
                self.attached = true;
                self.progress();
                Some(Notice::Event(event))
            }
            Some(_) | None => Some(self.lost(Loss::Gap, jitter)),
        }
    }

    fn end(&mut self, end: End, jitter: Jitter) -> Notice {
        if self.cursor != Some(Cursor { run: end.run, after: end.seq }) {
            return self.lost(Loss::Gap, jitter);
        }
        self.attached = true;
        self.phase = Phase::Over;
        if end.superseded {
            // The cursor is kept: one of a replaced run is answered with the newer run even if that is over and
            // saved already. A server that knows it still would tell the same end for ever: then it is dropped.
            let again = self.replaced.replace(end.run) == Some(end.run);
            self.cursor = self.cursor.filter(|_| !again);
            self.phase = Phase::Asking(Duration::ZERO);
        }
        Notice::Ended(end)
    }

    fn progress(&mut self) {
        self.attempts = 0;
    }

    fn request(&self) -> Request {
        let wait_ms = match (self.replaced, self.attached, self.attempts) {
            (Some(_), ..) => WAIT_MS_MAX,
            // Who comes back after a loss wants its run, not the next one.
            (None, true, 1..) => 0,
            (None, ..) => self.wait_ms,
        };
        Request { cursor: self.cursor, wait_ms }
    }
}

#[cfg(test)]
mod tests;
