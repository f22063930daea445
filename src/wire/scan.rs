//! The scan of JSON strings, sixteen bytes at a step: most bytes of most events are looked at here and nowhere else
//! one by one.

use wide::u8x16;

const LANES: usize = 16;

/// Bytes between two looks at what was found, where nothing was for long enough.
const BLOCK: usize = 4 * LANES;

/// After as many bytes without an escape, the next ones are likely to have none either.
const PLAIN: usize = 3 * LANES;

/// A string's text, up to the quote that ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text {
    /// Where the quote stands.
    pub(super) end: usize,
    /// Whether a backslash is in it.
    pub(super) escaped: bool,
    /// Whether only ASCII was met. Bytes beside the text may have been looked at too, so `false` decides nothing.
    pub(super) ascii: bool,
}

/// Reads the text of a string that begins at `at`. Escapes are checked, UTF-8 is not. The error is the offset of what can't
/// stand in a string: a control character, a wrong escape, the end.
#[inline]
pub(super) fn text(json: &[u8], at: usize) -> Result<Text, usize> {
    let mut scan = Scan { json, at, seen: u8x16::splat(0), escaped: false };
    let mut plain_from = at;
    while let Some(chunk) = json.get(scan.at..).and_then(|rest| rest.first_chunk::<LANES>()) {
        let from = scan.at;
        match scan.step(*chunk, from)? {
            Step::Ends(end) => return Ok(scan.ended(end)),
            Step::Escaped => plain_from = scan.at,
            Step::Plain if scan.at - plain_from >= PLAIN => {
                scan.skip_plain();
                plain_from = scan.at;
            }
            Step::Plain => {}
        }
    }
    // The last sixteen bytes, of which the first were looked at before.
    if let Some(last) = json.last_chunk::<LANES>() {
        while scan.at < json.len() {
            if let Step::Ends(end) = scan.step(*last, json.len() - LANES)? {
                return Ok(scan.ended(end));
            }
        }
        return Err(json.len());
    }
    scan.short()
}

/// What sixteen bytes held.
enum Step {
    /// The quote, there.
    Ends(usize),
    /// Escapes.
    Escaped,
    /// Nothing special.
    Plain,
}

struct Scan<'a> {
    json: &'a [u8],
    /// The first byte that was not yet looked at.
    at: usize,
    /// All bytes that were looked at, or-ed.
    seen: u8x16,
    escaped: bool,
}

impl Scan<'_> {
    /// Passes over stretches in which nothing is special.
    #[inline(always)]
    fn skip_plain(&mut self) {
        let (blocks, _) = self.json.get(self.at..).unwrap_or_default().as_chunks::<BLOCK>();
        let mut seen = self.seen;
        for block in blocks {
            let (chunks, _) = block.as_chunks::<LANES>();
            let mut found = u8x16::splat(0);
            for chunk in chunks {
                let bytes = u8x16::new(*chunk);
                seen |= bytes;
                found |= special(bytes);
            }
            if found.to_bitmask() != 0 {
                break;
            }
            self.at += BLOCK;
        }
        self.seen = seen;
    }

    /// Looks at what of the sixteen bytes at `from` was not yet looked at.
    #[inline(always)]
    fn step(&mut self, chunk: [u8; LANES], from: usize) -> Result<Step, usize> {
        let bytes = u8x16::new(chunk);
        self.seen |= bytes;
        let mut step = Step::Plain;
        let mut found = special(bytes).to_bitmask() & (u32::MAX << (self.at - from));
        while found != 0 {
            let lane = found.trailing_zeros() as usize;
            let place = from + lane;
            match self.json.get(place) {
                Some(b'"') => return Ok(Step::Ends(place)),
                Some(b'\\') => {
                    self.escaped = true;
                    step = Step::Escaped;
                    let len = escape_len(self.json.get(place..).unwrap_or_default()).ok_or(place)?;
                    if lane + len >= LANES {
                        self.at = place + len;
                        return Ok(step);
                    }
                    found &= u32::MAX << (lane + len);
                }
                Some(_) | None => return Err(place),
            }
        }
        self.at = from + LANES;
        Ok(step)
    }

    fn ended(&self, end: usize) -> Text {
        Text { end, escaped: self.escaped, ascii: self.seen.to_bitmask() == 0 }
    }

    /// As above, for less than sixteen bytes in all.
    fn short(&mut self) -> Result<Text, usize> {
        loop {
            let rest = self.json.get(self.at..).unwrap_or_default();
            match rest.first() {
                Some(b'"') => {
                    return Ok(Text { end: self.at, escaped: self.escaped, ascii: self.json.is_ascii() });
                }
                Some(b'\\') => {
                    self.escaped = true;
                    self.at += escape_len(rest).ok_or(self.at)?;
                }
                Some(byte) if *byte >= 0x20 => self.at += 1,
                Some(_) | None => return Err(self.at),
            }
        }
    }
}

/// All ones for each byte that ends a plain stretch: a control character, a quote or a backslash.
#[inline(always)]
fn special(bytes: u8x16) -> u8x16 {
    // With this bit turned over, the quote comes right behind the control characters.
    let turned = bytes ^ u8x16::splat(0x02);
    turned.min(u8x16::splat(0x20)).simd_eq(turned) | bytes.simd_eq(u8x16::splat(b'\\'))
}

/// Length of the escape at the start of `bytes`, if it is one.
#[inline]
fn escape_len(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => bytes.get(2..6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One byte after the other.
    fn plainly(json: &[u8], at: usize) -> Result<(usize, bool), usize> {
        let mut at = at;
        let mut escaped = false;
        loop {
            match json.get(at) {
                Some(b'"') => return Ok((at, escaped)),
                Some(b'\\') => {
                    escaped = true;
                    at += escape_len(&json[at..]).ok_or(at)?;
                }
                Some(byte) if *byte >= 0x20 => at += 1,
                Some(_) | None => return Err(at),
            }
        }
    }

    fn check(json: &[u8]) {
        for at in 0..=json.len() {
            let found = text(json, at);
            assert_eq!(found.map(|text| (text.end, text.escaped)), plainly(json, at), "{json:?} from {at}");
            if let Ok(text) = found
                && text.ascii
            {
                assert!(json[at..text.end].is_ascii(), "{json:?} from {at}");
            }
        }
    }

    #[test]
    fn every_byte_at_every_place_is_found_or_passed() {
        for length in [0, 1, 15, 16, 17, 31, 32, 33, 50, 63, 64, 65, 80] {
            for place in 0..length {
                for byte in 0..=255_u8 {
                    let mut json = vec![b'x'; length];
                    json[place] = byte;
                    check(&json);
                    json.push(b'"');
                    check(&json);
                }
            }
        }
    }

    #[test]
    fn escapes_across_every_step() {
        for escape in ["\\n", "\\\\", "\\\"", "\\u00e9", "\\ud83d\\ude00", "\\", "\\x", "\\u12", "\\u12g4"] {
            for before in 0..70 {
                for after in [0, 1, 3, 20] {
                    let json = format!("{}{escape}{}\"x\"", "x".repeat(before), "y".repeat(after));
                    check(json.as_bytes());
                    check(format!("{}{escape}", "x".repeat(before)).as_bytes());
                }
            }
        }
    }
}
