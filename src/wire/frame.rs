//! Frames of protocol 1: SSE messages that carry one line of JSON each.
//!
//! A run's log holds its events in the form that a POST over HTTP/1.1 gets: one chunk of the chunked coding, with
//! one frame in it. All other forms are derived from it.

use crate::http::response::{CHUNK_END, HEX, LAST_CHUNK, chunk_head};
use crate::proto::id::{RUN_ID_LEN, RunId, Seq};

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

/// What stands behind the event in the log's form.
const FRAME_END: &[u8] = b"}\n\n\r\n";

/// The most that stands before the event: the chunk's head, and the envelope with its largest seq.
const FRAME_HEAD_BYTES_MAX: usize = 18 + EVENT_START.len() + RUN_ID_LEN + SEQ.len() + 20 + EVENT.len();

/// What stands before a run's events in the log's frames. It is kept from event to event, since little of it changes: the
/// chunk's size and the last digits of the seq.
#[derive(Debug)]
pub struct FrameHead {
    run: RunId,
    /// The head, at the end of the array.
    bytes: [u8; FRAME_HEAD_BYTES_MAX],
    /// Where the head begins.
    start: usize,
    /// Where the envelope begins, behind the chunk's head.
    envelope: usize,
    seq: Seq,
    /// What the chunk's head says.
    payload_bytes: usize,
}

/// Where the seq ends in the array.
const SEQ_END: usize = FRAME_HEAD_BYTES_MAX - EVENT.len();

impl FrameHead {
    /// The head of no frame yet.
    pub fn new(run: RunId) -> FrameHead {
        let mut head = FrameHead {
            run,
            bytes: [0; FRAME_HEAD_BYTES_MAX],
            start: FRAME_HEAD_BYTES_MAX,
            envelope: FRAME_HEAD_BYTES_MAX,
            seq: Seq::ZERO,
            payload_bytes: 0,
        };
        head.put_envelope();
        head
    }

    /// Makes it the head of the frame of the `event` with this seq. Returns the frame's length.
    #[inline]
    pub fn turn_to(&mut self, seq: Seq, event: &[u8]) -> usize {
        let counts_up = seq == self.seq.next() && self.count_up();
        self.seq = seq;
        if !counts_up {
            self.put_envelope();
        }
        let payload_bytes = FRAME_HEAD_BYTES_MAX - self.envelope + event.len() + EVENT_END.len();
        if payload_bytes != self.payload_bytes {
            self.payload_bytes = payload_bytes;
            self.put_chunk_head();
        }
        self.event_offset() + event.len() + FRAME_END.len()
    }

    /// Offset of the event in the frame.
    #[inline]
    pub fn event_offset(&self) -> usize {
        FRAME_HEAD_BYTES_MAX - self.start
    }

    /// Writes the frame of the event that the head was last turned to.
    #[inline]
    pub fn write(&self, event: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(self.bytes.get(self.start..).unwrap_or_default());
        out.extend_from_slice(event);
        out.extend_from_slice(FRAME_END);
    }

    /// Adds one to the seq as it is written; not if that needs one more digit.
    #[inline]
    fn count_up(&mut self) -> bool {
        for digit in self.bytes.get_mut(..SEQ_END).unwrap_or_default().iter_mut().rev() {
            match digit {
                b'9' => *digit = b'0',
                b'0'..=b'8' => {
                    *digit += 1;
                    return true;
                }
                _ => return false,
            }
        }
        false
    }

    fn put_envelope(&mut self) {
        self.start = FRAME_HEAD_BYTES_MAX;
        self.put(EVENT);
        self.put(itoa::Buffer::new().format(self.seq.0).as_bytes());
        self.put(SEQ);
        let run = self.run;
        self.put(run.as_bytes());
        self.put(EVENT_START);
        self.envelope = self.start;
        self.payload_bytes = 0;
    }

    fn put_chunk_head(&mut self) {
        self.start = self.envelope;
        self.put(CHUNK_END);
        let mut number = self.payload_bytes;
        while number > 0 {
            self.put(&[HEX.get(number & 0xf).copied().unwrap_or_default()]);
            number >>= 4;
        }
    }

    /// Puts `bytes` before what there is of the head.
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        let end = self.start;
        self.start -= bytes.len();
        if let Some(place) = self.bytes.get_mut(self.start..end) {
            place.copy_from_slice(bytes);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT_TEXT: &[u8] = br#"{"type":"X"}"#;

    fn framed(head: &mut FrameHead, seq: u64, event: &[u8]) -> (Vec<u8>, usize) {
        let bytes = head.turn_to(Seq(seq), event);
        let mut out = Vec::new();
        head.write(event, &mut out);
        assert_eq!(out.len(), bytes);
        (out, head.event_offset())
    }

    fn log_frame(seq: u64) -> (Vec<u8>, usize) {
        framed(&mut FrameHead::new(RunId::from_bits(7)), seq, EVENT_TEXT)
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
    fn a_kept_head_is_as_good_as_a_new_one() {
        let run = RunId::from_bits(u128::MAX / 3);
        let long = [b'x'; 5_000];
        let mut kept = FrameHead::new(run);
        let counted = (1..2_100).chain([99_999, 100_000, 100_001, 7, 8, 8, u64::MAX / 2]);
        for (turn, seq) in counted.enumerate() {
            let event = &long[..[1, 40, 41, 200, 5_000][turn % 5]];
            assert_eq!(
                framed(&mut kept, seq, event),
                framed(&mut FrameHead::new(run), seq, event),
                "seq {seq}"
            );
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
