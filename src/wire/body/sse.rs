//! Server-sent events, as the WHATWG's HTML standard parses them ("Interpreting an event stream"), with one
//! difference: an event that the end of the body cuts short of its empty line counts.
//!
//! Only data matters here. Comments and all other fields are skipped without being kept, however long they are.

use memchr::memchr2;

use super::kept::Kept;
use super::{BOM, BodyFault, Cut, CutBytes, is_blank, take};

/// The one field that is read.
const DATA: &[u8; 4] = b"data";

/// What OpenAI's format ends a stream with: no event.
const DONE: &[u8] = b"[DONE]";

/// How far the parsing is. The data of an unfinished event is in `Kept`.
pub(super) struct Sse {
    place: Place,
    /// Number of the line that is read.
    line: u64,
    /// The last byte was a CR that ended a line: an LF right behind it belongs to it.
    after_cr: bool,
    /// Line of the first data field of the unfinished event, if it has one.
    data_line: Option<u64>,
}

/// Where in a line the next byte stands.
#[derive(Clone, Copy)]
enum Place {
    /// Behind that many bytes of a byte order mark that begins the stream.
    Bom { matched: usize },
    /// Behind that many bytes of the name `data`.
    Name { matched: usize },
    /// Behind `data:`.
    ValueStart,
    /// In the value of a data field.
    Value,
    /// In a line that doesn't matter.
    Skipped,
}

impl Sse {
    pub(super) fn new() -> Sse {
        Sse { place: Place::Bom { matched: 0 }, line: 1, after_cr: false, data_line: None }
    }

    pub(super) fn next<'i>(
        &mut self,
        kept: &mut Kept,
        input: &mut &'i [u8],
    ) -> Result<Option<Cut<'i>>, BodyFault> {
        // The value of the event's only data field so far, if it lies whole in this input: most events are one line
        // and never need to be copied.
        let mut held: Option<&'i [u8]> = None;
        while let Some(&byte) = input.first() {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                take(input, 1);
                continue;
            }
            let line_ends = byte == b'\r' || byte == b'\n';
            match self.place {
                Place::Name { matched: 0 } | Place::Bom { matched: 0 | 3 } if line_ends => {
                    self.end_line(input, byte);
                    if let Some(cut) = self.end_event(kept, held.take()) {
                        return Ok(Some(cut));
                    }
                }
                Place::Bom { matched } => self.place = after_bom(matched, byte, input),
                Place::Name { matched } => self.name_byte(matched, byte, kept, &mut held, input)?,
                Place::ValueStart => {
                    take(input, usize::from(byte == b' '));
                    self.place = Place::Value;
                }
                Place::Value => self.value(kept, &mut held, input)?,
                Place::Skipped => {
                    let end = memchr2(b'\r', b'\n', input);
                    take(input, end.unwrap_or(input.len()));
                    if let Some(&end) = input.first() {
                        self.end_line(input, end);
                    }
                }
            }
        }
        self.spill(kept, &mut held)?;
        Ok(None)
    }

    /// Takes what the body's last bytes make as an event.
    pub(super) fn finish(&mut self, kept: &mut Kept) -> Result<Option<Cut<'static>>, BodyFault> {
        if let Place::Name { matched: 4 } = self.place {
            self.begin_data(kept, &mut None)?;
        }
        Ok(self.end_event(kept, None))
    }

    /// Reads on in the name of a field, or in the line end that makes `data` a field without a value.
    fn name_byte<'i>(
        &mut self,
        matched: usize,
        byte: u8,
        kept: &mut Kept,
        held: &mut Option<&'i [u8]>,
        input: &mut &'i [u8],
    ) -> Result<(), BodyFault> {
        match (DATA.get(matched), byte) {
            (Some(expected), byte) if *expected == byte => {
                take(input, 1);
                self.place = Place::Name { matched: matched + 1 };
            }
            (None, b':') => {
                self.begin_data(kept, held)?;
                take(input, 1);
                self.place = Place::ValueStart;
            }
            (None, b'\r' | b'\n') => {
                self.begin_data(kept, held)?;
                self.end_line(input, byte);
            }
            _ => self.place = Place::Skipped,
        }
        Ok(())
    }

    /// Takes the value of a data field up to its end or the input's.
    fn value<'i>(
        &mut self,
        kept: &mut Kept,
        held: &mut Option<&'i [u8]>,
        input: &mut &'i [u8],
    ) -> Result<(), BodyFault> {
        let end = memchr2(b'\r', b'\n', input);
        let piece = take(input, end.unwrap_or(input.len()));
        let line = self.data_line.unwrap_or(self.line);
        match input.first() {
            Some(&end) => {
                // Nothing kept means that this is the event's first data field and that the piece is all of it: a
                // further one has put a line end before itself.
                if kept.is_empty() {
                    kept.check(piece.len(), line)?;
                    *held = Some(piece);
                } else {
                    kept.append(piece, line)?;
                }
                self.end_line(input, end);
            }
            None => kept.append(piece, line)?,
        }
        Ok(())
    }

    /// A data field begins: its value goes behind the data so far, on a line of its own.
    fn begin_data(&mut self, kept: &mut Kept, held: &mut Option<&[u8]>) -> Result<(), BodyFault> {
        match self.data_line {
            Some(line) => {
                self.spill(kept, held)?;
                kept.append(b"\n", line)
            }
            None => {
                self.data_line = Some(self.line);
                Ok(())
            }
        }
    }

    fn spill(&self, kept: &mut Kept, held: &mut Option<&[u8]>) -> Result<(), BodyFault> {
        match held.take() {
            Some(value) => kept.append(value, self.data_line.unwrap_or(self.line)),
            None => Ok(()),
        }
    }

    /// Takes the line end that the input begins with.
    fn end_line(&mut self, input: &mut &[u8], end: u8) {
        take(input, 1);
        self.line += 1;
        self.after_cr = end == b'\r';
        self.place = Place::Name { matched: 0 };
    }

    /// An empty line: what has been gathered is an event, if it has any data.
    fn end_event<'i>(&mut self, kept: &mut Kept, held: Option<&'i [u8]>) -> Option<Cut<'i>> {
        let line = self.data_line.take()?;
        let data = held.unwrap_or(kept.bytes());
        if is_blank(data) || data.trim_ascii() == DONE {
            kept.clear();
            return None;
        }
        Some(Cut { bytes: held.map_or(CutBytes::Kept, CutBytes::Input), line })
    }
}

/// Takes a byte of the byte order mark, or leaves the byte to the first line.
fn after_bom(matched: usize, byte: u8, input: &mut &[u8]) -> Place {
    match BOM.get(matched) {
        Some(expected) if *expected == byte => {
            take(input, 1);
            Place::Bom { matched: matched + 1 }
        }
        // A part of the mark is the beginning of some other field's name.
        Some(_) if matched > 0 => Place::Skipped,
        _ => Place::Name { matched: 0 },
    }
}
