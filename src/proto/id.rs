//! Names and numbers of the protocol, each a type of its own so that no bare integer or string crosses a room.

use std::fmt;
use std::sync::Arc;

/// Number of events appended to a run so far; the first event has seq 1, a run without events is at seq 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl Seq {
    /// Before the first event.
    pub const ZERO: Seq = Seq(0);

    /// The seq of the event after this one.
    pub fn next(self) -> Seq {
        Seq(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Length of a run id in characters: 22 × 6 bits hold 128 random bits.
pub const RUN_ID_LEN: usize = 22;

/// The transport id of one turn: random, unguessable, never reused, 22 characters of `A–Z a–z 0–9 - _`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId([u8; RUN_ID_LEN]);

impl RunId {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    /// Spells 128 bits.
    pub fn from_bits(mut bits: u128) -> RunId {
        let mut text = [0; RUN_ID_LEN];
        for slot in &mut text {
            *slot = Self::ALPHABET[(bits & 63) as usize];
            bits >>= 6;
        }
        RunId(text)
    }

    /// Reads an id as a peer wrote it; `None` if it can't be one of ours.
    pub fn parse(text: &str) -> Option<RunId> {
        let bytes: [u8; RUN_ID_LEN] = text.as_bytes().try_into().ok()?;
        bytes.iter().all(|byte| Self::ALPHABET.contains(byte)).then_some(RunId(bytes))
    }

    /// The id's characters.
    pub fn as_bytes(&self) -> &[u8; RUN_ID_LEN] {
        &self.0
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("the alphabet is ASCII")
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Longest chat id, in bytes of UTF-8.
pub const CHAT_ID_BYTES_MAX: usize = 256;

/// Name of one conversation: 1–256 bytes of UTF-8 without control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChatId(Arc<str>);

impl ChatId {
    /// Reads a chat id; `None` if it is empty, too long or holds a control character (they could forge SSE fields
    /// and log lines).
    pub fn parse(text: &str) -> Option<ChatId> {
        let fits = !text.is_empty() && text.len() <= CHAT_ID_BYTES_MAX;
        (fits && !text.chars().any(char::is_control)).then(|| ChatId(text.into()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ChatId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for ChatId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Matches an answer of a worker or the store to the question that the engine asked. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// One connection. A slot is used again after its connection is gone; the generation tells the two apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    /// Place in the shell's table of sockets.
    pub slot: u32,
    /// How often that place was taken before.
    pub generation: u32,
}

/// A producer in the same process. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalId(pub u64);

impl LocalId {
    const TURN: u64 = 1 << 63;

    /// The id of a turn's thread: these are numbered apart from the producers of an embedding program.
    pub fn of_turn(number: u64) -> LocalId {
        LocalId(LocalId::TURN | number)
    }

    /// Whether it is a turn's.
    pub fn is_turn(self) -> bool {
        self.0 & LocalId::TURN != 0
    }
}

/// A moment, as the shell read it: the pure half never asks for the time itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds of the monotonic clock since the process began; all deadlines use it.
    pub mono_ms: u64,
    /// Milliseconds since 1970-01-01 UTC; only for what people read.
    pub wall_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_have_one_spelling() {
        let id = RunId::from_bits(u128::MAX - 12345);
        assert_eq!(RunId::parse(id.as_str()), Some(id));
        assert_eq!(RunId::parse("short"), None);
        assert_eq!(RunId::parse("AAAAAAAAAAAAAAAAAAAAA:"), None);
        assert_ne!(RunId::from_bits(1), RunId::from_bits(1 << 127));
    }

    #[test]
    fn chat_ids_refuse_what_could_forge_a_line() {
        assert!(ChatId::parse("日本 / chat?").is_some());
        for bad in ["", "a\nb", "a\rb", "\u{0}", "a\u{85}b"] {
            assert_eq!(ChatId::parse(bad), None, "{bad:?}");
        }
        assert!(ChatId::parse(&"x".repeat(256)).is_some());
        assert_eq!(ChatId::parse(&"x".repeat(257)), None);
    }
}
