//! A *histogram* counts durations on a logarithmic scale: small, the same work for every value, and never more than a
//! quarter off.

/// Buckets per doubling: a bucket's bounds are at most a quarter apart.
const STEPS: usize = 4;

/// Buckets; the last takes everything from 117 s on.
const BUCKETS: usize = 26 * STEPS;

/// Counts of durations in whole microseconds.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: [u64; BUCKETS],
    /// How many there were.
    pub count: u64,
    /// All of them together, in microseconds.
    pub sum_us: u64,
    /// The longest, in microseconds.
    pub max_us: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: [0; BUCKETS], count: 0, sum_us: 0, max_us: 0 }
    }
}

impl Histogram {
    /// Counts a duration.
    pub fn record(&mut self, us: u64) {
        self.counts[bucket_of(us)] += 1;
        self.count += 1;
        self.sum_us += us;
        self.max_us = self.max_us.max(us);
    }

    /// The duration that `percent` of all did not exceed, at most a quarter too long; 0 if there were none.
    pub fn percentile_us(&self, percent: u64) -> u64 {
        let rank = (self.count * percent).div_ceil(100);
        let mut counted = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            counted += count;
            if counted >= rank {
                return end_us(bucket).saturating_sub(1).min(self.max_us);
            }
        }
        self.max_us
    }

    /// How many were shorter than this; exact for powers of two up to the last bucket's start.
    pub fn below(&self, us: u64) -> u64 {
        self.counts.iter().enumerate().take_while(|(bucket, _)| end_us(*bucket) <= us).map(|(_, n)| n).sum()
    }
}

/// The bucket of a duration: one each for 0 to 3 µs, then four for each doubling.
fn bucket_of(us: u64) -> usize {
    let Some(doublings) = us.checked_ilog2().filter(|doublings| *doublings >= 2) else {
        return usize::try_from(us).expect("less than four");
    };
    let step = usize::try_from(us >> (doublings - 2) & 3).expect("less than four");
    ((doublings as usize - 1) * STEPS + step).min(BUCKETS - 1)
}

/// The first microsecond behind a bucket.
fn end_us(bucket: usize) -> u64 {
    let next = bucket + 1;
    match next {
        BUCKETS => u64::MAX,
        0..STEPS => next as u64,
        STEPS.. => ((STEPS + next % STEPS) as u64) << (next / STEPS - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_is_in_the_bucket_whose_bounds_hold_it() {
        let edges = (0..63).flat_map(|shift| [(1 << shift) - 1, 1 << shift, (1 << shift) + 1, 3 << shift]);
        for us in (0..5_000).chain(edges).chain([u64::MAX]) {
            let bucket = bucket_of(us);
            assert!(us < end_us(bucket) || bucket == BUCKETS - 1, "{us}");
            assert!(bucket == 0 || us >= end_us(bucket - 1), "{us}");
        }
        assert!((0..BUCKETS - 1).all(|bucket| end_us(bucket) < end_us(bucket + 1)));
        assert_eq!(end_us(BUCKETS - 2), 117_440_512);
    }

    #[test]
    fn percentiles_are_at_most_a_quarter_too_long() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.percentile_us(50), histogram.percentile_us(99)), (0, 0));
        for us in 1..=10_000 {
            histogram.record(us);
        }
        for percent in 1..=100 {
            let (exact, found) = (percent * 100, histogram.percentile_us(percent));
            assert!(exact <= found && found * 4 <= exact * 5, "{percent}: {found}");
        }
        assert_eq!((histogram.count, histogram.max_us, histogram.sum_us), (10_000, 10_000, 50_005_000));
        assert_eq!(histogram.percentile_us(100), 10_000);
    }

    #[test]
    fn counts_below_a_power_of_two_are_exact() {
        let mut histogram = Histogram::default();
        for us in 0..100_000 {
            histogram.record(us);
        }
        for shift in 0..17 {
            assert_eq!(histogram.below(1 << shift), (1 << shift).min(100_000));
        }
        assert_eq!(histogram.below(1 << 20), 100_000);
    }
}
