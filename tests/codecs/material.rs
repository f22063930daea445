//! Material: events as agents spell them, cuts as networks make them, and faults as bugs make them.

use proptest::prelude::*;
use proptest::sample::Index;

use crate::generate::{self, Options};

/// A few events that follow each other, in all their spellings.
pub(crate) fn events(line_breaks: bool) -> impl Strategy<Value = Vec<String>> {
    (any::<u64>(), 0..6_usize).prop_map(move |(seed, steps)| {
        generate::events(seed, Options { valid: seed % 4 > 0, steps, line_breaks })
    })
}

/// One event.
pub(crate) fn event() -> impl Strategy<Value = String> {
    (events(true), any::<Index>()).prop_map(|(events, index)| index.get(&events).clone())
}

/// Where bytes of any length are cut.
#[derive(Clone, Debug)]
pub(crate) struct Cuts(Vec<Index>);

/// Some cuts, a few of which may fall on the same place.
pub(crate) fn cuts() -> impl Strategy<Value = Cuts> {
    prop::collection::vec(any::<Index>(), 0..24).prop_map(Cuts)
}

impl Cuts {
    /// In one piece.
    pub(crate) fn none() -> Cuts {
        Cuts(Vec::new())
    }

    /// The pieces, which may be empty.
    pub(crate) fn pieces<'b>(&self, bytes: &'b [u8]) -> Vec<&'b [u8]> {
        let mut places: Vec<usize> = self.0.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
    }
}

/// What happens to bytes on their way out of a broken program.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    Replace(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Truncate(Index),
    Repeat(Index, Index),
}

/// A few faults, rich in the bytes that mean something to somebody.
pub(crate) fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let loaded =
        prop::sample::select(b"\r\n\0\t\x0c :;,\"\\{}[]0af1u-+.edxt/\xef\xbb\xbf\xed\xa0\xff\x7f".to_vec());
    let byte = prop_oneof![4 => loaded, 1 => any::<u8>()].boxed();
    let fault = prop_oneof![
        3 => (any::<Index>(), byte.clone()).prop_map(|(at, byte)| Fault::Replace(at, byte)),
        3 => (any::<Index>(), byte).prop_map(|(at, byte)| Fault::Insert(at, byte)),
        2 => any::<Index>().prop_map(Fault::Remove),
        1 => any::<Index>().prop_map(Fault::Truncate),
        1 => any::<(Index, Index)>().prop_map(|(from, to)| Fault::Repeat(from, to)),
    ];
    prop::collection::vec(fault, 1..4)
}

/// Does to the bytes what the faults say.
pub(crate) fn spoil(mut bytes: Vec<u8>, faults: &[Fault]) -> Vec<u8> {
    for fault in faults {
        let length = bytes.len();
        match fault {
            Fault::Insert(at, byte) => bytes.insert(at.index(length + 1), *byte),
            _ if length == 0 => {}
            Fault::Replace(at, byte) => bytes[at.index(length)] = *byte,
            Fault::Remove(at) => drop(bytes.remove(at.index(length))),
            Fault::Truncate(at) => bytes.truncate(at.index(length)),
            Fault::Repeat(from, to) => {
                let (from, to) = (from.index(length), to.index(length));
                let again = bytes[from.min(to)..from.max(to)].to_vec();
                bytes.splice(to..to, again);
            }
        }
    }
    bytes
}

/// Noise: mostly bytes that mean something to somebody.
pub(crate) fn noise() -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(vec![
        &b"{"[..],
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\"",
        b"\\",
        b"\\u",
        b"\\ud83d",
        b"{\"type\":\"X\"}",
        b"\"type\"",
        b"1",
        b"-",
        b"e9",
        b"true",
        b"null",
        b" ",
        b"\t",
        b"\r",
        b"\n",
        b"\r\n\r\n",
        b"data:",
        b"data: ",
        b"data",
        b": ",
        b"id: 1\n",
        b"[DONE]",
        b"\xef\xbb\xbf",
        b"GET / HTTP/1.1\r\nHost: h\r\n",
        b"POST /a HTTP/1.0\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
    ]);
    let piece =
        prop_oneof![8 => token.prop_map(<[u8]>::to_vec), 1 => prop::collection::vec(any::<u8>(), 0..6)];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}
