//! The engine's short way for deltas that differ in their text alone: what observers and the producer get is what they
//! get without it. A line with white space behind its event never takes it.

use std::io::IoSlice;

use proptest::prelude::*;
use proptest::sample::Index;
use rejoin::engine::{Config, Engine, Input, Output};
use rejoin::limits::SLICES_PER_WRITE;
use rejoin::proto::id::{ConnId, Now};

use crate::material::{self, Cuts, spoil};

const NOW: Now = Now { mono_ms: 1, wall_ms: 1_800_000_000_000 };
const PRODUCER: ConnId = ConnId { slot: 0, generation: 0 };
const OBSERVER: ConnId = ConnId { slot: 1, generation: 0 };

/// An engine, and what each of its connections was sent.
struct Server {
    engine: Engine,
    sent: [Vec<u8>; 2],
}

impl Server {
    fn request(&mut self, id: ConnId, request: &str) {
        self.engine.handle(NOW, Input::Opened(id));
        self.receive(id, request.as_bytes());
    }

    fn observe(&mut self) {
        self.request(OBSERVER, "GET /chat/live?chat_id=c&wait_ms=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }

    fn receive(&mut self, id: ConnId, bytes: &[u8]) {
        self.engine.handle(NOW, Input::Received(id, bytes));
        loop {
            while let Some(output) = self.engine.poll_output() {
                if let Output::Serialize(job) = output {
                    self.engine.handle(NOW, Input::Serialized(job.ticket, Some(job.encode())));
                }
            }
            let Some(id) = self.engine.next_dirty() else { return };
            let mut slices = [IoSlice::new(&[]); SLICES_PER_WRITE];
            let filled = self.engine.outgoing(id, &mut slices);
            let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
            self.engine.sent(NOW, id, bytes.len(), false);
            self.sent[id.slot as usize].extend(bytes);
        }
    }
}

/// What producer and observer are sent while a body comes in these pieces; how much memory the engine then says it holds. An
/// early observer gets every event, a late one a snapshot.
fn pushed(pieces: &[&[u8]], early: bool) -> ([Vec<u8>; 2], u64) {
    let mut server =
        Server { engine: Engine::new(Config::default(), [7; 32]), sent: [const { Vec::new() }; 2] };
    if early {
        server.observe();
    }
    server.request(
        PRODUCER,
        "POST /chats/c/runs?stream=1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n\
         Content-Length: 1000000000\r\n\r\n",
    );
    for piece in pieces {
        server.receive(PRODUCER, piece);
    }
    if !early {
        server.observe();
    }
    let memory_bytes = server.engine.memory_bytes();
    (server.sent, memory_bytes)
}

/// Lines in which deltas of a few targets come again and again, one of them broken perhaps.
fn lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let line = (any::<Index>(), prop::option::weighted(0.02, material::faults()));
    // A twin differs from its event in a member that keeps the two from being joined.
    let twins = material::event().prop_map(|event| [event.replacen('{', "{\"x\":1,", 1), event]);
    (prop::collection::vec(twins, 1..4).prop_map(|twins| twins.concat()), prop::collection::vec(line, 1..60))
        .prop_map(|(events, order)| {
            let lines = order.into_iter().map(|(which, faults)| {
                let line = which.get(&events).clone().into_bytes();
                faults.map_or(line.clone(), |faults| spoil(line, &faults))
            });
            // What is one line to one of the two has to be one to the other.
            lines.map(|line| line.into_iter().filter(|byte| !b"\r\n".contains(byte)).collect()).collect()
        })
}

fn body(lines: &[Vec<u8>], line_end: &[u8]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line, line_end].concat()).collect()
}

fn check(lines: &[Vec<u8>], cuts: &Cuts) -> Result<(), TestCaseError> {
    for early in [true, false] {
        let (long, _) = pushed(&[&body(lines, b" \n")], early);
        let whole = body(lines, b"\n");
        let short = pushed(&[&whole], early);
        prop_assert_eq!(&long, &short.0);
        prop_assert_eq!(short, pushed(&cuts.pieces(&whole), early));
    }
    Ok(())
}

/// A delta joins the last entry of its target only, and none once something else came between.
#[test]
fn deltas_of_one_target_that_differ_elsewhere_are_not_joined() {
    let delta = |more: &str, text: &str| {
        format!("{{{more}\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":\"{text}\"}}")
            .into_bytes()
    };
    let (plain, other) = (|text| delta("", text), |text| delta("\"x\":1,", text));
    let mut lines = Vec::new();
    for round in ["a", "b", "c", "d"] {
        lines.extend([plain(round), plain(round), other(round), other(round)]);
    }
    lines.extend([
        b"{\"type\":\"CUSTOM\",\"name\":\"n\",\"value\":1}".to_vec(),
        other("e"),
        plain("e"),
        plain("f"),
    ]);
    check(&lines, &Cuts::none()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_short_way_changes_nothing(lines in lines(), cuts in material::cuts()) {
        check(&lines, &cuts)?;
    }
}
