//! The cost of an event: from the bytes of a request body to the frame in the log, the index, and the compacted text.

mod support;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::value::RawValue;

use support::{Pushed, Text, deltas};

/// Tokens of three sizes, in a run that goes on.
fn per_token(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("token");
    for (name, bytes) in [("16 B", 16), ("200 B", 200), ("1 KiB", 1024)] {
        let body = deltas(1_000, bytes, Text::Ascii);
        group.throughput(Throughput::Elements(1_000));
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(Pushed::new, |run| run.push(black_box(&body)), BatchSize::SmallInput);
        });
    }
    group.finish();
}

/// 10,000 events of 1 KiB into one run, beside what any implementation would have to do at least.
fn whole_run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("10,000 x 1 KiB");
    group.sample_size(30).measurement_time(Duration::from_secs(5));
    for (name, text) in [("ASCII", Text::Ascii), ("Chinese", Text::Chinese), ("escapes", Text::Escapes)] {
        let body = deltas(10_000, 1024, text);
        group.bench_function(format!("append {name}"), |bencher| {
            bencher.iter_batched_ref(Pushed::new, |run| run.push(black_box(&body)), BatchSize::PerIteration);
        });
    }
    let body = deltas(10_000, 1024, Text::Ascii);
    group.bench_function("append ASCII, the block pool empty", |bencher| {
        bencher.iter_batched_ref(without_pool, |run| run.push(black_box(&body)), BatchSize::PerIteration);
    });
    let mut copy = vec![0_u8; body.len()];
    group.bench_function("memcpy of the same bytes", |bencher| {
        bencher.iter(|| copy.copy_from_slice(black_box(&body)));
    });
    group.bench_function("serde_json, borrowed, of the same bytes", |bencher| {
        bencher.iter(|| {
            body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).for_each(|line| {
                black_box(serde_json::from_slice::<Borrowed<'_>>(black_box(line)).expect("an event"));
            });
        });
    });
    group.finish();
}

/// An engine in which other runs hold all blocks that were there at the start, so that each further one is fresh memory.
fn without_pool() -> Pushed {
    let mut run = Pushed::new();
    run.hold_pool();
    run
}

/// The least that a reader with serde_json has to look at.
#[derive(serde::Deserialize)]
struct Borrowed<'a> {
    #[serde(rename = "type", borrow)]
    _kind: std::borrow::Cow<'a, str>,
    #[serde(rename = "messageId", borrow)]
    _id: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    _delta: Option<&'a RawValue>,
}

criterion_group!(benches, per_token, whole_run);
criterion_main!(benches);
