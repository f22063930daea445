//! A rope: bytes in shared, immutable pieces, so that handing megabytes to another thread or to a thousand
//! observers copies only pointers.
//!
//! Pieces are kept in shared chunks of [`CHUNK_PIECES`], so that cloning a rope of many thousand pieces clones a
//! few hundred pointers. A rope never looks into its bytes.

use std::sync::Arc;

/// Pieces per shared chunk: 64 pieces of 64 KiB are 4 MiB of text behind one pointer.
pub const CHUNK_PIECES: usize = 64;

/// One immutable run of bytes, shared by reference count.
pub type Piece = Arc<Vec<u8>>;

/// Immutable bytes in order, cheap to clone, append-only.
#[derive(Clone, Debug, Default)]
pub struct Rope {
    /// Full chunks: each holds exactly `CHUNK_PIECES` pieces.
    full: Vec<Arc<Vec<Piece>>>,
    /// The pieces behind the last full chunk: fewer than `CHUNK_PIECES`.
    open: Vec<Piece>,
    /// Sum of all pieces' lengths.
    bytes: u64,
}

impl Rope {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether the rope holds no byte.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Number of pieces.
    pub fn pieces_len(&self) -> usize {
        self.full.len() * CHUNK_PIECES + self.open.len()
    }

    /// Piece number `index`, counted from 0.
    pub fn piece(&self, index: usize) -> Option<&Piece> {
        match self.full.get(index / CHUNK_PIECES) {
            Some(chunk) => chunk.get(index % CHUNK_PIECES),
            None => self.open.get(index - self.full.len() * CHUNK_PIECES),
        }
    }

    /// All pieces in order.
    pub fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.full.iter().flat_map(|chunk| chunk.iter()).chain(self.open.iter())
    }

    /// Appends a piece without copying it; an empty piece is dropped.
    pub fn push(&mut self, piece: Piece) {
        if piece.is_empty() {
            return;
        }
        self.bytes += piece.len() as u64;
        self.open.push(piece);
        if self.open.len() == CHUNK_PIECES {
            let chunk = std::mem::replace(&mut self.open, Vec::with_capacity(CHUNK_PIECES));
            self.full.push(Arc::new(chunk));
        }
    }

    /// Appends a copy of `bytes` as one piece.
    pub fn push_copy(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.push(Arc::new(bytes.to_vec()));
        }
    }

    /// Takes the rope apart and hands on the pieces that nobody else holds.
    pub fn unshared(self, mut take: impl FnMut(Vec<u8>)) {
        let full = self.full.into_iter().filter_map(|chunk| Arc::try_unwrap(chunk).ok()).flatten();
        full.chain(self.open).filter_map(|piece| Arc::try_unwrap(piece).ok()).for_each(&mut take);
    }

    /// All bytes in one vector (a copy).
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(usize::try_from(self.bytes).unwrap_or(0));
        for piece in self.pieces() {
            all.extend_from_slice(piece);
        }
        all
    }
}

impl From<Vec<u8>> for Rope {
    fn from(bytes: Vec<u8>) -> Self {
        let mut rope = Rope::default();
        rope.push(Arc::new(bytes));
        rope
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_their_order_across_chunks() {
        let mut rope = Rope::default();
        let mut plain = Vec::new();
        for number in 0..200_u32 {
            let text = format!("{number},");
            rope.push_copy(text.as_bytes());
            plain.extend_from_slice(text.as_bytes());
        }
        assert_eq!(rope.to_vec(), plain);
        assert_eq!(rope.pieces_len(), 200);
        assert_eq!(rope.len(), plain.len() as u64);
        for index in 0..200 {
            assert_eq!(rope.piece(index).map(|piece| piece.to_vec()), Some(format!("{index},").into_bytes()));
        }
        assert_eq!(rope.piece(200), None);
    }

    #[test]
    fn only_what_nobody_else_holds_is_handed_on() {
        let mut rope = Rope::default();
        (0..100).for_each(|_| rope.push_copy(b"x"));
        let held = (rope.clone(), rope.piece(1).cloned());
        let mut later = rope.clone();
        (0..30).for_each(|_| later.push_copy(b"y"));
        let count = |rope: Rope| {
            let mut pieces = 0;
            rope.unshared(|_| pieces += 1);
            pieces
        };
        assert_eq!(count(rope), 0);
        assert_eq!(count(later), 30, "the others are held");
        drop(held.1);
        assert_eq!(count(held.0), 100);
    }
}
