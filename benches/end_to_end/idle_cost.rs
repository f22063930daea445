//! Whether what is idle costs those who are not: the token rate of one run beside 10,000 idle chats with an observer each
//! and 1,000 retained runs, against the rate of that run alone.

use crate::args::Args;
use crate::crowd::Crowd;
use crate::peers::{Peer, live};
use crate::process::{Connection, Server, request};
use crate::report::{Row, table};
use crate::scenarios::{OBSERVERS, Stage, token_rate};
use crate::stats::Rounds;

const IDLE: usize = 10_000;
const RETAINED: usize = 1_000;

/// Measures both in turns and prints them.
pub fn compare(args: &Args) {
    let (mut alone, mut beside) = (Rounds::default(), Rounds::default());
    for _ in 0..args.rounds {
        alone.0.push(token_rate(Stage::at(Peer::Rejoin.start(args), Peer::Rejoin, OBSERVERS), args));
        let server = Peer::Rejoin.start(args);
        let _idle = fill(&server);
        beside.0.push(token_rate(Stage::at(server, Peer::Rejoin, OBSERVERS), args));
    }
    let row = |server: &str, rounds| Row { server: server.to_owned(), rounds };
    let rows = [row("alone", alone), row("beside idle ones", beside)];
    table(
        "one event in flight, beside 10,000 idle chats and observers and 1,000 retained runs",
        "deliveries/s",
        &rows,
        "alone",
    );
}

/// Runs that are over and retained, and idle ones with an observer each.
fn fill(server: &Server) -> Crowd {
    let mut connection = Connection::new(server.address);
    let whole = "{\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\
                 {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n";
    for number in 0..RETAINED {
        let path = format!("POST /chats/ended-{number}/runs?stream=1");
        connection.ask(&request(&path, "application/x-ndjson", whole.as_bytes()));
    }
    let mut crowd = Crowd::new();
    for number in 0..IDLE {
        let path = format!("POST /chats/idle-{number}/runs");
        connection.ask(&request(&path, "application/json", b"{}"));
        crowd.join(server.address, 1, &live(&format!("idle-{number}"), ""));
    }
    crowd.settle();
    crowd
}
