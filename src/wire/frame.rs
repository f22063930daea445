//! Frames of protocol 1: SSE messages that carry one line of JSON each.
//!
//! A run's log holds its events in the form that a POST over HTTP/1.1 gets: one chunk of the chunked coding, with
//! one frame in it. All other forms are derived from it.

use crate::http::response::{CHUNK_END, LAST_CHUNK, chunk_head};
use crate::proto::id::{RunId, Seq};

/// The response's content type.
pub const CONTENT_TYPE: &str = "text/event-stream";

/// Headers of every stream: proxies must neither cache, compress nor hold it back.
pub const STREAM_HEADERS: [(&str, &str); 2] =
    [("Cache-Control", "no-cache, no-transform"), ("X-Accel-Buffering", "no")];

/// An idle stream gets this comment.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

const EVENT_START: &[u8] = b"data: {\"type\":\"STREAM_EVENT\",\"run_id\":\"";
const SEQ: &[u8] = b"\",\"seq\":";
const EVENT: &[u8] = b",\"event\":";
const EVENT_END: &[u8] = b"}\n\n";

/// What an observer asked for, and so how its frames look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flavour {
    /// Frames as they are.
    Post,
    /// Frames with an `id:` line, for EventSource.
    Get,
    /// Bare AG-UI events.
    Legacy,
}

/// A flavour, and whether the body uses the chunked coding (HTTP/1.0 has none).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Form {
    /// The flavour.
    pub flavour: Flavour,
    /// Whether the body is chunked.
    pub chunked: bool,
}

impl Form {
    /// The form that the log holds.
    pub const LOG: Form = Form { flavour: Flavour::Post, chunked: true };
}

/// An event's frame, measured, ready to be written into the log.
pub struct EventFrame<'a> {
    run: RunId,
    event: &'a [u8],
    seq: itoa::Buffer,
    number: u64,
    payload_bytes: usize,
    /// Length of the whole frame.
    pub bytes: usize,
    /// Offset of the event in it.
    pub event_offset: usize,
}

impl<'a> EventFrame<'a> {
    /// Measures the frame of an event.
    pub fn new(run: RunId, seq: Seq, event: &'a [u8]) -> EventFrame<'a> {
        let mut digits = itoa::Buffer::new();
        let seq_bytes = digits.format(seq.0).len();
        let envelope = EVENT_START.len() + run.as_bytes().len() + SEQ.len() + seq_bytes + EVENT.len();
        let payload_bytes = envelope + event.len() + EVENT_END.len();
        let head = hex_digits(payload_bytes) + CHUNK_END.len();
        EventFrame {
            run,
            event,
            seq: digits,
            number: seq.0,
            payload_bytes,
            bytes: head + payload_bytes + CHUNK_END.len(),
            event_offset: head + envelope,
        }
    }

    /// Writes the frame.
    pub fn write(mut self, out: &mut Vec<u8>) {
        chunk_head(self.payload_bytes, out);
        out.extend_from_slice(EVENT_START);
        out.extend_from_slice(self.run.as_bytes());
        out.extend_from_slice(SEQ);
        out.extend_from_slice(self.seq.format(self.number).as_bytes());
        out.extend_from_slice(EVENT);
        out.extend_from_slice(self.event);
        out.extend_from_slice(EVENT_END);
        out.extend_from_slice(CHUNK_END);
    }
}

/// A frame of the log, taken apart.
struct Parts<'a> {
    /// The SSE message.
    payload: &'a [u8],
    /// The AG-UI event.
    event: &'a [u8],
}

fn parts(frame: &[u8], event_offset: usize) -> Parts<'_> {
    let body = frame.strip_suffix(CHUNK_END).unwrap_or(frame);
    let head = memchr::memchr(b'\n', body).map_or(0, |at| at + 1);
    let payload = body.get(head..).unwrap_or_default();
    let event = body.get(event_offset..).unwrap_or_default();
    Parts { payload, event: event.strip_suffix(EVENT_END).unwrap_or(event) }
}

/// Writes a frame of the log in another form.
pub fn render(frame: &[u8], event_offset: usize, run: RunId, seq: Seq, form: Form, out: &mut Vec<u8>) {
    let parts = parts(frame, event_offset);
    match form.flavour {
        Flavour::Post => message(&[parts.payload], form.chunked, out),
        Flavour::Get => {
            let mut id = itoa::Buffer::new();
            let line: [&[u8]; 5] = [b"id: ", run.as_bytes(), b":", id.format(seq.0).as_bytes(), b"\n"];
            message(&[line[0], line[1], line[2], line[3], line[4], parts.payload], form.chunked, out);
        }
        Flavour::Legacy => message(&[b"data: ", parts.event, b"\n\n"], form.chunked, out),
    }
}

/// Writes a frame of the event bus, kept in the log's form, without its chunk if the body isn't chunked.
pub fn render_bus(frame: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(parts(frame, 0).payload);
}

/// Writes the parts of an SSE message, as one chunk if `chunked`.
pub fn message(message: &[&[u8]], chunked: bool, out: &mut Vec<u8>) {
    if chunked {
        chunk_head(message.iter().map(|part| part.len()).sum(), out);
    }
    for part in message {
        out.extend_from_slice(part);
    }
    if chunked {
        out.extend_from_slice(CHUNK_END);
    }
}

/// Writes STREAM_END and the end of the body.
pub fn end(run: RunId, head: Seq, persisted: bool, superseded: bool, form: Form, out: &mut Vec<u8>) {
    let json = format!(
        "data: {{\"type\":\"STREAM_END\",\"run_id\":\"{run}\",\"seq\":{head},\"persisted\":{persisted},\"superseded\":{superseded}}}\n\n"
    );
    match form.flavour {
        Flavour::Post => message(&[json.as_bytes()], form.chunked, out),
        Flavour::Get => message(&[format!("id: {run}:end\n").as_bytes(), json.as_bytes()], form.chunked, out),
        Flavour::Legacy => {}
    }
    if form.chunked {
        out.extend_from_slice(LAST_CHUNK);
    }
}

fn hex_digits(number: usize) -> usize {
    ((usize::BITS - number.leading_zeros()).max(1) as usize).div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT_TEXT: &[u8] = br#"{"type":"X"}"#;

    fn log_frame(seq: u64) -> (Vec<u8>, usize) {
        let frame = EventFrame::new(RunId::from_bits(7), Seq(seq), EVENT_TEXT);
        let (bytes, offset) = (frame.bytes, frame.event_offset);
        let mut out = Vec::new();
        frame.write(&mut out);
        assert_eq!(out.len(), bytes);
        (out, offset)
    }

    #[test]
    fn the_log_form_is_one_chunk_with_one_frame() {
        let run = RunId::from_bits(7);
        for seq in [1, 9, 10, 4_096, 1 << 40] {
            let (frame, offset) = log_frame(seq);
            let payload = format!(
                "data: {{\"type\":\"STREAM_EVENT\",\"run_id\":\"{run}\",\"seq\":{seq},\"event\":{{\"type\":\"X\"}}}}\n\n"
            );
            assert_eq!(frame, format!("{:x}\r\n{payload}\r\n", payload.len()).into_bytes());
            assert!(frame[offset..].starts_with(EVENT_TEXT));
        }
    }

    #[test]
    fn other_forms_are_derived_from_it() {
        let run = RunId::from_bits(7);
        let (frame, offset) = log_frame(5);
        let check = |flavour, expected: String| {
            let mut out = Vec::new();
            render(&frame, offset, run, Seq(5), Form { flavour, chunked: false }, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            let mut chunked = Vec::new();
            render(&frame, offset, run, Seq(5), Form { flavour, chunked: true }, &mut chunked);
            assert_eq!(chunked, format!("{:x}\r\n{expected}\r\n", expected.len()).into_bytes());
        };
        let post = format!(
            "data: {{\"type\":\"STREAM_EVENT\",\"run_id\":\"{run}\",\"seq\":5,\"event\":{{\"type\":\"X\"}}}}\n\n"
        );
        check(Flavour::Post, post.clone());
        check(Flavour::Get, format!("id: {run}:5\n{post}"));
        check(Flavour::Legacy, "data: {\"type\":\"X\"}\n\n".to_string());
    }
}
