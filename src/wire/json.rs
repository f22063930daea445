//! Reading JSON without building it: the members of an object as slices of its bytes.
//!
//! Everything is checked on the way: what comes out of here is valid JSON, byte for byte. Only nested values are
//! handed to serde_json; strings, which make up nearly all of an event, are scanned here in one pass.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::limits::JSON_DEPTH_MAX;
use crate::wire::scan;

/// Why bytes are not the JSON that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonFault {
    /// Not JSON, from this offset on.
    Syntax(usize),
    /// JSON, but no object.
    NotObject,
    /// Not UTF-8, from this offset on.
    NotUtf8(usize),
    /// Nested more than [`JSON_DEPTH_MAX`] levels deep.
    TooDeep,
}

/// A value, as far as it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A string: what stands between its quotes.
    Text(Raw<'a>),
    /// An object, with its braces.
    Object(&'a [u8]),
    /// Anything else.
    Other(&'a [u8]),
}

/// The inside of a JSON string as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    /// The bytes between the quotes.
    pub bytes: &'a [u8],
    /// Whether any of them is a backslash.
    pub escaped: bool,
}

impl<'a> Raw<'a> {
    /// The string that is meant. Half a surrogate pair is kept as the three bytes that UTF-8 would give it.
    pub fn decoded(self) -> Cow<'a, [u8]> {
        if self.escaped { Cow::Owned(unescape(self.bytes)) } else { Cow::Borrowed(self.bytes) }
    }
}

/// One member of an object.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The key.
    pub key: Raw<'a>,
    /// The value.
    pub value: Value<'a>,
    /// Key, colon and value as they are written.
    pub bytes: &'a [u8],
    /// Offset of the value's first byte, counted from the first byte that was read.
    pub value_offset: usize,
    /// Whether this was the object's last member.
    pub last: bool,
}

/// The members of an object, in order. Yields a fault once, then nothing.
pub struct Members<'a> {
    json: &'a [u8],
    at: usize,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Start,
    Between,
    Done,
}

/// Checks that `json` is UTF-8 and reads the members of the object in it.
pub fn members(json: &[u8]) -> Result<Members<'_>, JsonFault> {
    match simdutf8::basic::from_utf8(json) {
        Ok(_) => Ok(Members { json, at: 0, state: State::Start }),
        Err(_) => {
            let valid = std::str::from_utf8(json).err().map_or(0, |fault| fault.valid_up_to());
            Err(JsonFault::NotUtf8(valid))
        }
    }
}

/// Where the string whose text begins at `at` has its closing quote, if what is before it is a string's text.
#[inline]
pub fn text_end(json: &[u8], at: usize) -> Option<usize> {
    let text = scan::text(json, at).ok()?;
    let is_utf8 = || json.get(at..text.end).is_some_and(|text| simdutf8::basic::from_utf8(text).is_ok());
    (text.ascii || is_utf8()).then_some(text.end)
}

/// The bytes without the white space around them: JSON's own, which is less than ASCII's.
pub fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\r' | b'\n', rest @ ..] | [rest @ .., b' ' | b'\t' | b'\r' | b'\n'] = bytes {
        bytes = rest;
    }
    bytes
}

impl<'a> Iterator for Members<'a> {
    type Item = Result<Member<'a>, JsonFault>;

    // Into its caller, so that a member is not copied from return value to return value.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let begun = match self.state {
            State::Done => return None,
            State::Start => self.open(),
            State::Between => Ok(true),
        };
        self.state = State::Done;
        match begun {
            Ok(true) => {}
            Ok(false) => return None,
            Err(fault) => return Some(Err(fault)),
        }
        let member = self.member();
        if member.as_ref().is_ok_and(|member| !member.last) {
            self.state = State::Between;
        }
        Some(member)
    }
}

impl<'a> Members<'a> {
    /// Takes the opening brace; returns whether a member follows.
    fn open(&mut self) -> Result<bool, JsonFault> {
        self.space();
        match self.peek() {
            Some(b'{') => self.at += 1,
            Some(_) | None => return Err(self.not_object()),
        }
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            self.end()?;
            return Ok(false);
        }
        Ok(true)
    }

    #[inline(always)]
    fn member(&mut self) -> Result<Member<'a>, JsonFault> {
        self.space();
        let start = self.at;
        self.expect(b'"')?;
        let key = self.string()?;
        self.space();
        self.expect(b':')?;
        self.space();
        let value_offset = self.at;
        let value = self.value()?;
        let bytes = self.json.get(start..self.at).unwrap_or_default();
        self.space();
        let last = match self.peek() {
            Some(b',') => false,
            Some(b'}') => true,
            Some(_) | None => return Err(JsonFault::Syntax(self.at)),
        };
        self.at += 1;
        if last {
            self.end()?;
        }
        Ok(Member { key, value, bytes, value_offset, last })
    }

    fn value(&mut self) -> Result<Value<'a>, JsonFault> {
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                self.string().map(Value::Text)
            }
            Some(open) => {
                let rest = self.json.get(self.at..).unwrap_or_default();
                let value = nested(rest).map_err(|fault| fault.shifted(self.at))?;
                self.at += value.len();
                Ok(if open == b'{' { Value::Object(value) } else { Value::Other(value) })
            }
            None => Err(JsonFault::Syntax(self.at)),
        }
    }

    /// Reads a string whose opening quote is behind.
    #[inline]
    fn string(&mut self) -> Result<Raw<'a>, JsonFault> {
        let start = self.at;
        let text = scan::text(self.json, start).map_err(JsonFault::Syntax)?;
        self.at = text.end + 1;
        Ok(Raw { bytes: self.json.get(start..text.end).unwrap_or_default(), escaped: text.escaped })
    }

    fn end(&mut self) -> Result<(), JsonFault> {
        self.space();
        if self.at == self.json.len() { Ok(()) } else { Err(JsonFault::Syntax(self.at)) }
    }

    fn not_object(&self) -> JsonFault {
        match serde_json::from_slice::<&RawValue>(self.json) {
            Ok(_) => JsonFault::NotObject,
            Err(fault) => JsonFault::Syntax(fault_offset(self.json, &fault)),
        }
    }

    #[inline]
    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), JsonFault> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(JsonFault::Syntax(self.at))
    }
}

impl JsonFault {
    fn shifted(self, by: usize) -> JsonFault {
        match self {
            JsonFault::Syntax(at) => JsonFault::Syntax(at + by),
            JsonFault::NotUtf8(at) => JsonFault::NotUtf8(at + by),
            JsonFault::NotObject | JsonFault::TooDeep => self,
        }
    }
}

/// The value at the start of `bytes`, checked by serde_json.
fn nested(bytes: &[u8]) -> Result<&[u8], JsonFault> {
    check_depth(bytes)?;
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<&RawValue>();
    match values.next() {
        Some(Ok(value)) => Ok(value.get().as_bytes()),
        Some(Err(fault)) => Err(JsonFault::Syntax(fault_offset(bytes, &fault))),
        None => Err(JsonFault::Syntax(0)),
    }
}

/// Where in `bytes` serde_json found a fault: it counts lines and columns from 1, and column 0 is the line break
/// itself.
fn fault_offset(bytes: &[u8], fault: &serde_json::Error) -> usize {
    if fault.is_eof() {
        return bytes.len();
    }
    let breaks_before = fault.line().saturating_sub(1);
    let last_break = breaks_before.checked_sub(1).and_then(|nth| memchr::memchr_iter(b'\n', bytes).nth(nth));
    let line_start = last_break.map_or(0, |at| at + 1);
    (line_start + fault.column()).saturating_sub(1).min(bytes.len())
}

/// Looks at brackets only, up to the end of the first value; what is no JSON is found later.
fn check_depth(bytes: &[u8]) -> Result<(), JsonFault> {
    let mut depth = 1_usize;
    let mut quoted = false;
    let mut skip = false;
    for byte in bytes {
        match (byte, quoted) {
            _ if skip => skip = false,
            (b'\\', true) => skip = true,
            (b'"', _) => quoted = !quoted,
            (b'{' | b'[', false) => depth += 1,
            (b'}' | b']', false) => depth -= 1,
            _ => {}
        }
        if depth > JSON_DEPTH_MAX {
            return Err(JsonFault::TooDeep);
        }
        if depth <= 1 && !quoted && matches!(byte, b'}' | b']' | b',') {
            break;
        }
    }
    Ok(())
}

fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at(at);
        out.extend_from_slice(plain);
        let taken = match escape.get(1) {
            Some(b'u') => unescape_unicode(escape, &mut out),
            Some(letter) => {
                out.push(match letter {
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => *other,
                });
                2
            }
            None => 1,
        };
        rest = escape.get(taken..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

/// Writes the character of the `\u` escape at the start of `escape`, with its second half if that follows;
/// returns the bytes read.
fn unescape_unicode(escape: &[u8], out: &mut Vec<u8>) -> usize {
    let Some(first) = hex(escape) else { return escape.len() };
    let second = escape.get(6..).and_then(hex);
    if let (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) = (first, second) {
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00);
        push_char(code, out);
        return 12;
    }
    push_char(first, out);
    6
}

fn hex(escape: &[u8]) -> Option<u32> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
}

fn push_char(code: u32, out: &mut Vec<u8>) {
    match char::from_u32(code) {
        Some(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        // Half a surrogate pair: no character, but a value that must stay different from every other.
        None => out.extend([
            0xe0 | u8::try_from(code >> 12).unwrap_or(0),
            0x80 | u8::try_from((code >> 6) & 0x3f).unwrap_or(0),
            0x80 | u8::try_from(code & 0x3f).unwrap_or(0),
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    fn read(json: &[u8]) -> Result<Pairs, JsonFault> {
        members(json)?
            .map(|member| {
                let member = member?;
                let value = match member.value {
                    Value::Text(raw) => raw.decoded().into_owned(),
                    Value::Object(bytes) | Value::Other(bytes) => bytes.to_vec(),
                };
                Ok((member.key.decoded().into_owned(), value))
            })
            .collect()
    }

    #[test]
    fn members_come_in_order_and_decoded() {
        let json = br#" {"a" : "x\u00e9\ud83d\ude00\/", "\u0062":[1,{"c":"}"}], "n":-1.5e3 ,"o":{ } } "#;
        let expected: Vec<(Vec<u8>, Vec<u8>)> =
            [("a", "xé😀/"), ("b", r#"[1,{"c":"}"}]"#), ("n", "-1.5e3"), ("o", "{ }")]
                .map(|(key, value)| (key.into(), value.into()))
                .into();
        assert_eq!(read(json), Ok(expected));
        assert_eq!(read(b"{}"), Ok(vec![]));
    }

    #[test]
    fn serde_json_agrees_on_what_is_an_object() {
        let cases: &[&str] = &[
            "",
            " ",
            "{",
            "}",
            "{}",
            "{} x",
            "{}{}",
            "[]",
            "1",
            "null",
            "nul",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{,"a":1}"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a":"x}"#,
            r#"{"a":"\x"}"#,
            r#"{"a":"\u12g4"}"#,
            r#"{"a":"\ud83d"}"#,
            "{\"a\":\"\n\"}",
            "{\"a\":\"\u{7f}\"}",
            r#"{"a":01}"#,
            r#"{"a":1.}"#,
            r#"{"a":NaN}"#,
            r#"{"a":[1,2}"#,
            r#"{"a":tru}"#,
            r#"{"a":true}"#,
            r#"{'a':1}"#,
            r#"{"a":"\"#,
            r#"{"a":1e400}"#,
            "{\"a\":\"\0\"}",
            "\u{feff}{}",
            r#"{"a":{"b":[{}]}}"#,
            "{\"a\"\t:\r\n1}",
        ];
        for case in cases {
            let ours = read(case.as_bytes());
            let theirs = serde_json::from_str::<&RawValue>(case).is_ok_and(|raw| raw.get().starts_with('{'));
            assert_eq!(ours.is_ok(), theirs, "{case:?}: {ours:?}");
        }
    }

    #[test]
    fn nesting_is_bounded_and_costs_no_stack() {
        let nest = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(nest(JSON_DEPTH_MAX - 1).as_bytes()).is_ok());
        assert_eq!(read(nest(JSON_DEPTH_MAX).as_bytes()), Err(JsonFault::TooDeep));
        assert_eq!(read(nest(200_000).as_bytes()), Err(JsonFault::TooDeep));
    }

    #[test]
    fn half_a_surrogate_pair_keeps_its_identity() {
        let high = Raw { bytes: br"\ud83d", escaped: true }.decoded().into_owned();
        let low = Raw { bytes: br"\ude00", escaped: true }.decoded().into_owned();
        assert_ne!(high, low);
        assert_eq!(high, [0xed, 0xa0, 0xbd]);
    }

    #[test]
    fn strings_end_at_every_offset() {
        for length in 0..100 {
            let json = format!("{{\"a\":\"{}\",\"b\":1}}", "x".repeat(length));
            assert_eq!(read(json.as_bytes()).map(|members| members.len()), Ok(2), "length {length}");
        }
    }
}
