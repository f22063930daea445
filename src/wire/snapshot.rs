//! The snapshot job: a value that turns a captured run into bytes ready to send, on any thread.
//!
//! Text is already escaped and its pieces are shared: serialising glues the small ones and sums lengths. The result
//! serves every observer; what differs between them is a few bytes before and behind.

use std::sync::Arc;

use crate::http::response::{CHUNK_END, chunk_head};
use crate::limits::SNAPSHOT_GLUE_BYTES;
use crate::proto::id::{RunId, Seq, Ticket};
use crate::rope::Rope;
use crate::wire::frame::{self, Flavour, Form};

/// A captured run, to be serialised.
#[derive(Clone, Debug)]
pub struct SnapshotJob {
    /// Names the question.
    pub ticket: Ticket,
    /// The run.
    pub run: RunId,
    /// The head that the capture reaches.
    pub seq: Seq,
    /// The compacted events with commas between them.
    pub events: Rope,
    /// Whether it is for observers of the legacy format.
    pub legacy: bool,
}

/// A serialised snapshot.
#[derive(Debug)]
pub struct Snapshot {
    /// The run.
    pub run: RunId,
    /// The head that it reaches.
    pub seq: Seq,
    /// The events: joined by commas, or one legacy message each.
    body: Vec<Arc<Vec<u8>>>,
    body_bytes: u64,
    legacy: bool,
}

impl SnapshotJob {
    /// Serialises. Pure; may take milliseconds.
    pub fn encode(&self) -> Snapshot {
        let body =
            if self.legacy { vec![Arc::new(legacy_messages(&self.events))] } else { glue(&self.events) };
        let body_bytes = body.iter().map(|piece| piece.len() as u64).sum();
        Snapshot { run: self.run, seq: self.seq, body, body_bytes, legacy: self.legacy }
    }
}

impl Snapshot {
    /// Bytes of its events.
    pub fn bytes(&self) -> u64 {
        self.body_bytes
    }

    /// The pieces to send, in order, in the given form.
    pub fn pieces(&self, form: Form) -> Vec<Arc<Vec<u8>>> {
        if self.legacy && self.body_bytes == 0 {
            // No event, no message; and an empty chunk would end the body.
            return Vec::new();
        }
        let (head, tail) = self.envelope(form);
        let mut pieces = Vec::with_capacity(self.body.len() + 2);
        pieces.push(Arc::new(head));
        pieces.extend(self.body.iter().cloned());
        pieces.push(Arc::new(tail));
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }

    /// Bytes of memory behind this snapshot, shared or not.
    pub fn memory_bytes(&self) -> u64 {
        self.body_bytes
    }

    fn envelope(&self, form: Form) -> (Vec<u8>, Vec<u8>) {
        let (run, seq) = (self.run, self.seq);
        let (start, end) = match form.flavour {
            Flavour::Post => (snapshot_start(run, seq), "]}\n\n"),
            Flavour::Get => (format!("id: {run}:{seq}\n{}", snapshot_start(run, seq)), "]}\n\n"),
            Flavour::Legacy => (String::new(), ""),
        };
        let mut head = Vec::new();
        if form.chunked {
            let bytes = start.len() + end.len() + usize::try_from(self.body_bytes).unwrap_or(usize::MAX / 2);
            chunk_head(bytes, &mut head);
        }
        head.extend_from_slice(start.as_bytes());
        let mut tail = end.as_bytes().to_vec();
        if form.chunked {
            tail.extend_from_slice(CHUNK_END);
        }
        (head, tail)
    }
}

fn snapshot_start(run: RunId, seq: Seq) -> String {
    format!("data: {{\"type\":\"STREAM_SNAPSHOT\",\"run_id\":\"{run}\",\"seq\":{seq},\"events\":[")
}

/// Small neighbouring pieces become one; large ones stay shared.
fn glue(events: &Rope) -> Vec<Arc<Vec<u8>>> {
    let mut glued: Vec<Arc<Vec<u8>>> = Vec::new();
    let mut small = Vec::new();
    for piece in events.pieces() {
        if piece.len() <= SNAPSHOT_GLUE_BYTES {
            small.extend_from_slice(piece);
            continue;
        }
        if !small.is_empty() {
            glued.push(Arc::new(std::mem::take(&mut small)));
        }
        glued.push(piece.clone());
    }
    if !small.is_empty() {
        glued.push(Arc::new(small));
    }
    glued
}

fn legacy_messages(events: &Rope) -> Vec<u8> {
    let text = events.to_vec();
    let mut out = Vec::with_capacity(text.len() + text.len() / 8);
    for event in split_events(&text) {
        frame::message(&[b"data: ", event, b"\n\n"], false, &mut out);
    }
    out
}

/// The objects in a list joined by commas.
pub fn split_events(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (event, behind) = rest.split_at_checked(object_len(rest)).unwrap_or((rest, b""));
        rest = behind.strip_prefix(b",").unwrap_or(behind);
        Some(event)
    })
}

/// Length of the object at the start of valid JSON.
fn object_len(json: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut quoted = false;
    let mut skip = false;
    for (at, byte) in json.iter().enumerate() {
        match (byte, quoted) {
            _ if skip => skip = false,
            (b'\\', true) => skip = true,
            (b'"', _) => quoted = !quoted,
            (b'{' | b'[', false) => depth += 1,
            (b'}' | b']', false) if depth <= 1 => return at + 1,
            (b'}' | b']', false) => depth -= 1,
            _ => {}
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(events: &[&str], form: Form) -> String {
        let mut rope = Rope::default();
        for (number, event) in events.iter().enumerate() {
            if number > 0 {
                rope.push_copy(b",");
            }
            rope.push_copy(event.as_bytes());
        }
        let legacy = form.flavour == Flavour::Legacy;
        let job =
            SnapshotJob { ticket: Ticket(1), run: RunId::from_bits(1), seq: Seq(9), events: rope, legacy };
        let pieces = job.encode().pieces(form);
        String::from_utf8(pieces.iter().flat_map(|piece| piece.to_vec()).collect()).unwrap()
    }

    #[test]
    fn each_form_carries_the_same_events() {
        let run = RunId::from_bits(1);
        let events = [r#"{"a":"}\",{"}"#, r#"{"b":[{}]}"#];
        let post = format!(
            "data: {{\"type\":\"STREAM_SNAPSHOT\",\"run_id\":\"{run}\",\"seq\":9,\"events\":[{},{}]}}\n\n",
            events[0], events[1]
        );
        let legacy = format!("data: {}\n\ndata: {}\n\n", events[0], events[1]);
        let cases = [
            (Flavour::Post, post.clone()),
            (Flavour::Get, format!("id: {run}:9\n{post}")),
            (Flavour::Legacy, legacy),
        ];
        for (flavour, expected) in cases {
            assert_eq!(sent(&events, Form { flavour, chunked: false }), expected);
            let chunk = format!("{:x}\r\n{expected}\r\n", expected.len());
            assert_eq!(sent(&events, Form { flavour, chunked: true }), chunk);
        }
    }

    #[test]
    fn an_empty_legacy_snapshot_sends_nothing_not_the_end_of_the_body() {
        assert_eq!(sent(&[], Form { flavour: Flavour::Legacy, chunked: true }), "");
        assert!(sent(&[], Form::LOG).contains("\"events\":[]"));
    }
}
