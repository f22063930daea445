//! Blocks of logs and texts waiting for their next use: a page fault for each fresh block costs more than copying its bytes.

use crate::limits::{LOG_BLOCK_BYTES, POOL_BLOCKS_MAX};

/// Free blocks of the largest size, at most [`POOL_BLOCKS_MAX`].
#[derive(Debug, Default)]
pub struct BlockPool {
    free: Vec<Vec<u8>>,
}

impl BlockPool {
    /// A pool that holds `blocks` blocks from the start, their pages touched.
    pub fn warm(blocks: usize) -> BlockPool {
        let size = LOG_BLOCK_BYTES[LOG_BLOCK_BYTES.len() - 1];
        let touched = || {
            let mut block = vec![1; size];
            block.clear();
            block
        };
        BlockPool { free: (0..blocks.min(POOL_BLOCKS_MAX)).map(|_| touched()).collect() }
    }

    /// An empty block of at least `size` bytes.
    pub fn take(&mut self, size: usize) -> Vec<u8> {
        if size == LOG_BLOCK_BYTES[LOG_BLOCK_BYTES.len() - 1]
            && let Some(block) = self.free.pop()
        {
            return block;
        }
        Vec::with_capacity(size)
    }

    /// Takes a block back; small ones, and those beyond the bound, are freed.
    pub fn give(&mut self, mut block: Vec<u8>) {
        if block.capacity() == LOG_BLOCK_BYTES[LOG_BLOCK_BYTES.len() - 1] && self.free.len() < POOL_BLOCKS_MAX
        {
            block.clear();
            self.free.push(block);
        }
    }
}
