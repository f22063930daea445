//! Server-sent events as a client reads them (WHATWG HTML, "Interpreting an event stream"): bytes in, messages out.
//!
//! Only data matters here; names, ids and retry times of messages are skipped. The parser works on bytes, so a
//! character that the network cut in two is whole again before anybody looks at it. It never reads a socket.

use memchr::memchr2;

/// U+FEFF in UTF-8, which may begin a stream.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// What a stream consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// The data of a message; several data lines are joined by line feeds.
    Message(&'a [u8]),
    /// A comment: the server is alive and has nothing to say.
    LifeSign,
}

/// A message is longer than the parser was allowed to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Reads one stream.
#[derive(Debug)]
pub struct Parser {
    bytes_max: usize,
    /// The unfinished line.
    line: Vec<u8>,
    /// Data lines of the unfinished message, each with a line feed behind it.
    data: Vec<u8>,
    /// The last byte was a CR: an LF right behind it belongs to it.
    after_cr: bool,
    /// No line was finished yet: a byte order mark may come.
    first_line: bool,
    /// `data` was handed out as a message and goes before anything else happens.
    handed_out: bool,
}

impl Parser {
    /// A parser of messages of up to `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Parser {
        Parser {
            bytes_max,
            line: Vec::new(),
            data: Vec::new(),
            after_cr: false,
            first_line: true,
            handed_out: false,
        }
    }

    /// The next thing that is complete; the input is advanced behind it. `None`: all of the input was taken. What is
    /// unfinished at the end of the stream is no message.
    pub fn next<'s>(&'s mut self, input: &mut &[u8]) -> Result<Option<Item<'s>>, TooLong> {
        if std::mem::take(&mut self.handed_out) {
            self.data.clear();
        }
        loop {
            if self.after_cr && !input.is_empty() {
                self.after_cr = false;
                *input = input.strip_prefix(b"\n").unwrap_or(input);
            }
            let end = memchr2(b'\r', b'\n', input);
            let (piece, rest) = input.split_at_checked(end.unwrap_or(input.len())).unwrap_or((input, &[]));
            if self.line.len() + self.data.len() + piece.len() > self.bytes_max {
                return Err(TooLong);
            }
            self.line.extend_from_slice(piece);
            let Some((end, rest)) = rest.split_first() else {
                *input = rest;
                return Ok(None);
            };
            *input = rest;
            self.after_cr = *end == b'\r';
            match self.end_line() {
                Some(Ending::Message) => {
                    self.handed_out = true;
                    let data = self.data.strip_suffix(b"\n").unwrap_or(&self.data);
                    return Ok(Some(Item::Message(data)));
                }
                Some(Ending::Comment) => return Ok(Some(Item::LifeSign)),
                None => {}
            }
        }
    }

    fn end_line(&mut self) -> Option<Ending> {
        let mut line = self.line.as_slice();
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        let ending = if line.is_empty() {
            (!self.data.is_empty()).then_some(Ending::Message)
        } else if line.starts_with(b":") {
            Some(Ending::Comment)
        } else {
            if let Some(value) = data_value(line) {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            None
        };
        self.line.clear();
        ending
    }
}

/// What a line that is complete finishes.
enum Ending {
    Message,
    Comment,
}

/// The value of a line, if its field is `data`.
fn data_value(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data")? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Messages as they are, life signs as `None`.
    fn parse<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Option<String>> {
        let mut parser = Parser::new(1 << 20);
        let mut items = Vec::new();
        for mut piece in pieces {
            while let Some(item) = parser.next(&mut piece).unwrap() {
                items.push(match item {
                    Item::Message(data) => Some(String::from_utf8(data.to_vec()).unwrap()),
                    Item::LifeSign => None,
                });
            }
        }
        items
    }

    fn check(stream: &str, expected: &[Option<&str>]) {
        let expected: Vec<Option<String>> = expected.iter().map(|item| item.map(str::to_owned)).collect();
        assert_eq!(parse([stream.as_bytes()].into_iter()), expected, "{stream:?}");
        assert_eq!(parse(stream.as_bytes().chunks(1)), expected, "{stream:?} byte by byte");
    }

    #[test]
    fn lines_end_in_three_ways() {
        check("data: a\n\ndata:b\r\n\r\ndata: c\r\r", &[Some("a"), Some("b"), Some("c")]);
        check("data: a\r\n\n", &[Some("a")]);
    }

    #[test]
    fn data_lines_are_joined_and_other_fields_skipped() {
        check("event: x\ndata: a\nid: 7\ndata\ndata:  b\n\n", &[Some("a\n\n b")]);
        check("database: a\n\n\n\ndata:\n\n", &[Some("")]);
    }

    #[test]
    fn comments_are_life_signs() {
        check(": keep-alive\n\ndata: a\n:\ndata: b\n\n", &[None, None, Some("a\nb")]);
    }

    #[test]
    fn a_byte_order_mark_counts_at_the_start_only() {
        check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &[Some("a")]);
    }

    #[test]
    fn what_the_end_cuts_short_is_no_message() {
        check("data: a\n\ndata: b\n", &[Some("a")]);
    }

    #[test]
    fn a_message_has_a_longest_size() {
        let mut parser = Parser::new(8);
        assert_eq!(parser.next(&mut b"data: 123".as_slice()), Err(TooLong));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same(
            lines in prop::collection::vec("(data: ?|:|id:|\u{feff})?[a-zé日👩 ]{0,6}(\n|\r|\r\n)", 0..20),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let stream = lines.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]);
            prop_assert_eq!(parse(pieces), parse([stream.as_slice()].into_iter()));
        }
    }
}
