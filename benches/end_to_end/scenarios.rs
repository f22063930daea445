//! The scenarios.

use std::time::{Duration, Instant};

use crate::args::Args;
use crate::crowd::{Crowd, Producer, event};
use crate::peers::{Peer, live};
use crate::process::{Server, status};
use crate::report::{Row, table};
use crate::stats::{Rounds, quantile};
use crate::{idle_cost, reconnect};

/// Bytes of an event's JSON.
const EVENT_BYTES: usize = 200;

/// Observers of the one run.
pub const OBSERVERS: usize = 1_000;

/// Events on the way when a server is saturated, and how many are written at once.
const IN_FLIGHT: u64 = 256;
const AT_ONCE: u64 = 64;

/// Longest wait for a server to deliver.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A server with a crowd and a producer, attached.
pub struct Stage {
    peer: Peer,
    pub server: Server,
    crowd: Crowd,
    producer: Producer,
    sent: u64,
}

impl Stage {
    fn new(peer: Peer, args: &Args, observers: usize) -> Stage {
        Stage::at(peer.start(args), peer, observers)
    }

    /// At a server that runs already.
    pub fn at(server: Server, peer: Peer, observers: usize) -> Stage {
        let mut producer = Producer::new(server.address, &peer.produce("c"));
        let mut crowd = Crowd::new();
        producer.push(&peer, &event(0, EVENT_BYTES));
        producer.flush();
        std::thread::sleep(Duration::from_millis(50));
        crowd.join(server.address, observers, &peer.observe("c"));
        crowd.settle();
        let mut stage = Stage { peer, server, crowd, producer, sent: 0 };
        // Everybody is attached when everybody has an event.
        stage.send(1);
        assert!(stage.crowd.until(1, PATIENCE), "{} delivers nothing", peer.name());
        stage
    }

    fn send(&mut self, count: u64) {
        for _ in 0..count {
            self.sent += 1;
            self.producer.push(&self.peer, &event(self.sent, EVENT_BYTES));
        }
        while !self.producer.flush() {
            self.crowd.pump(Duration::from_millis(1));
        }
        self.producer.answers();
    }
}

/// Deliveries a second with one event on the way.
pub fn token_rate(mut stage: Stage, args: &Args) -> f64 {
    let (begin, first) = (Instant::now(), stage.sent);
    while begin.elapsed() < args.time {
        stage.send(1);
        assert!(stage.crowd.until(stage.sent, PATIENCE), "{} is stuck", stage.peer.name());
    }
    ((stage.sent - first) * OBSERVERS as u64) as f64 / begin.elapsed().as_secs_f64()
}

/// Deliveries a second with as much on the way as the server takes.
fn saturated(peer: Peer, args: &Args) -> f64 {
    let mut stage = Stage::new(peer, args, OBSERVERS);
    let (begin, first) = (Instant::now(), stage.sent);
    while begin.elapsed() < args.time {
        while stage.sent - stage.crowd.least() < IN_FLIGHT {
            stage.send(AT_ONCE);
        }
        stage.crowd.pump(Duration::from_millis(50));
    }
    ((stage.crowd.least() - first) * OBSERVERS as u64) as f64 / begin.elapsed().as_secs_f64()
}

/// Milliseconds from sending an event until the last observer has it; and the server's microseconds of processor an event.
fn paced(peer: Peer, args: &Args, observers: usize, per_second: f64, share: f64) -> (f64, f64) {
    let mut stage = Stage::new(peer, args, observers);
    let (begin, first, cpu) = (Instant::now(), stage.sent, stage.server.cpu());
    let mut sent_at = Vec::new();
    let mut latencies = Vec::new();
    while begin.elapsed() < args.time || (latencies.len() as u64) < stage.sent - first {
        let due = begin + Duration::from_secs_f64(sent_at.len() as f64 / per_second);
        let now = Instant::now();
        if now >= due && begin.elapsed() < args.time {
            sent_at.push(now);
            stage.send(1);
        }
        stage.crowd.pump(due.saturating_duration_since(Instant::now()).min(Duration::from_millis(5)));
        let now = Instant::now();
        while (latencies.len() as u64) < stage.crowd.least().saturating_sub(first) {
            latencies.push((now - sent_at[latencies.len()]).as_secs_f64() * 1e3);
        }
    }
    let used = (stage.server.cpu() - cpu).as_secs_f64() * 1e6 / sent_at.len() as f64;
    (quantile(&mut latencies, share), used)
}

/// Seconds until 1,000 observers that come at once have 10,000 events; and by how many MiB the server grew.
fn attach(peer: Peer, args: &Args) -> (f64, f64) {
    const EVENTS: u64 = 10_000;
    let server = peer.start(args);
    let mut producer = Producer::new(server.address, &peer.produce("c"));
    for number in 1..=EVENTS {
        let mut bytes = Vec::new();
        peer.keep(&event(number, EVENT_BYTES), &mut bytes);
        producer.raw(&bytes);
        while number % 64 == 0 && !producer.flush() {
            producer.answers();
        }
    }
    while !producer.flush() {
        producer.answers();
    }
    // What is written is not yet read.
    std::thread::sleep(Duration::from_secs(1));
    let mut one = Crowd::new();
    one.join(server.address, 1, &peer.with_history("c"));
    assert!(one.until(EVENTS, PATIENCE), "{} has not all events", peer.name());
    drop(one);
    let (before, begin) = (server.memory_bytes(), Instant::now());
    let mut most = before;
    let mut crowd = Crowd::new();
    crowd.join(server.address, OBSERVERS, &peer.with_history("c"));
    let mut looked = Instant::now();
    while crowd.least() < EVENTS && begin.elapsed() < PATIENCE {
        crowd.pump(Duration::from_millis(5));
        if looked.elapsed() > Duration::from_millis(100) {
            most = most.max(server.memory_bytes());
            looked = Instant::now();
        }
    }
    (begin.elapsed().as_secs_f64(), (most.max(server.memory_bytes()) - before) as f64 / f64::from(1 << 20))
}

/// KiB of the server's memory for each of 5,000 idle observers, after 20 events went to all of them.
fn idle(peer: Peer, args: &Args) -> f64 {
    const IDLE: usize = 5_000;
    let mut stage = Stage::new(peer, args, 1);
    let before = stage.server.memory_bytes();
    stage.crowd.join(stage.server.address, IDLE, &peer.observe("c"));
    stage.crowd.settle();
    for _ in 0..20 {
        stage.send(1);
        stage.crowd.until(stage.sent, PATIENCE);
    }
    (stage.server.memory_bytes().saturating_sub(before)) as f64 / 1024.0 / IDLE as f64
}

/// Events a second that 100 producers push; each in a run of its own.
fn push(peer: Peer, args: &Args) -> f64 {
    const PRODUCERS: usize = 100;
    let server = peer.start(args);
    let hello = |number: usize| match peer {
        Peer::Ceiling(_) => b"c".to_vec(),
        _ => peer.produce(&format!("c{number}")),
    };
    let mut producers: Vec<Producer> =
        (0..PRODUCERS).map(|number| Producer::new(server.address, &hello(number))).collect();
    let mut block = Vec::new();
    for number in 0..100 {
        let line = event(number, 76);
        let bare = if let Peer::Ceiling(_) = peer { Peer::Ceiling(0) } else { peer };
        bare.event(&line, &mut block);
    }
    let (begin, mut sent) = (Instant::now(), 0);
    while begin.elapsed() < args.time {
        for producer in &mut producers {
            if producer.flush() {
                producer.raw(&block);
                sent += 100;
            }
        }
    }
    // What was written counts when it was read: the server is idle again.
    while !producers.iter_mut().all(Producer::flush) {
        std::thread::sleep(Duration::from_micros(100));
    }
    let mut used = server.cpu();
    loop {
        std::thread::sleep(Duration::from_millis(3));
        let now = server.cpu();
        if now - used < Duration::from_micros(500) {
            break;
        }
        used = now;
    }
    sent as f64 / begin.elapsed().as_secs_f64()
}

/// Milliseconds from appending to delivery at the 99th percentile: 200 runs of 50 events a second with 5 observers each,
/// while observers attach to a run of 1 MB 20 times a second. And how long the server's loop was away from its poll.
fn many_runs(args: &Args) -> [f64; 3] {
    const RUNS: usize = 200;
    const EACH: usize = 5;
    let server = Peer::Rejoin.start(args);
    let mut crowd = Crowd::new();
    let mut producers: Vec<Producer> = (0..RUNS)
        .map(|run| Producer::new(server.address, &Peer::Rejoin.produce(&format!("r{run}"))))
        .collect();
    let mut large = Producer::new(server.address, &Peer::Rejoin.produce("large"));
    for number in 0..1_000 {
        large.push(&Peer::Rejoin, &event(number, 1_050));
        while !large.flush() {}
    }
    producers.iter_mut().for_each(|producer| {
        producer.push(&Peer::Rejoin, &event(0, EVENT_BYTES));
        producer.flush();
    });
    std::thread::sleep(Duration::from_millis(100));
    for run in 0..RUNS {
        crowd.join(server.address, EACH, &live(&format!("r{run}"), ""));
    }
    crowd.settle();
    let mut late = Crowd::new();
    let (begin, mut number, mut attached) = (Instant::now(), 0_u64, 0);
    let (mut sent_at, mut latencies): (Vec<Instant>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut known = vec![0_u64; RUNS * EACH];
    while begin.elapsed() < args.time {
        // The runs' events are spread over the 20 ms that are between two of one run.
        let due = begin + Duration::from_secs_f64(number as f64 / (50.0 * RUNS as f64));
        if Instant::now() >= due {
            let producer = &mut producers[number as usize % RUNS];
            number += 1;
            producer.push(&Peer::Rejoin, &event(number, EVENT_BYTES));
            producer.flush();
            sent_at.push(Instant::now());
        }
        if begin.elapsed().as_secs_f64() * 20.0 > f64::from(attached) {
            attached += 1;
            late.leave(usize::from(late.len() > 20));
            late.join(server.address, 1, &live("large", ""));
        }
        late.pump(Duration::ZERO);
        crowd.pump(due.saturating_duration_since(Instant::now()).min(Duration::from_millis(1)));
        let now = Instant::now();
        for (known, last) in known.iter_mut().zip(crowd.lasts()) {
            if last > *known {
                latencies.push((now - sent_at[last as usize - 1]).as_secs_f64() * 1e3);
                *known = last;
            }
        }
    }
    let lag = status(&server)["loop_lag_us"]["p99"].as_f64().expect("the loop's lag");
    [quantile(&mut latencies, 0.5), quantile(&mut latencies, 0.99), lag]
}

/// What a scenario is called, and what its figures are.
struct Scenario<'a> {
    name: &'a str,
    units: &'a [&'a str],
}

/// Runs a scenario against the peers in turns, and prints a table for each of its figures.
fn compare<const FIGURES: usize>(
    args: &Args,
    scenario: &Scenario<'_>,
    peers: &[Peer],
    measure: impl Fn(Peer, &Args) -> [f64; FIGURES],
) {
    if !scenario.name.contains(&args.only) {
        return;
    }
    let there: Vec<Peer> = peers.iter().copied().filter(|peer| peer.missing().is_none()).collect();
    let mut measured: Vec<Vec<[f64; FIGURES]>> = vec![Vec::new(); there.len()];
    for _ in 0..args.rounds {
        for (peer, rounds) in there.iter().zip(&mut measured) {
            rounds.push(measure(*peer, args));
        }
    }
    for (figure, unit) in scenario.units.iter().enumerate() {
        let rounds = |of: &Vec<[f64; FIGURES]>| Rounds(of.iter().map(|figures| figures[figure]).collect());
        let rows =
            there.iter().zip(&measured).map(|(peer, of)| Row { server: peer.name(), rounds: rounds(of) });
        table(scenario.name, unit, &rows.collect::<Vec<_>>(), &peers[0].name());
    }
}

/// Everything that was asked for.
pub fn run(args: &Args) {
    let frame = rejoin_frame_bytes(args);
    let (joined, plain) = (Peer::Ceiling(frame), Peer::Ceiling(EVENT_BYTES));
    let all = [joined, Peer::Rejoin, Peer::Redis, Peer::Nchan, Peer::Node];
    for peer in all {
        if let Some(packages) = peer.missing() {
            println!("{} is skipped: it is not installed (apt-get install {packages})", peer.name());
        }
    }
    println!("An event of {EVENT_BYTES} B of JSON is a frame of {frame} B.");
    let scenario = |name, units| Scenario { name, units };
    let one = scenario("1,000 observers, one event in flight", &["deliveries/s"]);
    compare(args, &one, &all, |peer, args| [token_rate(Stage::new(peer, args, OBSERVERS), args)]);
    let many = scenario("1,000 observers, saturated", &["deliveries/s"]);
    let both = [joined, plain, Peer::Rejoin, Peer::Redis, Peer::Nchan, Peer::Node];
    compare(args, &many, &both, |peer, args| [saturated(peer, args)]);
    let calm = scenario("1,000 observers, 25 events/s, whole fan-out", &["p99, ms"]);
    compare(args, &calm, &all, |peer, args| [paced(peer, args, OBSERVERS, 25.0, 0.99).0]);
    let single =
        scenario("one producer, one observer, 1,000 events/s", &["p50, ms", "µs of processor an event"]);
    compare(args, &single, &all, |peer, args| {
        let (latency, used) = paced(peer, args, 1, 1_000.0, 0.5);
        [latency, used]
    });
    let herd = scenario("1,000 observers attach at once to 10,000 events", &["s", "MiB more"]);
    compare(args, &herd, &all, |peer, args| attach(peer, args).into());
    let quiet = scenario("5,000 idle observers", &["KiB each"]);
    compare(args, &quiet, &all, |peer, args| [idle(peer, args)]);
    let pushed = scenario("100 producers push events of 76 B", &["events/s"]);
    compare(args, &pushed, &[joined, Peer::Rejoin], |peer, args| [push(peer, args)]);
    if "200 runs".contains(&args.only) {
        let rounds: Vec<[f64; 3]> = (0..args.rounds).map(|_| many_runs(args)).collect();
        let figure = |at: usize| Rounds(rounds.iter().map(|figures| figures[at]).collect()).median();
        println!(
            "\n**200 runs of 50 events/s with 5 observers each, 20 attaches/s of 1 MB**: append to delivery p50 {:.2} ms, p99 {:.2} ms; between two polls p99 {:.0} µs",
            figure(0),
            figure(1),
            figure(2)
        );
    }
    if "beside idle".contains(&args.only) {
        idle_cost::compare(args);
    }
    if "reconnect".contains(&args.only) {
        reconnect::all(args);
    }
}

/// Bytes that one event takes on the wire.
fn rejoin_frame_bytes(args: &Args) -> usize {
    let mut stage = Stage::new(Peer::Rejoin, args, 1);
    let before = stage.crowd.bytes();
    stage.send(10);
    assert!(stage.crowd.until(stage.sent, PATIENCE));
    stage.crowd.settle();
    ((stage.crowd.bytes() - before) / 10) as usize
}
