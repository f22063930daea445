//! The one place where time is read.

use std::cell::Cell;
use std::time::{Instant, SystemTime};

use crate::proto::id::Now;

/// The process's clocks.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    last: Cell<Now>,
    last_us: Cell<u64>,
}

#[expect(clippy::disallowed_methods, reason = "this is the one place where time is read")]
impl Clock {
    pub(super) fn start() -> Clock {
        Clock { start: Instant::now(), last: Cell::default(), last_us: Cell::default() }
    }

    /// The current moment.
    pub(super) fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mono_us = self.now_us();
        let now =
            Now { mono_ms: mono_us / 1000, wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX) };
        self.last.set(now);
        self.last_us.set(mono_us);
        now
    }

    /// The moment that was read last: exact enough for what happens within one turn.
    pub(super) fn last(&self) -> Now {
        self.last.get()
    }

    /// Microseconds since the moment that was read last.
    pub(super) fn since_last_us(&self) -> u64 {
        self.now_us() - self.last_us.get()
    }

    /// Microseconds since the start.
    pub(super) fn now_us(&self) -> u64 {
        self.stopwatch().now_us()
    }

    /// The same for other threads.
    pub(super) fn stopwatch(&self) -> Stopwatch {
        Stopwatch(self.start)
    }
}

/// The monotonic clock alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    /// Microseconds since the start of the clock that it is of.
    pub(super) fn now_us(self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}
