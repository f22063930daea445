//! Judged by AG-UI's own client: the snapshot's events come to the same as the original ones.

use crate::Gathered;
use crate::generate::{self, Options};
use crate::oracle::{Comparison, Oracle};

const TRACES: [&str; 5] = [
    include_str!("../data/traces/pydantic-ai-boom.sse"),
    include_str!("../data/traces/pydantic-ai-hello.sse"),
    include_str!("../data/traces/pydantic-ai-long-1000.sse"),
    include_str!("../data/traces/pydantic-ai-tools.sse"),
    include_str!("../data/traces/pydantic-ai-utf8.sse"),
];

/// A snapshot after `cut` events, then the others, comes to the same as all of them.
fn compare(oracle: &mut Oracle, events: &[String], cut: usize) -> Comparison {
    let (before, after) = events.split_at(cut);
    let snapshot = Gathered::of(before).snapshot();
    oracle.compare_with_tail(&generate::array(before), &snapshot, &generate::array(after))
}

fn same_at(oracle: &mut Oracle, events: &[String], cut: usize, name: &str) {
    let comparison = compare(oracle, events, cut);
    assert!(comparison.lost().is_none(), "{name}, cut after event {cut}: {:?}", comparison.lost());
    assert_eq!(comparison.before.accepted, comparison.after.accepted, "{name}, cut after event {cut}");
}

#[test]
fn recorded_runs_are_the_same_after_a_snapshot_at_every_event() {
    let mut oracle = Oracle::start();
    for (number, sse) in TRACES.iter().enumerate() {
        let events: Vec<String> =
            sse.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect();
        let step = if events.len() > 200 { 97 } else { 1 };
        for cut in (0..=events.len()).step_by(step).chain([events.len()]) {
            same_at(&mut oracle, &events, cut, &format!("trace {number}"));
        }
    }
}

#[test]
fn a_recorded_answer_becomes_one_event() {
    let sse = TRACES[2];
    let events: Vec<String> =
        sse.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect();
    let snapshot = Gathered::of(&events).snapshot();
    let entries: Vec<serde_json::Value> = serde_json::from_slice(&snapshot).unwrap();
    let contents = entries.iter().filter(|entry| entry["type"] == "TEXT_MESSAGE_CONTENT").count();
    assert_eq!((events.len() > 1_000, contents), (true, 1));
}

#[test]
fn generated_runs_that_the_client_accepts_are_the_same() {
    let mut oracle = Oracle::start();
    for seed in 0_usize..80 {
        let events = generate::events(seed as u64, Options::default());
        for cut in [events.len(), (seed * 31) % (events.len() + 1)] {
            same_at(&mut oracle, &events, cut, &format!("seed {seed}"));
        }
    }
}

#[test]
fn generated_runs_that_are_broken_come_to_the_same_brokenness() {
    let mut oracle = Oracle::start();
    let mut refused = 0;
    for seed in 1_000..1_150 {
        let events = generate::events(seed, Options { valid: false, ..Options::default() });
        let comparison = compare(&mut oracle, &events, events.len());
        refused += u32::from(!comparison.before.accepted);
        assert!(comparison.lost().is_none(), "seed {seed}: {:?}", comparison.lost());
    }
    assert!(refused > 50, "only {refused} of the broken runs were broken");
}
