//! The one place where time is read.

use std::time::{Instant, SystemTime};

use crate::proto::id::Now;

/// The process's clocks.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    last: std::cell::Cell<Now>,
}

#[expect(clippy::disallowed_methods, reason = "this is the one place where time is read")]
impl Clock {
    pub(super) fn start() -> Clock {
        Clock { start: Instant::now(), last: std::cell::Cell::default() }
    }

    /// The current moment.
    pub(super) fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let now = Now { mono_ms: millis(self.start.elapsed()), wall_ms: millis(wall) };
        self.last.set(now);
        now
    }

    /// The moment that was read last: exact enough for what happens within one turn.
    pub(super) fn last(&self) -> Now {
        self.last.get()
    }

    /// Microseconds since the start.
    pub(super) fn now_us(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}
