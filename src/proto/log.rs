//! The replay log: the last frames of a run, ready to send, found by seq.
//!
//! Frames are written once, one behind the other, into a chain of blocks; a frame never crosses a block's end. The
//! log knows where each frame lies, not what is in it. It holds a fixed number of frames, whatever their size;
//! blocks that no frame needs any more go back to the pool.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

use crate::proto::id::Seq;
use crate::proto::pool::{BlockPool, LARGEST, next_size};

/// Frames of a run or of the event bus, ready to send.
#[derive(Debug)]
pub struct Log {
    blocks: VecDeque<Block>,
    /// Number of `blocks[0]`, counted from the log's start.
    first_block: u32,
    /// One entry for each kept frame, in order of seq.
    frames: VecDeque<FrameAt>,
    /// Seq of `frames[0]`, or of the next frame if there is none.
    first: Seq,
    /// Offset behind the last frame, counted from the log's start.
    end: u64,
    /// Frames to keep.
    window: usize,
    /// Memory of `blocks`, in bytes.
    blocks_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct FrameAt {
    /// Offset of the frame's first byte, counted from the log's start.
    offset: u64,
    /// Number of its block.
    block: u32,
    /// Bytes of the frame before the event itself.
    event_offset: u32,
}

#[derive(Debug)]
struct Block {
    /// Offset of the block's first byte, counted from the log's start.
    base: u64,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    /// Holds many frames.
    Many(Vec<u8>),
    /// Holds one frame too large for a shared block; observers that took a part of it keep it alive.
    One(Arc<Vec<u8>>),
}

impl Block {
    /// Where an offset of the log lies in this block.
    fn at(&self, offset: u64) -> usize {
        usize::try_from(offset - self.base).expect("a block is in memory")
    }

    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Many(bytes) => bytes,
            Bytes::One(bytes) => bytes,
        }
    }
}

/// Where a frame lies and where the event is in it.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The frame's bytes.
    pub bytes: &'a [u8],
    /// Offset of the event in them.
    pub event_offset: usize,
}

/// What is left of a frame that was written in part.
#[derive(Clone, Debug)]
pub enum Rest {
    /// A copy of the bytes.
    Copied(Vec<u8>),
    /// The bytes of a large frame from this offset on.
    Shared(Arc<Vec<u8>>, usize),
}

impl Log {
    /// An empty log that keeps `window` frames.
    pub fn new(window: usize) -> Log {
        Log {
            blocks: VecDeque::new(),
            first_block: 0,
            frames: VecDeque::new(),
            first: Seq::ZERO.next(),
            end: 0,
            window: window.max(1),
            blocks_bytes: 0,
        }
    }

    /// Seq of the last frame.
    pub fn head(&self) -> Seq {
        Seq(self.first.0 + self.frames.len() as u64 - 1)
    }

    /// The first frame that can still be had.
    pub fn first(&self) -> Seq {
        self.first
    }

    /// Whether everything behind `after` is still here: an observer that has seen `after` can go on.
    pub fn covers(&self, after: Seq) -> bool {
        after <= self.head() && after.next() >= self.first
    }

    /// Appends a frame of `frame_bytes`, which `write` puts behind what the vector holds.
    pub fn append(
        &mut self,
        pool: &mut BlockPool,
        frame_bytes: usize,
        event_offset: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let offset = self.end;
        if frame_bytes > LARGEST {
            let mut own = Vec::with_capacity(frame_bytes);
            write(&mut own);
            debug_assert_eq!(own.len(), frame_bytes);
            self.blocks_bytes += frame_bytes;
            self.blocks.push_back(Block { base: offset, bytes: Bytes::One(Arc::new(own)) });
        } else {
            let block = self.block_with_room(pool, frame_bytes);
            let before = block.len();
            write(block);
            debug_assert_eq!(block.len() - before, frame_bytes);
        }
        self.end = offset + frame_bytes as u64;
        let block = self.first_block + u32::try_from(self.blocks.len()).expect("blocks fit a u32") - 1;
        let event_offset = u32::try_from(event_offset).expect("an envelope is short");
        // The oldest goes first: the index never grows beyond the window.
        let full = self.frames.len() == self.window;
        if full {
            self.frames.pop_front();
            self.first = self.first.next();
        }
        self.frames.push_back(FrameAt { offset, block, event_offset });
        if full {
            self.trim(pool);
        }
    }

    /// The frame of `seq`, if it is still here.
    pub fn frame(&self, seq: Seq) -> Option<Frame<'_>> {
        let index = usize::try_from(seq.0.checked_sub(self.first.0)?).ok()?;
        let at = self.frames.get(index)?;
        let end = self.frames.get(index + 1).map_or(self.end, |next| next.offset);
        let block = &self.blocks[(at.block - self.first_block) as usize];
        let from = block.at(at.offset);
        let to = block.at(end);
        Some(Frame { bytes: &block.bytes()[from..to], event_offset: at.event_offset as usize })
    }

    /// Fills `slices` with the frames behind `after`: whole frames, about `budget` bytes, at least one frame.
    /// Returns how many slices were filled.
    pub fn slices<'a>(&'a self, after: Seq, budget: usize, slices: &mut [IoSlice<'a>]) -> usize {
        let Some(index) = self.index_behind(after) else { return 0 };
        let Some(at) = self.frames.get(index) else { return 0 };
        let until = self.cut(index, at.offset + budget as u64);
        let mut from = at.offset;
        let mut filled = 0;
        let first_block = (at.block - self.first_block) as usize;
        for (slot, block) in slices.iter_mut().zip(self.blocks.range(first_block..)) {
            let bytes = block.bytes();
            let end = (block.base + bytes.len() as u64).min(until);
            if from >= end {
                break;
            }
            *slot = IoSlice::new(&bytes[block.at(from)..block.at(end)]);
            filled += 1;
            from = end;
        }
        filled
    }

    /// Where an observer at `after` stands when `sent` bytes of what [`Log::slices`] gave were written: behind the
    /// last frame it took any byte of, and what is left of that one.
    pub fn advance(&self, after: Seq, sent: u64) -> (Seq, Option<Rest>) {
        let Some(index) = self.index_behind(after) else { return (after, None) };
        let Some(at) = self.frames.get(index) else { return (after, None) };
        let reached = at.offset + sent;
        if reached >= self.end {
            return (self.head(), None);
        }
        // The first frame that begins behind what was sent; the one before it is the last that was touched.
        let behind = self.frames.partition_point(|frame| frame.offset < reached);
        let seq = Seq(self.first.0 + behind as u64 - 1);
        if sent == 0 {
            return (after, None);
        }
        let rest_end = self.frames.get(behind).map_or(self.end, |next| next.offset);
        if rest_end == reached {
            return (seq, None);
        }
        let touched = self.frames[behind - 1];
        let block = &self.blocks[(touched.block - self.first_block) as usize];
        let from = block.at(reached);
        let rest = match &block.bytes {
            Bytes::Many(bytes) => Rest::Copied(bytes[from..block.at(rest_end)].to_vec()),
            Bytes::One(bytes) => Rest::Shared(bytes.clone(), from),
        };
        (seq, Some(rest))
    }

    /// Bytes of memory held for frames.
    pub fn memory_bytes(&self) -> u64 {
        (self.blocks_bytes + self.frames.capacity() * size_of::<FrameAt>()) as u64
    }

    /// No frame will follow: what is small is put into one block of just that size.
    pub fn seal(&mut self, pool: &mut BlockPool) {
        let bytes: usize = self.blocks.iter().map(|block| block.bytes().len()).sum();
        self.frames.shrink_to_fit();
        if bytes > LARGEST {
            return;
        }
        let mut joined = Vec::with_capacity(bytes);
        self.blocks.iter().for_each(|block| joined.extend_from_slice(block.bytes()));
        let base = self.end - bytes as u64;
        while self.free_oldest(pool) {}
        self.frames.iter_mut().for_each(|frame| frame.block = self.first_block);
        self.blocks = VecDeque::with_capacity(1);
        self.blocks.push_back(Block { base, bytes: Bytes::Many(joined) });
        self.blocks_bytes = bytes;
    }

    /// Gives all blocks back.
    pub fn release(&mut self, pool: &mut BlockPool) {
        while self.free_oldest(pool) {}
        self.first = self.head().next();
        self.frames = VecDeque::new();
    }

    fn index_behind(&self, after: Seq) -> Option<usize> {
        let index = (after.0 + 1).checked_sub(self.first.0)?;
        usize::try_from(index).ok()
    }

    /// End of the last frame from `index` on that ends at or before `limit`; of frame `index` if none does.
    fn cut(&self, index: usize, limit: u64) -> u64 {
        if self.end <= limit {
            return self.end;
        }
        let beyond = self.frames.partition_point(|frame| frame.offset <= limit);
        let last_whole = beyond.saturating_sub(1).max(index + 1);
        self.frames.get(last_whole).map_or(self.end, |frame| frame.offset)
    }

    fn block_with_room(&mut self, pool: &mut BlockPool, frame_bytes: usize) -> &mut Vec<u8> {
        let fits = match self.blocks.back() {
            Some(Block { bytes: Bytes::Many(bytes), .. }) => bytes.capacity() - bytes.len() >= frame_bytes,
            Some(Block { bytes: Bytes::One(_), .. }) | None => false,
        };
        if !fits {
            let bytes = pool.take(next_size(self.blocks_bytes, frame_bytes));
            self.blocks_bytes += bytes.capacity();
            self.blocks.push_back(Block { base: self.end, bytes: Bytes::Many(bytes) });
        }
        match self.blocks.back_mut() {
            Some(Block { bytes: Bytes::Many(bytes), .. }) => bytes,
            Some(Block { bytes: Bytes::One(_), .. }) | None => {
                unreachable!("a shared block was just made sure of")
            }
        }
    }

    /// Frees the blocks that no frame is in any more.
    fn trim(&mut self, pool: &mut BlockPool) {
        let oldest = self.frames.front().map_or(self.first_block, |frame| frame.block);
        while self.first_block < oldest {
            self.free_oldest(pool);
        }
    }

    fn free_oldest(&mut self, pool: &mut BlockPool) -> bool {
        let Some(block) = self.blocks.pop_front() else { return false };
        self.first_block += 1;
        match block.bytes {
            Bytes::Many(bytes) => {
                self.blocks_bytes -= bytes.capacity();
                pool.give(bytes);
            }
            Bytes::One(bytes) => self.blocks_bytes -= bytes.len(),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(window: usize, lengths: &[usize]) -> Log {
        let mut pool = BlockPool::default();
        let mut log = Log::new(window);
        for (number, length) in lengths.iter().enumerate() {
            let byte = b'a' + u8::try_from(number % 26).unwrap();
            log.append(&mut pool, *length, 0, |out| out.resize(out.len() + length, byte));
        }
        log
    }

    fn gather(log: &Log, after: Seq, budget: usize) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); 16];
        let filled = log.slices(after, budget, &mut slices);
        slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect()
    }

    #[test]
    fn every_cursor_in_the_window_gets_exactly_what_follows() {
        let lengths = [10, 2_000, 5, 70_000, 3, 900, 30, 16_000, 16_000, 16_000, 16_000, 16_000, 7];
        let log = filled(100, &lengths);
        for after in 0..=lengths.len() {
            let expected: usize = lengths[after..].iter().sum();
            assert_eq!(gather(&log, Seq(after as u64), usize::MAX / 2).len(), expected, "after {after}");
        }
    }

    #[test]
    fn a_budget_cuts_between_frames_and_never_starves() {
        let log = filled(100, &[10, 20, 30, 40]);
        for (budget, expected) in [(1, 10), (10, 10), (29, 10), (30, 30), (59, 30), (60, 60), (1_000, 100)] {
            assert_eq!(gather(&log, Seq(0), budget).len(), expected, "budget {budget}");
        }
    }

    #[test]
    fn any_short_write_leaves_the_rest_of_one_frame() {
        let lengths = [10, 70_000, 5, 2_000];
        let log = filled(100, &lengths);
        let all = gather(&log, Seq(0), usize::MAX / 2);
        for sent in (0..all.len()).filter(|sent| *sent < 100 || sent % 997 == 0) {
            let (seq, rest) = log.advance(Seq(0), sent as u64);
            let rest = match rest {
                None => Vec::new(),
                Some(Rest::Copied(bytes)) => bytes,
                Some(Rest::Shared(bytes, from)) => bytes[from..].to_vec(),
            };
            let later = gather(&log, seq, usize::MAX / 2);
            assert_eq!([&all[..sent], &rest, &later].concat(), all, "after {sent} bytes");
        }
    }

    #[test]
    fn a_sealed_log_gives_the_same_frames_from_less_memory() {
        for (window, lengths) in [
            (100, vec![10, 2_000, 5, 900, 30, 16_000, 16_000, 7]),
            (3, vec![100; 1_000]),
            (4_096, vec![700; 10_000]),
            (100, vec![10, 70_000, 5]),
            (100, vec![]),
        ] {
            let mut log = filled(window, &lengths);
            let (before, held) = (filled(window, &lengths), log.memory_bytes());
            log.seal(&mut BlockPool::default());
            assert_eq!((log.first(), log.head()), (before.first(), before.head()));
            for seq in before.first().0..=before.head().0 {
                assert_eq!(log.frame(Seq(seq)).unwrap().bytes, before.frame(Seq(seq)).unwrap().bytes);
                let after = Seq(seq - 1);
                assert_eq!(gather(&log, after, 5_000), gather(&before, after, 5_000), "behind {after:?}");
            }
            assert!(log.memory_bytes() <= held);
            log.release(&mut BlockPool::default());
            assert_eq!(log.memory_bytes(), 0);
        }
    }

    #[test]
    fn the_window_counts_frames_and_numbers_go_on() {
        let log = filled(4, &[100; 1_000]);
        assert_eq!((log.first(), log.head()), (Seq(997), Seq(1_000)));
        assert!(!log.covers(Seq(995)) && log.covers(Seq(996)) && log.covers(Seq(1_000)));
        assert!(!log.covers(Seq(1_001)));
        assert!(log.frame(Seq(996)).is_none());
        assert_eq!(log.frame(Seq(997)).unwrap().bytes.len(), 100);
    }
}
