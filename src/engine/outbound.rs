//! Bytes that wait to be written to one connection: owned ones, and shared ones that nobody copies.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

/// Bytes in order, with what was already written taken off.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    parts: VecDeque<Part>,
}

#[derive(Debug)]
enum Part {
    /// Bytes of this connection, and how many of them were written.
    Own(Vec<u8>, usize),
    /// Bytes of a snapshot or a large frame, and how many of them were written.
    Shared(Arc<Vec<u8>>, usize),
}

impl Part {
    fn left(&self) -> &[u8] {
        match self {
            Part::Own(bytes, written) => &bytes[*written..],
            Part::Shared(bytes, written) => &bytes[*written..],
        }
    }

    fn advance(&mut self, by: usize) {
        match self {
            Part::Own(_, written) | Part::Shared(_, written) => *written += by,
        }
    }
}

impl Outbound {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Room at the end for a few bytes to be written by the caller.
    pub(super) fn tail(&mut self) -> &mut Vec<u8> {
        if !matches!(self.parts.back(), Some(Part::Own(..))) {
            self.parts.push_back(Part::Own(Vec::new(), 0));
        }
        match self.parts.back_mut() {
            Some(Part::Own(bytes, _)) => bytes,
            Some(Part::Shared(..)) | None => unreachable!("an owned part was just made sure of"),
        }
    }

    pub(super) fn push(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.parts.push_back(Part::Own(bytes, 0));
        }
    }

    pub(super) fn push_shared(&mut self, bytes: Arc<Vec<u8>>, from: usize) {
        if from < bytes.len() {
            self.parts.push_back(Part::Shared(bytes, from));
        }
    }

    /// Fills slices with at most `budget` bytes; returns how many slices and bytes.
    pub(super) fn slices<'a>(&'a self, budget: usize, slices: &mut [IoSlice<'a>]) -> (usize, usize) {
        let mut filled = 0;
        let mut bytes = 0;
        for (slot, part) in slices.iter_mut().zip(&self.parts) {
            let left = part.left();
            let taken = &left[..left.len().min(budget - bytes)];
            if taken.is_empty() {
                break;
            }
            *slot = IoSlice::new(taken);
            filled += 1;
            bytes += taken.len();
        }
        (filled, bytes)
    }

    /// Takes off what was written; returns what is left of `sent` behind the end.
    pub(super) fn sent(&mut self, mut sent: u64) -> u64 {
        while let Some(part) = self.parts.front_mut() {
            let left = part.left().len() as u64;
            if sent < left {
                part.advance(usize::try_from(sent).expect("less than the part's length"));
                return 0;
            }
            sent -= left;
            self.parts.pop_front();
        }
        self.parts = VecDeque::new();
        sent
    }

    pub(super) fn clear(&mut self) {
        self.parts = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_sizes_of_writes_give_the_same_bytes() {
        for step in 1..=12 {
            let mut out = Outbound::default();
            out.tail().extend_from_slice(b"abc");
            out.push_shared(Arc::new(b"xxdefg".to_vec()), 2);
            out.push(b"hi".to_vec());
            out.tail().extend_from_slice(b"j");
            let mut written = Vec::new();
            while !out.is_empty() {
                let mut slices = [IoSlice::new(&[]); 2];
                let (filled, bytes) = out.slices(step, &mut slices);
                let piece: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
                assert_eq!(piece.len(), bytes);
                assert!(bytes > 0 && bytes <= step);
                written.extend_from_slice(&piece);
                assert_eq!(out.sent(bytes as u64), 0);
            }
            assert_eq!(written, b"abcdefghij", "step {step}");
        }
    }
}
