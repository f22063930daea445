//! A JSON body: one object or an array of objects, each handed on as soon as its last byte is here.
//!
//! Only the array's own brackets and commas are checked. An object is found by counting brackets outside strings,
//! without recursion; whether it is JSON inside is for who reads it.

use super::kept::Kept;
use super::{BOM, BodyFault, Cut, CutBytes, take};

/// How far the cutting is. The beginning of an unfinished object is in `Kept`.
pub(super) struct Json {
    place: Place,
    /// Number of the line that is read; lines end in LF.
    line: u64,
    /// Whether the objects are elements of an array.
    in_array: bool,
}

#[derive(Clone, Copy)]
enum Place {
    /// Before the value, behind that many bytes of a byte order mark.
    Start { bom: usize },
    /// Behind the array's opening bracket.
    First,
    /// Behind a comma.
    Element,
    /// Behind an element.
    Next,
    /// In an object.
    Object(Object),
    /// Behind the value.
    End,
}

/// Where in an object the next byte stands.
#[derive(Clone, Copy)]
struct Object {
    /// Line of its first byte.
    line: u64,
    /// Brackets open, its own included.
    depth: usize,
    in_string: bool,
    /// Behind a backslash in a string.
    escaped: bool,
}

impl Json {
    pub(super) fn new() -> Json {
        Json { place: Place::Start { bom: 0 }, line: 1, in_array: false }
    }

    pub(super) fn next<'i>(
        &mut self,
        kept: &mut Kept,
        input: &mut &'i [u8],
    ) -> Result<Option<Cut<'i>>, BodyFault> {
        while let Some(&byte) = input.first() {
            if let Place::Object(object) = self.place {
                if let Some(cut) = self.object(object, kept, input)? {
                    return Ok(Some(cut));
                }
            } else if matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
                && !matches!(self.place, Place::Start { bom: 1 | 2 })
            {
                self.line += u64::from(byte == b'\n');
                take(input, 1);
            } else {
                self.place = self.step(byte)?;
                // An object keeps its opening brace.
                if !matches!(self.place, Place::Object(_)) {
                    take(input, 1);
                }
            }
        }
        Ok(None)
    }

    /// The value must be whole.
    pub(super) fn finish(&mut self) -> Result<Option<Cut<'static>>, BodyFault> {
        match self.place {
            Place::End => Ok(None),
            _ => Err(BodyFault::Unfinished { line: self.line }),
        }
    }

    /// What a byte outside the objects does.
    fn step(&mut self, byte: u8) -> Result<Place, BodyFault> {
        let line = self.line;
        match (self.place, byte) {
            (Place::Start { bom: 0 | 3 }, b'[') => {
                self.in_array = true;
                Ok(Place::First)
            }
            (Place::Start { bom: 0 | 3 } | Place::First | Place::Element, b'{') => {
                Ok(Place::Object(Object { line, depth: 0, in_string: false, escaped: false }))
            }
            (Place::Start { bom }, byte) if BOM.get(bom) == Some(&byte) => Ok(Place::Start { bom: bom + 1 }),
            (Place::First | Place::Next, b']') => Ok(Place::End),
            (Place::Next, b',') => Ok(Place::Element),
            (Place::First | Place::Element, b',') | (Place::Element, b']') => {
                Err(BodyFault::ExtraComma { line })
            }
            (Place::Next, _) => Err(BodyFault::MissingComma { line }),
            (Place::End, _) => Err(BodyFault::Trailing { line }),
            (_, b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => Err(BodyFault::NotObject { line }),
            _ => Err(BodyFault::NotJson { line }),
        }
    }

    /// Walks on in an object, to its end or the input's.
    fn object<'i>(
        &mut self,
        mut object: Object,
        kept: &mut Kept,
        input: &mut &'i [u8],
    ) -> Result<Option<Cut<'i>>, BodyFault> {
        let mut taken = 0;
        let mut ended = false;
        for &byte in *input {
            taken += 1;
            self.line += u64::from(byte == b'\n');
            if object.step(byte) {
                ended = true;
                break;
            }
        }
        let piece = take(input, taken);
        if !ended {
            self.place = Place::Object(object);
            kept.append(piece, object.line)?;
            return Ok(None);
        }
        self.place = if self.in_array { Place::Next } else { Place::End };
        let bytes = if kept.is_empty() {
            kept.check(piece.len(), object.line)?;
            CutBytes::Input(piece)
        } else {
            kept.append(piece, object.line)?;
            CutBytes::Kept
        };
        Ok(Some(Cut { bytes, line: object.line }))
    }
}

impl Object {
    /// Takes one byte; tells whether it is the object's last.
    fn step(&mut self, byte: u8) -> bool {
        match (self.in_string, byte) {
            (true, _) if self.escaped => self.escaped = false,
            (true, b'\\') => self.escaped = true,
            (_, b'"') => self.in_string = !self.in_string,
            (false, b'{' | b'[') => self.depth += 1,
            (false, b'}' | b']') => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        !self.in_string && self.depth == 0
    }
}
