//! The accumulator holds all events of a run, compacted: what a snapshot is made of.
//!
//! Within a stretch of delta events, deltas of one target are joined into one entry, entries in order of first
//! appearance; any other event ends the stretch. The first entry of a stretch grows at the run's tail itself;
//! further (interleaved) ones grow in chains of their own and are put behind it when the stretch ends. A text is
//! never unescaped, and never copied together with what came before it: appending costs O(the delta).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::proto::event::{Attribute, Chunk, ChunkKind, Delta, DeltaKind, Mark};
use crate::proto::pool::{BlockPool, next_size};
use crate::rope::Rope;

/// The bytes between and around joined texts; `wire` knows their meaning.
#[derive(Debug)]
pub struct Punctuation {
    /// Between two entries.
    pub separator: &'static [u8],
    /// Behind an entry's text.
    pub text_end: &'static [u8],
    /// Before an entry's merged metadata.
    pub attributes_start: &'static [u8],
    /// Between two members of the metadata.
    pub attribute_separator: &'static [u8],
    /// Behind the metadata.
    pub attributes_end: &'static [u8],
    /// Behind an entry.
    pub entry_end: &'static [u8],
}

/// All events of a run, compacted.
#[derive(Debug)]
pub struct Accumulator {
    punctuation: &'static Punctuation,
    text: Text,
    open: Open,
    /// Changes whenever an entry may have stopped to be what the next delta of its target joins.
    epoch: u64,
    /// Whether a chunk of this run has named a subagent: each subagent has a current message of its own, so that a
    /// chunk without id need not belong to the message of the chunk before it.
    tagged_chunks: bool,
}

impl Accumulator {
    /// No event yet.
    pub fn new(punctuation: &'static Punctuation) -> Accumulator {
        Accumulator {
            punctuation,
            text: Text::default(),
            open: Open::Nothing,
            epoch: 0,
            tagged_chunks: false,
        }
    }

    /// Adds a delta event.
    pub fn delta(&mut self, delta: &Delta<'_>, pool: &mut BlockPool) {
        if let Open::Stretch(stretch) = &mut self.open {
            match stretch.find(delta) {
                Place::Joins(index) => {
                    stretch.join(index, delta.text, &mut self.text, pool);
                    return stretch.entry_mut(index).merge(delta.attributes.as_deref());
                }
                Place::NewEntry => {
                    self.epoch += 1;
                    return stretch.push(delta, pool);
                }
                Place::EndsStretch => {}
            }
        }
        self.close(pool);
        self.separate(pool);
        self.text.push(&delta.head, pool);
        self.text.push(delta.text, pool);
        self.open = Open::Stretch(Box::new(Stretch::new(delta)));
    }

    /// The entry that took the last event, if that was a delta.
    #[inline]
    pub fn last_entry(&self) -> Option<EntryId> {
        match &self.open {
            Open::Stretch(stretch) => Some(EntryId { epoch: self.epoch, index: stretch.recent }),
            Open::Nothing | Open::Chunk(_) => None,
        }
    }

    /// Adds a delta that differs from one that `entry` took in its text alone. Returns false, and does nothing, if such
    /// a delta may no longer join that entry.
    #[inline]
    pub fn join(&mut self, entry: EntryId, text: &[u8], pool: &mut BlockPool) -> bool {
        match &mut self.open {
            Open::Stretch(stretch) if entry.epoch == self.epoch => {
                stretch.join(entry.index, text, &mut self.text, pool);
                true
            }
            Open::Stretch(_) | Open::Nothing | Open::Chunk(_) => false,
        }
    }

    /// Adds a chunk event.
    pub fn chunk(&mut self, chunk: &Chunk<'_>, pool: &mut BlockPool) {
        if let Open::Chunk(before) = &self.open
            && before.takes(chunk, self.tagged_chunks)
        {
            self.text.push(chunk.text, pool);
            return;
        }
        self.close(pool);
        self.separate(pool);
        self.text.push(&chunk.head, pool);
        self.text.push(chunk.text, pool);
        self.tagged_chunks |= chunk.tagged;
        let id = chunk.id.as_deref().map(Box::from);
        self.open = Open::Chunk(OpenChunk { kind: chunk.kind, id, tagged: chunk.tagged });
    }

    /// Adds any other event.
    pub fn boundary(&mut self, event: &[u8], mark: &Mark<'_>, pool: &mut BlockPool) {
        self.tagged_chunks |= *mark == Mark::TaggedChunk;
        self.close(pool);
        self.separate(pool);
        self.text.push(event, pool);
    }

    /// All entries up to now, with separators between them. Shares the sealed text; copies the open block.
    pub fn capture(&self) -> Rope {
        let mut rope = self.text.sealed.clone();
        let mut copy = Vec::with_capacity(self.text.block.len() + 64);
        copy.extend_from_slice(&self.text.block);
        match &self.open {
            Open::Nothing => {}
            Open::Chunk(_) => self.end_entry(None, &mut copy),
            Open::Stretch(stretch) => {
                self.end_entry(stretch.first.attributes.as_deref(), &mut copy);
                for (entry, text) in &stretch.others {
                    copy.extend_from_slice(self.punctuation.separator);
                    for piece in text.sealed.pieces() {
                        rope.push(Arc::new(std::mem::take(&mut copy)));
                        rope.push(piece.clone());
                    }
                    copy.extend_from_slice(&text.block);
                    self.end_entry(entry.attributes.as_deref(), &mut copy);
                }
            }
        }
        rope.push(Arc::new(copy));
        rope
    }

    /// Bytes of memory held for the run's text.
    pub fn memory_bytes(&self) -> u64 {
        let open = match &self.open {
            Open::Nothing | Open::Chunk(_) => 0,
            Open::Stretch(stretch) => stretch.others_bytes,
        };
        self.text.memory_bytes() + open
    }

    /// Gives back the memory that only growth needs: the run takes no more events.
    pub fn seal(&mut self, pool: &mut BlockPool) {
        self.close(pool);
        self.text.seal_copy();
        pool.give(std::mem::take(&mut self.text.block));
    }

    /// Gives all blocks back that no snapshot shares.
    pub fn release(&mut self, pool: &mut BlockPool) {
        let open = std::mem::replace(&mut self.open, Open::Nothing);
        if let Open::Stretch(stretch) = open {
            stretch.others.into_iter().for_each(|(_, text)| text.release(pool));
        }
        std::mem::take(&mut self.text).release(pool);
    }

    /// Ends the open stretch or chunk.
    fn close(&mut self, pool: &mut BlockPool) {
        self.epoch += 1;
        let mut end = Vec::new();
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => return,
            Open::Chunk(_) => self.end_entry(None, &mut end),
            Open::Stretch(stretch) => {
                self.end_entry(stretch.first.attributes.as_deref(), &mut end);
                for (entry, text) in stretch.others {
                    end.extend_from_slice(self.punctuation.separator);
                    self.text.push(&end, pool);
                    end.clear();
                    self.text.absorb(text, pool);
                    self.end_entry(entry.attributes.as_deref(), &mut end);
                }
            }
        }
        self.text.push(&end, pool);
    }

    fn end_entry(&self, attributes: Option<&[OwnAttribute]>, out: &mut Vec<u8>) {
        out.extend_from_slice(self.punctuation.text_end);
        if let Some(attributes) = attributes {
            out.extend_from_slice(self.punctuation.attributes_start);
            for (index, attribute) in attributes.iter().enumerate() {
                if index > 0 {
                    out.extend_from_slice(self.punctuation.attribute_separator);
                }
                out.extend_from_slice(&attribute.member);
            }
            out.extend_from_slice(self.punctuation.attributes_end);
        }
        out.extend_from_slice(self.punctuation.entry_end);
    }

    fn separate(&mut self, pool: &mut BlockPool) {
        if !self.text.is_empty() {
            self.text.push(self.punctuation.separator, pool);
        }
    }
}

/// Names an entry of the open stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryId {
    epoch: u64,
    /// 0 is the stretch's first entry, n is `others[n - 1]`.
    index: usize,
}

/// What the next event could be joined to.
#[derive(Debug)]
enum Open {
    Nothing,
    Stretch(Box<Stretch>),
    Chunk(OpenChunk),
}

#[derive(Debug)]
struct OpenChunk {
    kind: ChunkKind,
    id: Option<Box<[u8]>>,
    tagged: bool,
}

impl OpenChunk {
    fn takes(&self, later: &Chunk<'_>, tagged_chunks: bool) -> bool {
        let same_message = match &later.id {
            None => !self.tagged && (self.id.is_none() || !tagged_chunks),
            Some(id) => self.id.as_deref() == Some(id),
        };
        self.kind == later.kind && later.plain && same_message
    }
}

/// A stretch of delta events: its entries in order of first appearance.
#[derive(Debug)]
struct Stretch {
    /// Its text grows at the run's tail.
    first: Entry,
    /// Their texts grow beside it until the stretch ends.
    others: Vec<(Entry, Text)>,
    /// Last entry of each target, per kind; the first entry is not listed and counts when its target isn't found.
    last: [BTreeMap<Box<[u8]>, usize>; DeltaKind::ALL.len()],
    /// Entry that took the last delta: 0 is `first`, n is `others[n - 1]`. Most deltas follow one of their target.
    recent: usize,
    /// Memory of `others`, in bytes.
    others_bytes: u64,
}

/// Where a delta goes within a stretch.
enum Place {
    Joins(usize),
    NewEntry,
    EndsStretch,
}

impl Stretch {
    fn new(delta: &Delta<'_>) -> Stretch {
        Stretch {
            first: Entry::new(delta),
            others: Vec::new(),
            last: Default::default(),
            recent: 0,
            others_bytes: 0,
        }
    }

    fn find(&self, delta: &Delta<'_>) -> Place {
        let recent = self.entry(self.recent);
        let index = if recent.is_target(delta.kind, &delta.id) {
            Some(self.recent)
        } else {
            if delta.kind.sibling().is_some_and(|sibling| self.last_of(sibling, &delta.id).is_some()) {
                return Place::EndsStretch;
            }
            self.last_of(delta.kind, &delta.id)
        };
        match index {
            Some(index) if *self.entry(index).same == *delta.same => Place::Joins(index),
            Some(_) | None => Place::NewEntry,
        }
    }

    fn last_of(&self, kind: DeltaKind, id: &[u8]) -> Option<usize> {
        let listed = self.last[kind as usize].get(id).copied();
        listed.or_else(|| self.first.is_target(kind, id).then_some(0))
    }

    #[inline]
    fn join(&mut self, index: usize, text: &[u8], run: &mut Text, pool: &mut BlockPool) {
        self.recent = index;
        match index.checked_sub(1) {
            None => run.push(text, pool),
            Some(other) => {
                self.others_bytes += text.len() as u64;
                self.others[other].1.push(text, pool);
            }
        }
    }

    fn push(&mut self, delta: &Delta<'_>, pool: &mut BlockPool) {
        let mut text = Text::default();
        text.push(&delta.head, pool);
        text.push(delta.text, pool);
        self.others_bytes +=
            text.memory_bytes() + 2 * delta.id.len() as u64 + size_of::<(Entry, Text)>() as u64;
        self.others.push((Entry::new(delta), text));
        self.recent = self.others.len();
        self.last[delta.kind as usize].insert(Box::from(&*delta.id), self.recent);
    }

    fn entry(&self, index: usize) -> &Entry {
        match index.checked_sub(1) {
            None => &self.first,
            Some(other) => &self.others[other].0,
        }
    }

    fn entry_mut(&mut self, index: usize) -> &mut Entry {
        match index.checked_sub(1) {
            None => &mut self.first,
            Some(other) => &mut self.others[other].0,
        }
    }
}

#[derive(Debug)]
struct OwnAttribute {
    key: Box<[u8]>,
    member: Box<[u8]>,
}

impl OwnAttribute {
    fn new(attribute: &Attribute<'_>) -> OwnAttribute {
        OwnAttribute { key: Box::from(&*attribute.key), member: Box::from(&*attribute.member) }
    }
}

/// One entry of a stretch, beside its text.
#[derive(Debug)]
struct Entry {
    kind: DeltaKind,
    id: Box<[u8]>,
    same: Box<[u8]>,
    attributes: Option<Vec<OwnAttribute>>,
}

impl Entry {
    fn new(delta: &Delta<'_>) -> Entry {
        let mut entry = Entry {
            kind: delta.kind,
            id: Box::from(&*delta.id),
            same: Box::from(&*delta.same),
            attributes: None,
        };
        entry.merge(delta.attributes.as_deref());
        entry
    }

    fn is_target(&self, kind: DeltaKind, id: &[u8]) -> bool {
        self.kind == kind && *self.id == *id
    }

    /// The last write of a key wins and keeps the key's first place.
    fn merge(&mut self, later: Option<&[Attribute<'_>]>) {
        let Some(later) = later else { return };
        let own = self.attributes.get_or_insert_default();
        for attribute in later {
            match own.iter_mut().find(|old| *old.key == *attribute.key) {
                Some(old) => old.member = Box::from(&*attribute.member),
                None => own.push(OwnAttribute::new(attribute)),
            }
        }
    }
}

/// Growing text: sealed pieces and one block being filled. Blocks are filled to their last byte, so memory stays
/// close to the text.
#[derive(Debug, Default)]
struct Text {
    sealed: Rope,
    block: Vec<u8>,
}

impl Text {
    fn is_empty(&self) -> bool {
        self.sealed.is_empty() && self.block.is_empty()
    }

    #[inline]
    fn push(&mut self, bytes: &[u8], pool: &mut BlockPool) {
        if bytes.len() <= self.block.capacity() - self.block.len() {
            self.block.extend_from_slice(bytes);
        } else {
            self.push_across(bytes, pool);
        }
    }

    fn push_across(&mut self, mut bytes: &[u8], pool: &mut BlockPool) {
        loop {
            let room = self.block.capacity() - self.block.len();
            if bytes.len() <= room {
                self.block.extend_from_slice(bytes);
                return;
            }
            let (fits, rest) = bytes.split_at(room);
            self.block.extend_from_slice(fits);
            bytes = rest;
            self.grow(pool);
        }
    }

    /// Seals the full block and begins the next.
    fn grow(&mut self, pool: &mut BlockPool) {
        let held = usize::try_from(self.sealed.len()).expect("a text is in memory") + self.block.len();
        let size = next_size(held, 1);
        let full = std::mem::replace(&mut self.block, pool.take(size));
        self.sealed.push(Arc::new(full));
    }

    /// Puts another text behind this one: small ones are copied, sealed pieces are taken over.
    fn absorb(&mut self, other: Text, pool: &mut BlockPool) {
        if !other.sealed.is_empty() {
            self.seal_copy();
            for piece in other.sealed.pieces() {
                self.sealed.push(piece.clone());
            }
        }
        self.push(&other.block, pool);
        pool.give(other.block);
    }

    fn release(self, pool: &mut BlockPool) {
        self.sealed.unshared(|piece| pool.give(piece));
        pool.give(self.block);
    }

    /// Seals what the block holds as a piece of just that size and keeps the block for what follows.
    fn seal_copy(&mut self) {
        self.sealed.push_copy(&self.block);
        self.block.clear();
    }

    fn memory_bytes(&self) -> u64 {
        self.sealed.len() + self.block.capacity() as u64
    }
}
