//! The scan for the end of a request head, which sees every byte once however the head is cut.
//!
//! It refuses at the first bad byte what can never become a request (TLS, HTTP/0.9, HTTP/2, line noise), so that
//! such a client isn't waited for, and it keeps the byte budgets. What the fields mean is not its business.

use memchr::memchr;

use super::Reject;

/// Longest head in bytes, from the method to the empty line: twice what browsers send with many cookies.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Longest request target in bytes: RFC 9112 (section 3) asks for 8,000 at least.
pub(super) const TARGET_BYTES_MAX: usize = 8 * 1024;

/// Longest method in bytes: the longest registered ones have 17 (`UPDATEREDIRECTREF`, `BASELINE-CONTROL` 16).
const METHOD_BYTES_MAX: usize = 17;

/// Empty lines skipped before a request line: some clients end a body with one too many (RFC 9112, section 2.2).
const BLANK_LINES_MAX: u8 = 4;

/// The only version of HTTP spoken here, up to its last digit.
const VERSION: &[u8; 7] = b"HTTP/1.";

// A request line always fits into the head's budget, so only the field lines need to watch it.
const _: () = assert!(METHOD_BYTES_MAX + TARGET_BYTES_MAX + VERSION.len() + 5 < HEAD_BYTES_MAX);

/// Where in the input a head lies.
pub(super) struct Found {
    /// The head, or its part in this input, begins here: before it are empty lines.
    pub(super) start: usize,
    /// The head ends before this byte, if its end is in this input.
    pub(super) end: Option<usize>,
}

/// How far the scan is.
pub(super) struct HeadScan {
    place: Place,
    /// Bytes of the head so far; empty lines before it don't count.
    head_bytes: usize,
    /// Bytes looked at, for the test that work is linear.
    #[cfg(test)]
    pub(super) work: usize,
}

#[derive(Clone, Copy)]
enum Place {
    /// Before the method, behind that many empty lines.
    Before { lines: u8 },
    /// Behind the CR of an empty line.
    BeforeLf { lines: u8 },
    /// In the method, behind that many bytes of it.
    Method { bytes: usize },
    /// In the target, behind that many bytes of it.
    Target { bytes: usize },
    /// In the version, before the byte of that index.
    Version { index: usize },
    /// Behind the CR of the request line.
    LineLf,
    /// In the field lines, behind that many bytes of a line, the last of which was a CR or not.
    Fields { line_bytes: usize, cr: bool },
}

impl HeadScan {
    pub(super) fn new() -> HeadScan {
        HeadScan {
            place: Place::Before { lines: 0 },
            head_bytes: 0,
            #[cfg(test)]
            work: 0,
        }
    }

    /// Whether a byte of a request has been seen.
    pub(super) fn begun(&self) -> bool {
        self.head_bytes > 0
    }

    /// Looks at the next bytes, up to the end of the head.
    pub(super) fn feed(&mut self, input: &[u8]) -> Result<Found, Reject> {
        let mut start = 0;
        let mut at = 0;
        for &byte in input {
            if matches!(self.place, Place::Fields { .. }) {
                break;
            }
            self.place = step(self.place, byte)?;
            at += 1;
            match self.place {
                Place::Before { .. } | Place::BeforeLf { .. } => start = at,
                _ => self.head_bytes += 1,
            }
        }
        #[cfg(test)]
        {
            self.work += at;
        }
        let end = self.feed_fields(input.get(at..).unwrap_or_default())?;
        Ok(Found { start, end: end.map(|end| at + end) })
    }

    /// Walks over field lines; returns where the empty line ends.
    fn feed_fields(&mut self, input: &[u8]) -> Result<Option<usize>, Reject> {
        let Place::Fields { mut line_bytes, mut cr } = self.place else { return Ok(None) };
        let room = input.len().min(HEAD_BYTES_MAX - self.head_bytes);
        let mut rest = input.get(..room).unwrap_or_default();
        while let Some(&first) = rest.first() {
            if line_bytes == 0 && (first == b' ' || first == b'\t') {
                return Err(Reject::bad_request(
                    "a header line begins with white space: line folding is obsolete, send the value on one line",
                ));
            }
            let lf = memchr(b'\n', rest);
            let (line, behind) = rest.split_at_checked(lf.unwrap_or(rest.len())).unwrap_or((rest, &[]));
            #[cfg(test)]
            {
                self.work += line.len();
            }
            cr = line.last().map_or(cr, |last| *last == b'\r');
            line_bytes += line.len();
            rest = behind.get(1..).unwrap_or_default();
            if lf.is_none() {
                break;
            }
            if !cr {
                return Err(Reject::bad_request("a header line ends in LF alone: end lines in CR LF"));
            }
            if line_bytes == 1 {
                return Ok(Some(room - rest.len()));
            }
            (line_bytes, cr) = (0, false);
        }
        self.place = Place::Fields { line_bytes, cr };
        self.head_bytes += room;
        if self.head_bytes >= HEAD_BYTES_MAX {
            return Err(Reject::new(
                431,
                "head_too_large",
                format!(
                    "the request head is longer than {HEAD_BYTES_MAX} bytes: send fewer or shorter headers"
                ),
            ));
        }
        Ok(None)
    }
}

/// The request line's grammar (RFC 9112, section 3), one byte at a time.
fn step(place: Place, byte: u8) -> Result<Place, Reject> {
    match (place, byte) {
        (Place::Before { lines }, b'\r') if lines < BLANK_LINES_MAX => Ok(Place::BeforeLf { lines }),
        (Place::BeforeLf { lines }, b'\n') => Ok(Place::Before { lines: lines + 1 }),
        (Place::Before { .. }, byte) if is_token(byte) => Ok(Place::Method { bytes: 1 }),
        (Place::Method { .. }, b' ') => Ok(Place::Target { bytes: 0 }),
        (Place::Method { bytes: METHOD_BYTES_MAX }, byte) if is_token(byte) => Err(unknown_method()),
        (Place::Method { bytes }, byte) if is_token(byte) => Ok(Place::Method { bytes: bytes + 1 }),
        (Place::Target { bytes: 1.. }, b' ') => Ok(Place::Version { index: 0 }),
        (Place::Target { bytes: TARGET_BYTES_MAX }, byte) if byte.is_ascii_graphic() => Err(Reject::new(
            414,
            "target_too_long",
            format!("the request target is longer than {TARGET_BYTES_MAX} bytes: put the data into a body"),
        )),
        (Place::Target { bytes }, byte) if byte.is_ascii_graphic() => Ok(Place::Target { bytes: bytes + 1 }),
        (Place::Version { index }, byte) => version_step(index, byte),
        (Place::LineLf, b'\n') => Ok(Place::Fields { line_bytes: 0, cr: false }),
        (place, byte) => Err(refusal(place, byte)),
    }
}

fn version_step(index: usize, byte: u8) -> Result<Place, Reject> {
    match (VERSION.get(index), byte) {
        (Some(expected), byte) if *expected == byte => Ok(Place::Version { index: index + 1 }),
        (None, b'0' | b'1') if index == VERSION.len() => Ok(Place::Version { index: index + 1 }),
        (None, b'\r') if index > VERSION.len() => Ok(Place::LineLf),
        (Some(b'1'), b'0'..=b'9') | (None, b'2'..=b'9') if index <= VERSION.len() => Err(Reject::new(
            505,
            "version_not_supported",
            "this port speaks HTTP/1.1 and HTTP/1.0: switch off HTTP/2 with prior knowledge in the client",
        )),
        _ => Err(Reject::bad_request("the request line must end in ' HTTP/1.1' and CR LF")),
    }
}

fn refusal(place: Place, byte: u8) -> Reject {
    Reject::bad_request(match (place, byte) {
        (Place::Before { .. }, 0x16) => {
            "this port speaks plain HTTP, and these bytes look like TLS: use http://, or put a TLS proxy in front"
        }
        (Place::Before { .. } | Place::BeforeLf { .. }, b'\r' | b'\n') => {
            "a request must begin with its method, not with empty lines"
        }
        (Place::Target { bytes: 1.. }, b'\r' | b'\n') => {
            "the request line has no version (HTTP/0.9 is not spoken): end it in ' HTTP/1.1'"
        }
        (Place::Target { .. }, 0x80..) => "the request target holds raw non-ASCII bytes: percent-encode them",
        (Place::LineLf, _) => "the request line must end in CR LF",
        _ => "this is not an HTTP request line: send 'METHOD /path HTTP/1.1' and CR LF",
    })
}

/// The refusal of a method that HTTP doesn't know or this server can't serve.
pub(super) fn unknown_method() -> Reject {
    Reject::new(
        501,
        "method_not_implemented",
        "this method is not known here: methods are upper-case, such as GET or POST",
    )
}

/// The characters of a method or a field name (RFC 9110, section 5.6.2).
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
