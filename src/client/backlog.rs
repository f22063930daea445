//! The backlog: a producer's events that the server has not yet acknowledged, in order and numbered.
//!
//! Pure. It decides what has to be sent again after a loss; it sends nothing.

use std::collections::VecDeque;

/// Events are numbered from 1, as `from_seq` counts them.
#[derive(Debug)]
pub(super) struct Backlog {
    events: VecDeque<Box<[u8]>>,
    /// Number of the first event that is kept, or of the next one if none is.
    first: u64,
    /// Sum of the lengths of the events.
    bytes: usize,
    bytes_max: usize,
}

/// The server's count can't be: it has forgotten events that it had acknowledged, or has some that were never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Miscounted;

impl Backlog {
    pub(super) fn new(bytes_max: usize) -> Backlog {
        Backlog { events: VecDeque::new(), first: 1, bytes: 0, bytes_max }
    }

    /// Number of the first event that is not acknowledged.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether another event of that length has to wait for an acknowledgement. One alone never has to.
    pub(super) fn is_full_for(&self, length: usize) -> bool {
        !self.is_empty() && self.bytes + length > self.bytes_max
    }

    pub(super) fn push(&mut self, event: &[u8]) {
        self.bytes += event.len();
        self.events.push_back(event.into());
    }

    /// The server has all events before number `next`. Tells whether that is news.
    pub(super) fn acknowledge(&mut self, next: u64) -> Result<bool, Miscounted> {
        if next < self.first || next > self.first + self.events.len() as u64 {
            return Err(Miscounted);
        }
        let news = next > self.first;
        while self.first < next {
            self.bytes -= self.events.pop_front().map_or(0, |event| event.len());
            self.first += 1;
        }
        Ok(news)
    }

    /// What has to be sent, in order.
    pub(super) fn events(&self) -> impl Iterator<Item = &[u8]> {
        self.events.iter().map(|event| &**event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog() -> Backlog {
        let mut backlog = Backlog::new(4);
        for event in [b"a", b"b", b"c"] {
            assert!(!backlog.is_full_for(1));
            backlog.push(event);
        }
        backlog
    }

    fn kept(backlog: &Backlog) -> (u64, Vec<&[u8]>) {
        (backlog.first(), backlog.events().collect())
    }

    #[test]
    fn what_is_acknowledged_is_not_sent_again() {
        let mut backlog = backlog();
        assert_eq!(backlog.acknowledge(1), Ok(false));
        assert_eq!(backlog.acknowledge(3), Ok(true));
        assert_eq!(kept(&backlog), (3, vec![&b"c"[..]]));
        assert_eq!(backlog.acknowledge(4), Ok(true));
        assert_eq!(kept(&backlog), (4, vec![]));
    }

    #[test]
    fn counts_that_can_t_be_are_refused() {
        let mut backlog = backlog();
        assert_eq!(backlog.acknowledge(5), Err(Miscounted));
        assert_eq!(backlog.acknowledge(3), Ok(true));
        assert_eq!(backlog.acknowledge(2), Err(Miscounted));
        assert_eq!(kept(&backlog).0, 3);
    }

    #[test]
    fn bytes_are_bounded_but_for_a_single_event() {
        let mut backlog = backlog();
        assert!(!backlog.is_full_for(1) && backlog.is_full_for(2));
        assert_eq!(backlog.acknowledge(4), Ok(true));
        assert!(!backlog.is_full_for(1_000));
    }
}
