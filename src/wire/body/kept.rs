//! The kept beginning of an event whose end hasn't arrived: bounded, and small again after a large one.

use super::BodyFault;

/// Capacity that stays between events: enough for tokens, little enough to have per connection.
const IDLE_BYTES_MAX: usize = 16 * 1024;

/// Bytes carried over from one input to the next.
pub(super) struct Kept {
    bytes: Vec<u8>,
    event_bytes_max: usize,
}

impl Kept {
    pub(super) fn new(event_bytes_max: usize) -> Kept {
        Kept { bytes: Vec::new(), event_bytes_max }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Checks the size of an event that begins at `line`.
    pub(super) fn check(&self, event_bytes: usize, line: u64) -> Result<(), BodyFault> {
        if event_bytes > self.event_bytes_max {
            return Err(BodyFault::TooLarge { line, max_bytes: self.event_bytes_max });
        }
        Ok(())
    }

    /// Appends a piece of an event that begins at `line`, if it still fits. The capacity doubles, but not beyond
    /// what the largest event needs.
    pub(super) fn append(&mut self, piece: &[u8], line: u64) -> Result<(), BodyFault> {
        let needed = self.bytes.len() + piece.len();
        self.check(needed, line)?;
        if needed > self.bytes.capacity() {
            let wanted = (2 * self.bytes.capacity()).clamp(needed, self.event_bytes_max);
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// Drops the first bytes.
    pub(super) fn drop_front(&mut self, count: usize) {
        self.bytes.drain(..count.min(self.bytes.len()));
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > IDLE_BYTES_MAX {
            self.bytes = Vec::new();
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}
