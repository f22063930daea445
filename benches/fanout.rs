//! The cost of a delivery: 1,000 observers of one run, through the engine, without sockets.

mod support;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

use support::{Pushed, Text, deltas};

const OBSERVERS: u32 = 1_000;
/// Events of one iteration; a fresh run for each, so that no limit on a run's size ends it unseen.
const EVENTS: usize = 128;

fn watched() -> Pushed {
    let mut run = Pushed::new();
    (0..OBSERVERS).for_each(|_| run.observe());
    run
}

fn fanout(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("1,000 observers, 128 events");
    group.sample_size(20).throughput(Throughput::Elements(u64::from(OBSERVERS) * EVENTS as u64));
    for (name, at_once) in [("one at a time", 1), ("64 at a time", 64)] {
        let body = deltas(at_once, 200, Text::Ascii);
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(
                watched,
                |run| {
                    for _ in 0..EVENTS / at_once {
                        run.push(black_box(&body));
                        assert!(run.settle() > OBSERVERS as usize * at_once * 200, "everyone got the events");
                    }
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, fanout);
criterion_main!(benches);
