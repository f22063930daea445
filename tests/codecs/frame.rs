//! `wire::frame` and `wire::snapshot` against `client`: a frame in each of its forms says the same to who reads it.

use proptest::prelude::*;
use rejoin::client::frame::{End, Frame};
use rejoin::http::request::{Requests, Step};
use rejoin::http::response::LAST_CHUNK;
use rejoin::proto::id::{RunId, Seq, Ticket};
use rejoin::rope::Rope;
use rejoin::wire::event;
use rejoin::wire::frame::{self, Flavour, Form, FrameHead};
use rejoin::wire::snapshot::{SnapshotJob, split_events};

use crate::client;
use crate::material::{self, Cuts};

const FLAVOURS: [Flavour; 3] = [Flavour::Post, Flavour::Get, Flavour::Legacy];

/// A stream of frames of one run in one form.
struct Stream {
    run: RunId,
    form: Form,
    head: FrameHead,
    bytes: Vec<u8>,
}

impl Stream {
    fn event(&mut self, seq: Seq, line: &[u8]) -> Result<(), TestCaseError> {
        let measured = self.head.turn_to(seq, line);
        let event_offset = self.head.event_offset();
        let mut logged = Vec::new();
        self.head.write(line, &mut logged);
        prop_assert_eq!(logged.len(), measured);
        prop_assert!(logged[event_offset..].starts_with(line));
        let before = self.bytes.len();
        frame::render(&logged, event_offset, self.run, seq, self.form, &mut self.bytes);
        prop_assert!(
            self.form != Form::LOG || self.bytes[before..] == logged,
            "the log's form is written as it is"
        );
        Ok(())
    }

    fn snapshot(&mut self, seq: Seq, lines: &[Vec<u8>]) {
        let mut events = Rope::default();
        for (number, line) in lines.iter().enumerate() {
            events.push_copy(if number > 0 { b"," } else { b"" });
            events.push_copy(line);
        }
        let legacy = self.form.flavour == Flavour::Legacy;
        let job = SnapshotJob { ticket: Ticket(1), run: self.run, seq, events, legacy };
        for piece in job.encode().pieces(self.form) {
            self.bytes.extend_from_slice(&piece);
        }
    }

    /// The body of the answer as its reader gets it, and the messages in it.
    fn read(&self, cuts: &Cuts) -> (Vec<u8>, Vec<Vec<u8>>) {
        let body = if self.form.chunked { unchunked(&self.bytes, cuts) } else { self.bytes.clone() };
        let (messages, too_long) = client::read(1 << 24, &cuts.pieces(&body));
        assert!(!too_long);
        (body, messages.into_iter().map(|message| message.expect("frames are no comments")).collect())
    }
}

/// Takes the chunked coding off, which the reader of requests does too.
fn unchunked(bytes: &[u8], cuts: &Cuts) -> Vec<u8> {
    let mut requests = Requests::new();
    let head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (_, step) = requests.next(head).unwrap();
    assert!(matches!(step, Step::Head(_)));
    let (mut body, mut ended) = (Vec::new(), false);
    for piece in cuts.pieces(bytes) {
        let mut rest = piece;
        loop {
            let (taken, step) = requests.next(rest).unwrap();
            rest = &rest[taken..];
            match step {
                Step::NeedMore => break,
                Step::Body(data) => body.extend_from_slice(data),
                Step::End => ended = true,
                Step::Head(_) => panic!("no second request is there"),
            }
        }
    }
    assert!(ended, "the end of the stream is the end of its body");
    body
}

/// The events on one line each, as a run holds them.
fn lines(events: &[String]) -> Vec<Vec<u8>> {
    events.iter().map(|text| event::read(text.as_bytes(), &mut Vec::new()).unwrap().line.to_vec()).collect()
}

/// Writes a snapshot of the first events, the rest live and the end, and reads it all back.
fn check(
    form: Form,
    run: RunId,
    first: u64,
    lines: &[Vec<u8>],
    caught: usize,
    cuts: &Cuts,
) -> Result<(), TestCaseError> {
    let (old, new) = lines.split_at(caught);
    let mut stream = Stream { run, form, head: FrameHead::new(run), bytes: Vec::new() };
    stream.snapshot(Seq(first), old);
    for (seq, line) in (first + 1..).zip(new) {
        stream.event(Seq(seq), line)?;
    }
    let head = Seq(first + new.len() as u64);
    let end = End { run, seq: head, persisted: caught & 1 == 0, superseded: caught & 2 == 0 };
    frame::end(run, head, end.persisted, end.superseded, form, &mut stream.bytes);

    let (body, messages) = stream.read(cuts);
    if form.flavour == Flavour::Legacy {
        prop_assert_eq!(messages, lines, "bare events and nothing else");
        return Ok(());
    }
    let frames: Vec<Frame> = messages.iter().map(|data| Frame::read(data).unwrap()).collect();
    prop_assert_eq!(frames.len(), new.len() + 2);
    let (Frame::Snapshot(snapshot), Frame::End(last)) = (&frames[0], &frames[frames.len() - 1]) else {
        return Err(TestCaseError::fail(format!("{frames:?}")));
    };
    prop_assert_eq!((snapshot.run, snapshot.seq, *last), (run, Seq(first), end));
    let old_again: Vec<&[u8]> = snapshot.events.iter().map(|event| event.get().as_bytes()).collect();
    prop_assert_eq!(old_again, old);
    for ((seq, line), frame) in (first + 1..).zip(new).zip(&frames[1..]) {
        let Frame::Event(event) = frame else { return Err(TestCaseError::fail(format!("{frame:?}"))) };
        prop_assert_eq!(
            (event.run, event.seq, event.event.get().as_bytes()),
            (run, Seq(seq), line.as_slice())
        );
    }
    check_ids(form, run, first, new.len(), &body)
}

/// Only EventSource's form has ids, one before each frame's data.
fn check_ids(form: Form, run: RunId, first: u64, count: usize, body: &[u8]) -> Result<(), TestCaseError> {
    let text = String::from_utf8(body.to_vec()).unwrap();
    let ids: Vec<&str> = text.split('\n').filter_map(|line| line.strip_prefix("id: ")).collect();
    let mut expected: Vec<String> =
        (first..=first + count as u64).map(|seq| format!("{run}:{seq}")).collect();
    expected.push(format!("{run}:end"));
    prop_assert_eq!(ids, if form.flavour == Flavour::Get { expected } else { Vec::new() });
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_form_is_read_back_by_the_client(
        events in material::events(true),
        bits in any::<u128>(),
        first in prop_oneof![0..12_u64, Just(99), Just((1 << 53) - 1), Just(u64::MAX - (1 << 20))],
        caught in any::<prop::sample::Index>(),
        cuts in material::cuts(),
    ) {
        let lines = lines(&events);
        let caught = caught.index(lines.len() + 1);
        for flavour in FLAVOURS {
            for chunked in [false, true] {
                check(Form { flavour, chunked }, RunId::from_bits(bits), first, &lines, caught, &cuts)?;
            }
        }
    }

    #[test]
    fn a_list_of_events_is_split_into_them(events in material::events(true)) {
        let lines = lines(&events);
        let joined = lines.join(&b","[..]);
        prop_assert_eq!(split_events(&joined).collect::<Vec<_>>(), lines);
    }
}

#[test]
fn the_last_chunk_is_no_frame() {
    let run = RunId::from_bits(1);
    for flavour in FLAVOURS {
        let mut out = Vec::new();
        frame::end(run, Seq(1), true, false, Form { flavour, chunked: true }, &mut out);
        assert!(out.ends_with(LAST_CHUNK), "{flavour:?}");
        out.clear();
        frame::end(run, Seq(1), true, false, Form { flavour, chunked: false }, &mut out);
        assert!(!out.ends_with(LAST_CHUNK), "{flavour:?}");
    }
}
