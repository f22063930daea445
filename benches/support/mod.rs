//! What the benchmarks share: an engine without sockets, a producer that pushes into it, observers that take all.

#![allow(dead_code, reason = "every benchmark includes this file and uses its own part of it")]

use std::io::IoSlice;

use rejoin::engine::{Config, Engine, Input, Output};
use rejoin::limits::{BLOCK_BYTES, POOL_BLOCKS_WARM, READ_BYTES_PER_TURN, SLICES_PER_WRITE};
use rejoin::proto::accumulator::Accumulator;
use rejoin::proto::event::Kind;
use rejoin::proto::id::{ConnId, Now};
use rejoin::proto::pool::BlockPool;
use rejoin::wire::event::{self, PUNCTUATION};

const NOW: Now = Now { mono_ms: 1, wall_ms: 1_800_000_000_000 };
const PRODUCER: ConnId = ConnId { slot: 0, generation: 0 };

/// An engine with one run, whose producer's request body never ends.
pub(crate) struct Pushed {
    pub(crate) engine: Engine,
    observers: u32,
}

impl Pushed {
    /// A run has begun; its body is NDJSON.
    pub(crate) fn new() -> Pushed {
        let mut pushed = Pushed { engine: Engine::new(Config::default(), [7; 32]), observers: 0 };
        pushed.engine.handle(NOW, Input::Opened(PRODUCER));
        pushed.push(
            b"POST /chats/c/runs?stream=1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n\
              Content-Length: 1000000000000\r\n\r\n{\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\
              {\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"message-1\",\"role\":\"assistant\"}\n",
        );
        pushed.settle();
        pushed
    }

    /// Bytes of the body, as they come from a socket: at most a read buffer at once.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for read in bytes.chunks(READ_BYTES_PER_TURN) {
            self.engine.handle(NOW, Input::Received(PRODUCER, read));
        }
    }

    /// Another run takes all blocks that the pool holds.
    pub(crate) fn hold_pool(&mut self) {
        let bytes = POOL_BLOCKS_WARM * BLOCK_BYTES[BLOCK_BYTES.len() - 1];
        self.observers += 1;
        let id = ConnId { slot: self.observers, generation: 0 };
        self.engine.handle(NOW, Input::Opened(id));
        let head = "POST /chats/other/runs?stream=1 HTTP/1.1\r\nHost: localhost\r\n\
                    Content-Type: application/x-ndjson\r\nContent-Length: 1000000000000\r\n\r\n";
        self.engine.handle(NOW, Input::Received(id, head.as_bytes()));
        for read in deltas(bytes / 1024, 1024, Text::Ascii).chunks(READ_BYTES_PER_TURN) {
            self.engine.handle(NOW, Input::Received(id, read));
        }
        self.settle();
    }

    /// One more observer follows the run over HTTP/1.1.
    pub(crate) fn observe(&mut self) {
        self.observers += 1;
        let id = ConnId { slot: self.observers, generation: 0 };
        self.engine.handle(NOW, Input::Opened(id));
        let body = r#"{"chat_id":"c","protocol":1}"#;
        let request = format!(
            "POST /chat/live HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.engine.handle(NOW, Input::Received(id, request.as_bytes()));
        self.settle();
    }

    /// Everything that can be written is written, and every job is done. Returns the bytes written.
    pub(crate) fn settle(&mut self) -> usize {
        let mut written = 0;
        loop {
            while let Some(output) = self.engine.poll_output() {
                if let Output::Serialize(job) = output {
                    let snapshot = job.encode();
                    self.engine.handle(NOW, Input::Serialized(job.ticket, Some(snapshot)));
                }
            }
            let before = written;
            while let Some(id) = self.engine.next_dirty() {
                let mut slices = [IoSlice::new(&[]); SLICES_PER_WRITE];
                let filled = self.engine.outgoing(id, &mut slices);
                let bytes = slices[..filled].iter().map(|slice| slice.len()).sum();
                self.engine.sent(NOW, id, bytes, false);
                written += bytes;
            }
            if written == before {
                return written;
            }
        }
    }
}

/// What a delta is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Text {
    Ascii,
    /// Raw text outside ASCII: three bytes a character.
    Chinese,
    /// An escape about every 30 bytes.
    Escapes,
}

/// `events` delta events as NDJSON, each with `delta_bytes` bytes of text.
pub(crate) fn deltas(events: usize, delta_bytes: usize, text: Text) -> Vec<u8> {
    let pattern = match text {
        Text::Ascii => "the answer goes on and on and on, ",
        Text::Chinese => "答案還在繼續寫下去",
        Text::Escapes => "the answer goes on in lines\\n",
    };
    let mut delta = String::new();
    while delta.len() + pattern.len() <= delta_bytes {
        delta.push_str(pattern);
    }
    delta.extend(std::iter::repeat_n('x', delta_bytes - delta.len()));
    let event =
        format!("{{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"message-1\",\"delta\":\"{delta}\"}}\n");
    event.repeat(events).into_bytes()
}

/// The text of a run with these events.
pub(crate) fn text(body: &[u8]) -> Accumulator {
    let mut text = Accumulator::new(&PUNCTUATION);
    let (mut scratch, mut pool) = (Vec::new(), BlockPool::default());
    for line in body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let event = event::read(line, &mut scratch).expect("an event");
        match &event.kind {
            Kind::Delta(delta) => text.delta(delta, &mut pool),
            Kind::Chunk(chunk) => text.chunk(chunk, &mut pool),
            Kind::Boundary(mark) => text.boundary(event.line, mark, &mut pool),
        }
    }
    text
}

/// Deltas and other events in turn: nothing can be joined.
pub(crate) fn unjoined(events: usize) -> Vec<u8> {
    let mut body = Vec::new();
    for number in 0..events / 2 {
        body.extend(deltas(1, 16, Text::Ascii));
        body.extend(format!("{{\"type\":\"CUSTOM\",\"name\":\"n\",\"value\":{number}}}\n").into_bytes());
    }
    body
}
