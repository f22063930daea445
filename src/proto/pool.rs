//! Blocks of logs and texts waiting for their next use: a page fault for each fresh block costs more than copying its bytes.

use crate::limits::{BLOCK_BYTES, BLOCK_SHARE, POOL_BLOCKS_MAX};

/// Size of the largest blocks, in bytes: the only ones that are pooled.
pub const LARGEST: usize = BLOCK_BYTES[BLOCK_BYTES.len() - 1];

/// Size of the next block for something that holds `held_bytes` already, with room for `needed_bytes`, if any size has.
pub fn next_size(held_bytes: usize, needed_bytes: usize) -> usize {
    let aim = needed_bytes.max(held_bytes / BLOCK_SHARE);
    let larger = BLOCK_BYTES.iter().position(|size| *size > aim).unwrap_or(BLOCK_BYTES.len());
    let at_most_aim = BLOCK_BYTES[larger.saturating_sub(1)];
    if at_most_aim >= needed_bytes { at_most_aim } else { BLOCK_BYTES[larger.min(BLOCK_BYTES.len() - 1)] }
}

/// Free blocks of the largest size, at most [`POOL_BLOCKS_MAX`].
#[derive(Debug, Default)]
pub struct BlockPool {
    free: Vec<Vec<u8>>,
}

impl BlockPool {
    /// A pool that holds `blocks` blocks from the start, their pages touched.
    pub fn warm(blocks: usize) -> BlockPool {
        let touched = || {
            let mut block = vec![1; LARGEST];
            block.clear();
            block
        };
        BlockPool { free: (0..blocks.min(POOL_BLOCKS_MAX)).map(|_| touched()).collect() }
    }

    /// An empty block of at least `size` bytes.
    pub fn take(&mut self, size: usize) -> Vec<u8> {
        if size == LARGEST
            && let Some(block) = self.free.pop()
        {
            return block;
        }
        Vec::with_capacity(size)
    }

    /// Takes a block back; small ones, and those beyond the bound, are freed.
    pub fn give(&mut self, mut block: Vec<u8>) {
        if block.capacity() == LARGEST && self.free.len() < POOL_BLOCKS_MAX {
            block.clear();
            self.free.push(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_grow_with_what_is_held_and_have_room_for_what_is_needed() {
        let cases = [
            (0, 1, 1 << 10),
            (0, 1_024, 1 << 10),
            (0, 1_025, 2 << 10),
            ((16 << 10) - 1, 1, 1 << 10),
            (16 << 10, 1, 2 << 10),
            (16 << 10, 2_049, 4 << 10),
            (512 << 10, 1, LARGEST),
            (1 << 30, 1, LARGEST),
            (0, LARGEST, LARGEST),
            (0, LARGEST - 1, LARGEST),
        ];
        for (held, needed, expected) in cases {
            assert_eq!(next_size(held, needed), expected, "{held} held, {needed} needed");
        }
    }
}
