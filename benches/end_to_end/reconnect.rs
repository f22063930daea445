//! What it costs to come back: bytes and time until an observer of rejoin is caught up.

use std::time::{Duration, Instant};

use crate::args::Args;
use crate::crowd::{Crowd, Producer, event};
use crate::peers::{Peer, live};
use crate::process::{Connection, Server, request, status};
use crate::scenarios::{OBSERVERS, PATIENCE};
use crate::stats::{Rounds, quantile};

/// Bytes and milliseconds until an observer of rejoin is caught up: with a cursor `behind`, or fresh.
fn reconnect(server: &Server, chat: &str, run: &str, head: u64, behind: Option<u64>) -> (f64, f64) {
    let mut crowd = Crowd::new();
    let begin = Instant::now();
    crowd.join(server.address, 1, &live(chat, &cursor(run, head, behind)));
    let reached = behind == Some(0) || crowd.until(head, PATIENCE);
    while crowd.bytes() == 0 {
        crowd.pump(Duration::from_millis(5));
    }
    let took = begin.elapsed().as_secs_f64() * 1e3;
    assert!(reached, "never caught up");
    (crowd.bytes() as f64, took)
}

/// The body's members that name where an observer stands.
fn cursor(run: &str, head: u64, behind: Option<u64>) -> String {
    behind.map_or(String::new(), |behind| format!(r#","run_id":"{run}","after_seq":{}"#, head - behind))
}

/// Milliseconds until an observer is caught up that asks right behind 1,000 others that want the same.
fn behind_others(server: &Server, run: &str, head: u64, behind: Option<u64>) -> f64 {
    let hello = live("c", &cursor(run, head, behind));
    let (mut others, mut last) = (Crowd::new(), Crowd::new());
    others.join(server.address, OBSERVERS, &hello);
    let begin = Instant::now();
    last.join(server.address, 1, &hello);
    while last.least() < head {
        assert!(begin.elapsed() < PATIENCE, "never caught up");
        others.pump(Duration::ZERO);
        last.pump(Duration::ZERO);
    }
    begin.elapsed().as_secs_f64() * 1e3
}

/// The server's microseconds of processor for a page that asks for a run where there is none.
fn idle_probe(server: &Server) -> f64 {
    const PROBES: usize = 5_000;
    let body = r#"{"chat_id":"nobody","protocol":1}"#;
    let probe = request("POST /chat/live", "application/json", body.as_bytes());
    let mut connection = Connection::new(server.address);
    connection.ask(&probe);
    let before = server.cpu();
    (0..PROBES).for_each(|_| drop(connection.ask(&probe)));
    (server.cpu() - before).as_secs_f64() * 1e6 / PROBES as f64
}

/// The id of the only run, once all its events were read: an observer that comes while events come faster than it can be
/// sent a snapshot is cut off after a few of them, and has to come again.
fn whole_run(server: &Server, events: u64) -> String {
    let begin = Instant::now();
    loop {
        let run = &status(server)["runs"][0];
        if run["seq"].as_u64() == Some(events) {
            return run["run_id"].as_str().unwrap().to_owned();
        }
        assert!(begin.elapsed() < PATIENCE, "the run has not all events: {run}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The table.
pub fn all(args: &Args) {
    println!("\n**What a reconnect costs** (events of 76 B of JSON; medians of 9)\n");
    println!("| run | observer | bytes | ms |\n| --- | --- | --- | --- |");
    for events in [1_000_u64, 20_000, 200_000] {
        let server = Peer::Rejoin.start(args);
        let mut producer = Producer::new(server.address, &Peer::Rejoin.produce("c"));
        for number in 1..=events {
            producer.push(&Peer::Rejoin, &event(number, 76));
            while number % 64 == 0 && !producer.flush() {}
        }
        while !producer.flush() {}
        let run = whole_run(&server, events);
        let cases = [Some(0), Some(10), Some(1_000), Some(4_096), Some(4_097), None];
        for behind in cases.into_iter().filter(|behind| behind.is_none_or(|behind| behind <= events)) {
            let all: Vec<(f64, f64)> =
                (0..9).map(|_| reconnect(&server, "c", &run, events, behind)).collect();
            let bytes = Rounds(all.iter().map(|(bytes, _)| *bytes).collect()).median();
            let took = Rounds(all.iter().map(|(_, took)| *took).collect()).median();
            let who = match behind {
                Some(4_097) => "cursor 4,097 behind: expired".to_owned(),
                Some(behind) => format!("cursor {behind} behind"),
                None => "fresh".to_owned(),
            };
            println!("| {events} events | {who} | {bytes:.0} | {took:.2} |");
        }
        // Few rounds: that an observer has gone without a word is noticed when something is written to it, and a chat's
        // observers are bounded.
        for behind in [Some(10), None] {
            let mut all: Vec<f64> = (0..3).map(|_| behind_others(&server, &run, events, behind)).collect();
            let who = behind.map_or("fresh".to_owned(), |behind| format!("cursor {behind} behind"));
            println!("| {events} events | {who}, behind 1,000 others | | {:.2} |", quantile(&mut all, 0.5));
        }
    }
    let server = Peer::Rejoin.start(args);
    println!("\nAn idle probe (no run: 204) takes {:.1} µs of the server's processor.", idle_probe(&server));
}
