//! A producer's body: bytes cut into events, whichever of three formats they come in and however the network cut
//! them.
//!
//! The reader only cuts. It doesn't know whether an event is JSON (except where a JSON array must be taken apart),
//! and it doesn't answer anybody. An event that lies whole in the input is borrowed from it, never copied; what is
//! kept is the beginning of one unfinished event, within its size limit.

#![warn(clippy::indexing_slicing, clippy::expect_used)]

mod json;
mod kept;
mod ndjson;
mod sse;
#[cfg(test)]
mod tests;

use json::Json;
use kept::Kept;
use ndjson::Ndjson;
use sse::Sse;

/// U+FEFF in UTF-8: some programs begin every text with it.
const BOM: &[u8; 3] = b"\xef\xbb\xbf";

/// How a body spells its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One event per line.
    Ndjson,
    /// Server-sent events: one event in the data of each.
    Sse,
    /// One event, or an array of events.
    Json,
}

impl Format {
    /// The format that a Content-Type names; parameters and case don't matter.
    pub fn from_content_type(content_type: &str) -> Option<Format> {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        [
            ("application/x-ndjson", Format::Ndjson),
            ("application/ndjson", Format::Ndjson),
            ("text/event-stream", Format::Sse),
            ("application/json", Format::Json),
        ]
        .into_iter()
        .find(|(name, _)| essence.eq_ignore_ascii_case(name))
        .map(|(_, format)| format)
    }
}

/// One event as the producer wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The event's bytes. An event of a JSON body may hold line ends between its tokens.
    pub bytes: &'a [u8],
    /// The line of the body in which it begins, counted from 1.
    pub line: u64,
}

/// Why a body can't be read on. Lines are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFault {
    /// An event is over the size limit.
    TooLarge {
        /// Where the event begins.
        line: u64,
        /// The limit, in bytes.
        max_bytes: usize,
    },
    /// JSON body: something that begins no JSON value.
    NotJson {
        /// Where it stands.
        line: u64,
    },
    /// JSON body: a value that is no object, where an event must be.
    NotObject {
        /// Where it begins.
        line: u64,
    },
    /// JSON body: two events of the array with no comma between them.
    MissingComma {
        /// Where the comma should be.
        line: u64,
    },
    /// JSON body: a comma with no event before or behind it.
    ExtraComma {
        /// Where what should be an event stands instead.
        line: u64,
    },
    /// JSON body: more behind the end of the value.
    Trailing {
        /// Where it begins.
        line: u64,
    },
    /// JSON body: its end comes before the end of the value.
    Unfinished {
        /// The body's last line.
        line: u64,
    },
}

impl BodyFault {
    /// The line that is at fault.
    pub fn line(self) -> u64 {
        match self {
            BodyFault::TooLarge { line, .. }
            | BodyFault::NotJson { line }
            | BodyFault::NotObject { line }
            | BodyFault::MissingComma { line }
            | BodyFault::ExtraComma { line }
            | BodyFault::Trailing { line }
            | BodyFault::Unfinished { line } => line,
        }
    }

    /// What is wrong and what to change, for the person who wrote the producer.
    pub fn message(self) -> String {
        let line = self.line();
        let text = match self {
            BodyFault::TooLarge { max_bytes, .. } => {
                return format!("line {line}: the event is longer than {max_bytes} bytes: split it up");
            }
            BodyFault::NotJson { .. } => "this is not JSON: an event is a JSON object",
            BodyFault::NotObject { .. } => "an event must be a JSON object: send one, or an array of them",
            BodyFault::MissingComma { .. } => {
                "a comma is missing between two events of the array (one event per line is application/x-ndjson)"
            }
            BodyFault::ExtraComma { .. } => "there is a comma with no event before or behind it: remove it",
            BodyFault::Trailing { .. } => {
                "something follows the JSON value: send an array (one event per line is application/x-ndjson)"
            }
            BodyFault::Unfinished { .. } => "the body ends before its JSON value does: send it whole",
        };
        format!("line {line}: {text}")
    }
}

/// Cuts one body into events.
pub struct EventReader {
    cutter: Cutter,
    kept: Kept,
    /// The kept bytes were handed out as an event: they are dropped before anything else happens.
    handed_out: bool,
    /// A fault was told, or the body has ended.
    over: bool,
}

enum Cutter {
    Ndjson(Ndjson),
    Sse(Sse),
    Json(Json),
}

/// An event that a cutter found.
struct Cut<'i> {
    bytes: CutBytes<'i>,
    line: u64,
}

/// Where an event's bytes are.
enum CutBytes<'i> {
    Input(&'i [u8]),
    Kept,
}

impl EventReader {
    /// The reader of one body, whose events may have up to `event_bytes_max` bytes (line ends around them not
    /// counted).
    pub fn new(format: Format, event_bytes_max: usize) -> EventReader {
        let cutter = match format {
            Format::Ndjson => Cutter::Ndjson(Ndjson::new()),
            Format::Sse => Cutter::Sse(Sse::new()),
            Format::Json => Cutter::Json(Json::new()),
        };
        EventReader { cutter, kept: Kept::new(event_bytes_max), handed_out: false, over: false }
    }

    /// The next event that is complete; the input is advanced behind it. `None`: all of the input was taken.
    /// A fault is the last that comes: after it the reader only swallows.
    pub fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Option<Result<Item<'s>, BodyFault>> {
        if self.over {
            *input = &[];
            return None;
        }
        self.drop_handed_out();
        let cut = match &mut self.cutter {
            Cutter::Ndjson(ndjson) => ndjson.next(&mut self.kept, input),
            Cutter::Sse(sse) => sse.next(&mut self.kept, input),
            Cutter::Json(json) => json.next(&mut self.kept, input),
        };
        self.deliver(cut)
    }

    /// Whether the input begins with a line that is an event, and nothing else: then a caller who recognises whole lines may
    /// take them off the input itself, and has to say so with [`EventReader::pass_lines`].
    pub fn begins_line(&mut self) -> bool {
        self.drop_handed_out();
        matches!(&self.cutter, Cutter::Ndjson(ndjson) if !self.over && ndjson.begins_line(&self.kept))
    }

    /// The caller took so many lines off the input.
    pub fn pass_lines(&mut self, lines: u64) {
        if let Cutter::Ndjson(ndjson) = &mut self.cutter {
            ndjson.pass_lines(lines);
        }
    }

    /// The body is whole: gives what its last bytes make. A last line needs no line end, the last server-sent event
    /// no empty line (an agent's output that is piped in must not lose its end); a JSON value must be finished.
    pub fn finish(&mut self) -> Option<Result<Item<'_>, BodyFault>> {
        if self.over {
            return None;
        }
        self.drop_handed_out();
        let cut = match &mut self.cutter {
            Cutter::Ndjson(ndjson) => ndjson.finish(&mut self.kept),
            Cutter::Sse(sse) => sse.finish(&mut self.kept),
            Cutter::Json(json) => json.finish(),
        };
        self.over = true;
        self.deliver(cut)
    }

    fn drop_handed_out(&mut self) {
        if std::mem::take(&mut self.handed_out) {
            self.kept.clear();
        }
    }

    fn deliver<'s, 'i: 's>(
        &'s mut self,
        cut: Result<Option<Cut<'i>>, BodyFault>,
    ) -> Option<Result<Item<'s>, BodyFault>> {
        match cut {
            Ok(None) => None,
            Ok(Some(Cut { bytes: CutBytes::Input(bytes), line })) => Some(Ok(Item { bytes, line })),
            Ok(Some(Cut { bytes: CutBytes::Kept, line })) => {
                self.handed_out = true;
                Some(Ok(Item { bytes: self.kept.bytes(), line }))
            }
            Err(fault) => {
                self.over = true;
                self.kept.clear();
                Some(Err(fault))
            }
        }
    }
}

/// Whether there is nothing in an event but white space.
fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// Takes the first `count` bytes off the input.
fn take<'i>(input: &mut &'i [u8], count: usize) -> &'i [u8] {
    let (taken, rest) = input.split_at_checked(count).unwrap_or((input, &[]));
    *input = rest;
    taken
}
