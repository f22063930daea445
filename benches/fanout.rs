//! The cost of a delivery: 1,000 observers of one run, through the engine, without sockets.

mod support;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

use support::{Pushed, Text, deltas};

const OBSERVERS: u32 = 1_000;

fn fanout(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("1,000 observers");
    for (name, events) in [("one event at a time", 1), ("64 events at a time", 64)] {
        let mut run = Pushed::new();
        (0..OBSERVERS).for_each(|_| run.observe());
        let body = deltas(events, 200, Text::Ascii);
        group.throughput(Throughput::Elements(u64::from(OBSERVERS) * events as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                run.push(black_box(&body));
                run.settle()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, fanout);
criterion_main!(benches);
