//! The simulator: the whole pure server, byte by byte, from one seed.
//!
//! Each seed draws a swarm of options, then lives through two phases. First safety: clients come and go, bytes are cut
//! anywhere, writes are short, observers stall, jobs finish late, out of order or not at all, the store fails and
//! hangs, clocks jump; what any client sees is checked after every step. Then faults are off, and everything must come
//! to rest: each run ends, each observer gets its end or 204, and a server that is told to stop has nothing left.
//!
//! A failing seed is printed with the command that replays it and its last steps.
//!
//! It can fail. These faults were planted in `src`, one at a time, and each was caught within 500 seeds (the last
//! column: what the simulator said, with the seed):
//!
//! | planted fault | caught as |
//! | --- | --- |
//! | an observer's cursor is off by one | 4: "event 2 after 0" |
//! | a short write moves the cursor a frame too far | 12: "event 9 after 7" |
//! | the rest of a frame torn by a short write is dropped | 12: "chunk of 172 bytes does not end" |
//! | handoff not atomic: the cursor is put behind the snapshot's seq | an assertion of the engine |
//! | END before the commit | 30: "the bus says None" |
//! | END says persisted though the store failed | 24: "a producer was told that its run is saved" |
//! | a producer in the process is told so | 20: the same |
//! | a pending save is evicted | an assertion of the registry |
//! | ended runs are never evicted | 0: "45775 bytes of runs are left", 19: "is served although its retention is over" |
//! | ended runs are evicted one too early | 454: "an observer was told that there is nothing" |
//! | a run is not freed when its last observer leaves | 0: "2437 bytes of runs are left" |
//! | `superseded` is missing in END | 0: "the bus says …" |
//! | observers are not told of the end | 0: "left behind at 2" |
//! | observers of a replaced run keep following it | 0: "left behind at 1" |
//! | an observer that leaves leaves its neighbour with a wrong place | an index out of bounds |
//! | waiting requests miss a registration | 0: "waits though its chat has a run" |
//! | `from_seq` skips one event too few | 2: "35 events were acknowledged, 13 are there" |
//! | the replay window holds one event too many | 2: "27 is followed by an event, with 31 there" |
//! | a slow observer in the legacy format is sent a snapshot | 24: "a complete legacy stream is no whole run" |
//! | the bus begins without the runs that have no event yet | 48: "a listener hears of unknown" |
//! | the bus says an event twice | 0: "chunk Some(3), not 4" |
//! | the agent has an answer that the run does not record | 0: "the agent has the answer before the run has" |
//! | a fourth observer of a run pushes the first one out | 6: "it takes too many attempts", and the pairs |
//!
//! Not caught: a snapshot that is shared although it is older than the cursor, since the bound on how far a shared
//! snapshot may be behind hides it; and a body that goes on when another took over, since the numbers of its events make
//! that harmless.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
#![allow(missing_docs, unreachable_pub, reason = "a test is its own only reader")]

mod agents;
mod arrivals;
mod checker;
mod client;
mod inside;
mod listener;
mod locals;
mod model;
mod observer;
mod paired;
mod plan;
mod producer;
mod reader;
#[path = "../support/rng.rs"]
mod rng;
mod store;
mod swarm;
mod world;

use std::collections::BTreeMap;

use checker::Checker;
use client::Client;
use world::World;

/// Seeds that are run when nothing else is asked for.
const SEEDS: u64 = 2_000;

/// What has to happen now and then in so many seeds, or their silence says nothing.
const SITUATIONS: [&str; 10] = [
    "a legacy stream was complete",
    "a listener heard the end of a run",
    "a producer inside the server finished",
    "a producer inside the server was told to stop",
    "a producer's old body was given up for its new one",
    "a slow observer started again from a snapshot",
    "an observer came too late",
    "an observer saw its run replaced",
    "an observer was told that the answer is not saved",
    "an observer went on from its cursor",
];

/// Steps within which everything has to come to rest.
const REST_STEPS: usize = 4_000;

fn safety(world: &mut World) {
    for _ in 0..world.swarm.steps {
        step(world);
        if world.checker.violation.is_some() {
            return;
        }
    }
}

fn step(world: &mut World) {
    let dice = world.rng.below(1_000);
    let swarm = world.swarm.clone();
    let busy = world.busy();
    let somebody = if busy.is_empty() { None } else { Some(*world.rng.pick(&busy)) };
    let mut below = 0;
    let mut within = |share: usize| {
        below += share;
        dice < below
    };
    if within(swarm.new_client) {
        world.new_client();
    } else if within(swarm.new_client) {
        if !world.waiting.is_empty() {
            let client = world.waiting.swap_remove(world.rng.below(world.waiting.len()));
            world.connect(client);
        }
    } else if within(swarm.cut) {
        somebody.into_iter().for_each(|index| world.cut(index));
    } else if within(swarm.half_close) {
        somebody.into_iter().for_each(|index| world.half_close(index));
    } else if within(swarm.time) {
        let most = *world.rng.pick(&[10, 1_000, 20_000, 100_000]);
        world.pass_time(most);
    } else if within(70) {
        world.agent_step();
    } else if within(if swarm.locals > 0 { 70 } else { 0 }) {
        world.local_step();
    } else if within(100) {
        world.work();
    } else if within(100) {
        world.store_step();
    } else if within(80) {
        somebody.into_iter().for_each(|index| world.unblock(index));
    } else {
        somebody.into_iter().for_each(|index| world.deliver(index));
    }
}

/// Faults off: what was begun has to end.
fn liveness(world: &mut World) {
    world.calm = true;
    world.cut_endless();
    (world.swarm.commit_fails, world.swarm.commit_hangs) = (0, 0);
    for _ in 0..REST_STEPS {
        for client in &mut world.waiting {
            match client {
                Client::Producer(producer) => producer.calm(),
                Client::Observer(observer) => observer.calm(),
                Client::Tap
                | Client::Ghost
                | Client::Listener(_)
                | Client::Once(_)
                | Client::Sender(_)
                | Client::Garbage(_) => {}
            }
        }
        for client in std::mem::take(&mut world.waiting) {
            world.connect(client);
        }
        for index in world.busy() {
            world.unblock(index);
            world.deliver(index);
        }
        world.work();
        world.agents_step();
        world.locals_step();
        world.store_step();
        world.pass_time(if world.is_idle() { 200_000 } else { 50 });
        if world.checker.violation.is_some() {
            return;
        }
        if world.busy().is_empty() && world.waiting.is_empty() && world.is_idle() && all_ended(world) {
            return;
        }
    }
    let left = world.busy().len() + world.waiting.len();
    world.checker.fail(format!("no rest: {left} clients are still busy"));
}

fn all_ended(world: &World) -> bool {
    world.checker.all_ended()
}

/// When retention is over, and somebody comes, nothing of any run is left.
fn forgets(world: &mut World) {
    world.clock(world.swarm.retention_ms + 1);
    world.connect(Client::Once(
        "GET /chat/live?chat_id=nobody HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
    ));
    for index in world.busy() {
        world.deliver(index);
    }
    let left = world.memory_bytes();
    world.checker.require(left == 0, || format!("{left} bytes of runs are left that nobody can have"));
}

fn aftermath(world: &mut World) {
    world.checker.at_rest();
    for (run, plan, acked) in std::mem::take(&mut world.spoken) {
        world.checker.produced(&run, &plan, acked);
    }
    for producer in std::mem::take(&mut world.past) {
        if let Some(run) = &producer.run {
            world.checker.produced(run, &producer.plan, producer.acked);
        }
    }
    forgets(world);
    world.shut_down();
    for _ in 0..50 {
        world.agents_step();
        world.work();
        world.store_step();
    }
    for index in world.busy() {
        world.cut(index);
    }
    if world.is_open(0) {
        world.cut(0);
    }
    let finished = world.is_finished();
    world.checker.require(finished, || "a stopped server has something left to do".to_owned());
}

/// What came out of a seed, or of many.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// Of all that was sent.
    hash: u64,
    /// Claims of clients that were looked at.
    checked: u64,
    /// How often each rare situation was met.
    seen: BTreeMap<&'static str, u64>,
}

impl Outcome {
    fn and(mut self, other: Outcome) -> Outcome {
        self.checked += other.checked;
        for (what, count) in other.seen {
            *self.seen.entry(what).or_default() += count;
        }
        self
    }
}

/// Lives through one seed.
fn run(seed: u64) -> Result<Outcome, String> {
    let mut world = World::new(seed);
    safety(&mut world);
    if world.checker.violation.is_none() {
        liveness(&mut world);
    }
    if world.checker.violation.is_none() {
        aftermath(&mut world);
    }
    match world.checker.violation.take() {
        None => {
            let Checker { checked, seen, .. } = world.checker;
            Ok(Outcome { hash: world.hash, checked, seen })
        }
        Some(what) => {
            let trace: Vec<String> = world.trace.into_iter().collect();
            let swarm = world.swarm;
            Err(format!(
                "seed {seed}: {what}\n{swarm:?}\n{}\nreplay: REJOIN_SIM_SEED={seed} cargo test --profile sim --test simulator",
                trace.join("\n")
            ))
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

fn sweep(seeds: std::ops::Range<u64>) -> Outcome {
    let threads: Vec<std::thread::JoinHandle<Result<Outcome, String>>> = (0..2)
        .map(|part| {
            let seeds = seeds.clone();
            std::thread::spawn(move || {
                let mut seeds = seeds.filter(|seed| seed % 2 == part);
                seeds.try_fold(Outcome::default(), |all, seed| run(seed).map(|outcome| all.and(outcome)))
            })
        })
        .collect();
    let outcomes =
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap_or_else(|what| panic!("{what}")));
    outcomes.fold(Outcome::default(), Outcome::and)
}

#[test]
fn no_seed_violates_an_invariant() {
    if let Some(seed) = number("REJOIN_SIM_SEED") {
        run(seed).unwrap_or_else(|what| panic!("{what}"));
        return;
    }
    let count = number("REJOIN_SIM_SEEDS").unwrap_or(SEEDS);
    let first = number("REJOIN_SIM_FIRST").unwrap_or(0);
    let Outcome { checked, seen, .. } = sweep(first..first + count);
    println!("{count} seeds, {checked} claims of clients checked, {seen:#?}");
    assert!(checked > count, "the clients saw too little: {checked} claims in {count} seeds");
    let missed: Vec<_> = SITUATIONS.iter().filter(|what| !seen.contains_key(**what)).collect();
    assert!(count < SEEDS || missed.is_empty(), "never met: {missed:?}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for seed in 0..30 {
        assert_eq!(run(seed).unwrap(), run(seed).unwrap(), "seed {seed}");
    }
}
