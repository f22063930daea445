//! Back-off: how long to wait before the next attempt, and when to give up.
//!
//! Pure: the randomness is an argument, and nobody waits in here.

use std::time::Duration;

/// The delays between attempts: each is twice the one before, up to a longest, shortened by up to half at random,
/// so that the clients of a server that restarts don't all come back in the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Before the first attempt, in milliseconds.
    pub first_ms: u64,
    /// Longest delay, in milliseconds.
    pub last_ms: u64,
    /// Attempts since the last progress.
    pub attempts_max: u32,
}

impl Default for Backoff {
    /// 0.5, 1, 2, 4 and 8 seconds, then no more.
    fn default() -> Backoff {
        Backoff { first_ms: 500, last_ms: 8_000, attempts_max: 5 }
    }
}

/// A random number: how much a delay is shortened, from half (0) to not at all (`u32::MAX`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter(pub u32);

impl Backoff {
    /// The delay before an attempt, counted from 1; `None`: it is time to give up.
    pub fn delay(&self, attempt: u32, jitter: Jitter) -> Option<Duration> {
        if attempt > self.attempts_max {
            return None;
        }
        let doubled = 1_u64.checked_shl(attempt.saturating_sub(1)).unwrap_or(u64::MAX);
        let full_us = self.first_ms.saturating_mul(doubled).min(self.last_ms).saturating_mul(1_000);
        let half_us = full_us / 2;
        let share = u128::from(half_us) * u128::from(jitter.0) / u128::from(u32::MAX);
        Some(Duration::from_micros(half_us.saturating_add(u64::try_from(share).unwrap_or(half_us))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(jitter: Jitter, expected_ms: [Option<u64>; 6]) {
        let delays = (1..=6).map(|attempt| Backoff::default().delay(attempt, jitter));
        let expected = expected_ms.map(|delay| delay.map(Duration::from_millis));
        assert_eq!(delays.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn delays_double_and_end_after_the_fifth() {
        check(Jitter(u32::MAX), [Some(500), Some(1_000), Some(2_000), Some(4_000), Some(8_000), None]);
    }

    #[test]
    fn jitter_shortens_a_delay_down_to_half() {
        check(Jitter(0), [Some(250), Some(500), Some(1_000), Some(2_000), Some(4_000), None]);
    }

    #[test]
    fn delays_are_capped() {
        let backoff = Backoff { first_ms: 500, last_ms: 3_000, attempts_max: 200 };
        for attempt in [4, 64, 65, 200] {
            assert_eq!(backoff.delay(attempt, Jitter(u32::MAX)), Some(Duration::from_secs(3)), "{attempt}");
        }
    }
}
