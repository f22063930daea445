//! The chunked transfer coding (RFC 9112, section 7.1): finds the data in the chunks and drops the rest.
//!
//! Sizes are checked before data is let through; extensions and trailers are read past within a budget, and no
//! trailer ever reaches the head. Nothing is copied or kept but counters.

use super::Reject;
use super::request::Step;
use super::scan::is_token;

/// Digits of a chunk size: 16 hex digits are 2⁶⁴, leading zeros included.
const SIZE_DIGITS_MAX: u8 = 16;

/// Bytes of chunk extensions in one body: nobody here reads them, a few signatures must fit.
const EXTENSION_BYTES_MAX: usize = 16 * 1024;

/// Bytes of trailers in one body: the same as a head may have.
const TRAILER_BYTES_MAX: usize = 16 * 1024;

/// How far the decoding of one body is.
pub(super) struct Chunked {
    place: Place,
    /// Sum of the chunk sizes so far.
    declared: u64,
    extension_bytes: usize,
    trailer_bytes: usize,
}

#[derive(Clone, Copy)]
enum Place {
    Size {
        digits: u8,
        size: u64,
    },
    /// White space behind the size: only an extension may follow.
    SizeSpace {
        size: u64,
    },
    Extension {
        size: u64,
    },
    SizeLf {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    /// Behind the CR of the empty line that ends the body.
    LastLf,
    Done,
}

impl Chunked {
    pub(super) fn new() -> Chunked {
        Chunked {
            place: Place::Size { digits: 0, size: 0 },
            declared: 0,
            extension_bytes: 0,
            trailer_bytes: 0,
        }
    }

    /// The next piece of data in the input, and how many bytes of input it takes to get behind it.
    pub(super) fn next<'a>(&mut self, input: &'a [u8], body_max: u64) -> Result<(usize, Step<'a>), Reject> {
        self.check_size(body_max)?;
        let mut rest = input;
        loop {
            if let Place::Done = self.place {
                return Ok((input.len() - rest.len(), Step::End));
            }
            let Some((&byte, behind)) = rest.split_first() else { return Ok((input.len(), Step::NeedMore)) };
            if let Place::Data { left } = self.place {
                let (data, taken) = split_data(rest, left);
                self.place = if taken == left { Place::DataCr } else { Place::Data { left: left - taken } };
                return Ok((input.len() - rest.len() + data.len(), Step::Body(data)));
            }
            self.place = self.step(byte)?;
            self.check_size(body_max)?;
            rest = behind;
        }
    }

    fn check_size(&self, body_max: u64) -> Result<(), Reject> {
        if self.declared > body_max { Err(too_large(body_max)) } else { Ok(()) }
    }

    fn step(&mut self, byte: u8) -> Result<Place, Reject> {
        match (self.place, byte) {
            (Place::Size { digits, size }, byte) if byte.is_ascii_hexdigit() => {
                size_digit(digits, size, byte)
            }
            (Place::Size { digits: 1.., size }, b'\r') => Ok(Place::SizeLf { size }),
            (Place::Size { digits: 1.., size } | Place::SizeSpace { size }, b' ' | b'\t') => {
                self.spend_extension()?;
                Ok(Place::SizeSpace { size })
            }
            (Place::Size { digits: 1.., size } | Place::SizeSpace { size }, b';') => {
                Ok(Place::Extension { size })
            }
            (Place::Extension { size }, b'\r') => Ok(Place::SizeLf { size }),
            (Place::Extension { size }, byte) if is_text(byte) => {
                self.spend_extension()?;
                Ok(Place::Extension { size })
            }
            (Place::SizeLf { size }, b'\n') => self.begin_chunk(size),
            (Place::DataCr, b'\r') => Ok(Place::DataLf),
            (Place::DataLf, b'\n') => Ok(Place::Size { digits: 0, size: 0 }),
            (Place::TrailerStart, b'\r') => Ok(Place::LastLf),
            (Place::LastLf, b'\n') => Ok(Place::Done),
            (place, byte) => self.trailer_step(place, byte),
        }
    }

    fn trailer_step(&mut self, place: Place, byte: u8) -> Result<Place, Reject> {
        self.trailer_bytes += 1;
        if self.trailer_bytes > TRAILER_BYTES_MAX {
            return Err(Reject::new(
                431,
                "trailers_too_large",
                format!(
                    "the trailers are longer than {TRAILER_BYTES_MAX} bytes: leave them out, they are not read"
                ),
            ));
        }
        match (place, byte) {
            (Place::TrailerStart | Place::TrailerName, byte) if is_token(byte) => Ok(Place::TrailerName),
            (Place::TrailerName, b':') => Ok(Place::TrailerValue),
            (Place::TrailerValue, b'\r') => Ok(Place::TrailerLf),
            (Place::TrailerValue, byte) if is_text(byte) => Ok(Place::TrailerValue),
            (Place::TrailerLf, b'\n') => Ok(Place::TrailerStart),
            (place, _) => Err(refusal(place)),
        }
    }

    fn begin_chunk(&mut self, size: u64) -> Result<Place, Reject> {
        if size == 0 {
            return Ok(Place::TrailerStart);
        }
        self.declared = self.declared.checked_add(size).ok_or_else(|| too_large(u64::MAX))?;
        Ok(Place::Data { left: size })
    }

    fn spend_extension(&mut self) -> Result<(), Reject> {
        self.extension_bytes += 1;
        if self.extension_bytes > EXTENSION_BYTES_MAX {
            return Err(Reject::bad_request(format!(
                "the chunk extensions are longer than {EXTENSION_BYTES_MAX} bytes: leave them out, they are not read"
            )));
        }
        Ok(())
    }
}

/// The refusal of a body that is longer than its route takes.
pub(super) fn too_large(body_max: u64) -> Reject {
    Reject::body_too_large(format!("the body is longer than {body_max} bytes: send less in one request"))
}

/// The first `left` bytes of the input, or all of it, and their number.
pub(super) fn split_data(input: &[u8], left: u64) -> (&[u8], u64) {
    let fitting = usize::try_from(left).unwrap_or(usize::MAX);
    let data = input.get(..fitting).unwrap_or(input);
    (data, data.len() as u64)
}

fn size_digit(digits: u8, size: u64, byte: u8) -> Result<Place, Reject> {
    let digit = char::from(byte).to_digit(16).unwrap_or(0);
    if digits == SIZE_DIGITS_MAX {
        return Err(Reject::bad_request(format!("a chunk size has more than {SIZE_DIGITS_MAX} hex digits")));
    }
    // 16 digits of 4 bits fill the 64 bits and no more, so nothing is shifted out.
    Ok(Place::Size { digits: digits + 1, size: size << 4 | u64::from(digit) })
}

/// A byte of a field value or a chunk extension: no control character but the tab.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

fn refusal(place: Place) -> Reject {
    Reject::bad_request(match place {
        Place::DataCr | Place::DataLf => "a chunk's data is longer than its size says: end it in CR LF there",
        Place::Size { .. } | Place::SizeSpace { .. } => {
            "a chunk must begin with its size in hex digits, then CR LF (or ';' and an extension)"
        }
        Place::Extension { .. } | Place::SizeLf { .. } => "the line of a chunk size must end in CR LF",
        _ => "the trailers are not well-formed: 'name: value' lines in CR LF, then an empty line",
    })
}
