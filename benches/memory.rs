//! Memory of runs: what is held beside their text and the frames of their window.
//!
//! `cargo bench --bench memory` prints a table: counted by the engine itself (what `--memory-max` bounds), and for many
//! small runs also what the system says about the process.
#![allow(clippy::print_stdout, reason = "a program that prints what it measured")]

mod support;

use rejoin::engine::{Config, Engine, Input, Output};
use rejoin::limits::{Limits, WINDOW_EVENTS};
use rejoin::proto::history::{Answer, Job, Outcome};
use rejoin::proto::id::{ConnId, Now};

use support::{Pushed, Text, deltas, text};

const NOW: Now = Now { mono_ms: 1, wall_ms: 1_800_000_000_000 };

fn main() {
    println!("| open run | text + frames of its window | held | ratio |\n| --- | --- | --- | --- |");
    for (events, bytes) in
        [(100, 16), (1_000, 16), (10_000, 16), (100_000, 16), (200_000, 16), (10_000, 1_024), (60_000, 1_024)]
    {
        open_run(events, bytes);
    }
    ended_runs(100_000);
}

fn open_run(events: usize, bytes: usize) {
    let body = deltas(events, bytes, Text::Ascii);
    let mut run = Pushed::new();
    run.push(&body);
    let net = text(&body).capture().len() + frames_bytes(events.min(WINDOW_EVENTS), bytes);
    let held = run.engine.memory_bytes();
    println!("| {events} × {bytes} B | {net} B | {held} B | {:.2} |", held as f64 / net as f64);
}

/// What an observer is sent who follows that many events.
fn frames_bytes(events: usize, bytes: usize) -> u64 {
    let mut run = Pushed::new();
    run.observe();
    let mut sent = 0;
    for event in deltas(events, bytes, Text::Ascii).split_inclusive(|byte| *byte == b'\n') {
        run.push(event);
        sent += run.settle();
    }
    sent as u64
}

/// Runs of 100 tokens of 16 B that are over and retained.
fn ended_runs(count: u32) {
    let body = deltas(100, 16, Text::Ascii);
    let net = text(&body).capture().len() + frames_bytes(100, 16);
    let limits = Limits { retention_chats: count as usize, ..Limits::default() };
    let mut engine = Engine::new(Config { limits, ..Config::default() }, [7; 32]);
    let before = resident_bytes();
    (0..count).for_each(|number| whole_run(&mut engine, number, &body));
    let counted = engine.memory_bytes();
    let resident = resident_bytes() - before;
    let each = |bytes: u64| bytes / u64::from(count);
    println!("\n{count} ended runs of 100 × 16 B: {net} B of text and frames each");
    println!("counted: {} B each, {} MB together", each(counted), counted / 1_000_000);
    println!("resident: {} B each, {} MB together", each(resident), resident / 1_000_000);
    println!("beside text and frames: {} B each", each(resident).saturating_sub(net));
}

fn whole_run(engine: &mut Engine, number: u32, body: &[u8]) {
    let id = ConnId { slot: 0, generation: number };
    let head = format!(
        "POST /chats/chat-{number}/runs?stream=1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    engine.handle(NOW, Input::Opened(id));
    engine.handle(NOW, Input::Received(id, head.as_bytes()));
    engine.handle(NOW, Input::Received(id, body));
    while let Some(output) = engine.poll_output() {
        if let Output::Store(Job::Commit(turn)) = output {
            let answer = Answer::Finalized { run: turn.run, outcome: Outcome::Committed };
            engine.handle(NOW, Input::Stored(answer));
        }
    }
    engine.handle(NOW, Input::Closed(id));
    while engine.poll_output().is_some() {}
}

/// What the system says this process has in memory, in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a figure");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}
