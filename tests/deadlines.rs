//! Limits of time, on a clock that the test sets: who sends or reads too slowly is answered and closed at the stated
//! moment, not before, and who keeps to the limits stays.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::io::IoSlice;

use rejoin::engine::{Close, Config, Engine, Input, Output};
use rejoin::limits::{IDLE_MS, REQUEST_MS, SLICES_PER_WRITE, STALL_MS};
use rejoin::proto::id::{ConnId, Now};

const CLIENT: ConnId = ConnId { slot: 0, generation: 0 };

/// An engine with one client, its time, and what the client got.
struct Stage {
    engine: Engine,
    ms: u64,
    sent: Vec<u8>,
    closed: Option<Close>,
    /// The client takes what it is sent.
    reads: bool,
}

impl Stage {
    fn new() -> Stage {
        let engine = Engine::new(Config::default(), [7; 32]);
        let mut stage = Stage { engine, ms: 1, sent: Vec::new(), closed: None, reads: true };
        stage.handle(Input::Opened(CLIENT));
        stage
    }

    fn now(&self) -> Now {
        Now { mono_ms: self.ms, wall_ms: 1_800_000_000_000 + self.ms }
    }

    fn handle(&mut self, input: Input<'_>) {
        self.engine.handle(self.now(), input);
        loop {
            while let Some(output) = self.engine.poll_output() {
                if let Output::Close(CLIENT, how) = output {
                    self.closed = Some(how);
                }
            }
            let Some(id) = self.engine.next_dirty() else { return };
            let mut slices = [IoSlice::new(&[]); SLICES_PER_WRITE];
            let filled = self.engine.outgoing(id, &mut slices);
            let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
            let taken = if self.reads { bytes.len() } else { 0 };
            self.engine.sent(self.now(), id, taken, !self.reads);
            self.sent.extend(&bytes[..taken]);
        }
    }

    fn send(&mut self, bytes: &str) {
        self.handle(Input::Received(CLIENT, bytes.as_bytes()));
    }

    fn pass(&mut self, ms: u64) {
        self.ms += ms;
        self.handle(Input::Tick);
    }

    /// Sends a byte a second until it is closed; after how many seconds that was.
    fn trickle(&mut self, byte: &str) -> u64 {
        let seconds = (1..=120).find(|_| {
            self.pass(1_000);
            if self.closed.is_none() {
                self.send(byte);
            }
            self.closed.is_some()
        });
        seconds.expect("it is closed")
    }

    fn text(&self) -> String {
        String::from_utf8(self.sent.clone()).unwrap()
    }
}

fn check_too_slow(name: &str, start: &str, byte: &str) {
    let mut stage = Stage::new();
    stage.send(start);
    assert_eq!(stage.trickle(byte), REQUEST_MS / 1_000, "{name}");
    let text = stage.text();
    assert!(text.starts_with("HTTP/1.1 408 ") && text.contains("request_timeout"), "{name}: {text}");
    assert!(matches!(stage.closed, Some(Close::Linger)), "{name}: it can read its answer");
}

#[test]
fn a_request_that_trickles_in_is_408_however_steadily_it_trickles() {
    check_too_slow("a method", "G", "");
    check_too_slow("a target", "GET /", "x");
    check_too_slow("a field", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", "x");
    let post = "POST /chat/live HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    check_too_slow("a body", &format!("{post}Content-Length: 1000\r\n\r\n"), " ");
    check_too_slow("a chunked body", &format!("{post}Transfer-Encoding: chunked\r\n\r\n3e8\r\n"), " ");
    check_too_slow("an extension", &format!("{post}Transfer-Encoding: chunked\r\n\r\n1;"), "x");
    check_too_slow("trailers", &format!("{post}Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\nX: "), "x");
}

#[test]
fn a_connection_without_a_request_is_closed_without_a_word() {
    for request in ["", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
        let mut stage = Stage::new();
        stage.send(request);
        let answer = stage.sent.len();
        stage.pass(IDLE_MS - 1);
        assert!(stage.closed.is_none(), "not before its time");
        stage.pass(1);
        assert!(stage.closed.is_some());
        assert_eq!(stage.sent.len(), answer, "nobody asked anything");
    }
}

#[test]
fn a_reader_that_takes_nothing_of_its_answer_is_reset() {
    let mut stage = Stage::new();
    stage.reads = false;
    stage.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stage.pass(STALL_MS - 1);
    assert!(stage.closed.is_none(), "not before its time");
    stage.pass(1);
    assert!(matches!(stage.closed, Some(Close::Reset)));
}
