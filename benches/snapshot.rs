//! The cost of a snapshot: capturing it on the reactor, and making it ready for the wire on a worker.

mod support;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

use rejoin::proto::id::{RunId, Seq, Ticket};
use rejoin::wire::frame::Form;
use rejoin::wire::snapshot::SnapshotJob;

use support::{Pushed, Text, deltas, text, unjoined};

fn snapshots(criterion: &mut Criterion) {
    let runs = [
        ("10,000 x 1 KiB joined", deltas(10_000, 1024, Text::Ascii)),
        ("200,000 x 16 B joined", deltas(200_000, 16, Text::Ascii)),
        ("20,000 events unjoined", unjoined(20_000)),
        ("256 MiB in events of 1 KiB joined", deltas(256 << 10, 1024, Text::Ascii)),
    ];
    for (name, body) in runs {
        let text = text(&body);
        let mut group = criterion.benchmark_group(format!("snapshot of {name}"));
        group.bench_function("capture", |bencher| bencher.iter(|| black_box(&text).capture()));
        let job = SnapshotJob {
            ticket: Ticket(1),
            run: RunId::from_bits(1),
            seq: Seq(10_000),
            events: text.capture(),
            legacy: false,
        };
        group.bench_function("ready for the wire", |bencher| {
            bencher.iter(|| black_box(&job).encode().pieces(Form::LOG));
        });
        let plain = text.capture().to_vec();
        let mut copy = vec![0_u8; plain.len()];
        group.bench_function("memcpy of the same bytes", |bencher| {
            bencher.iter(|| copy.copy_from_slice(black_box(&plain)));
        });
        group.finish();
    }
}

/// The whole step in which an observer attaches to that run: request, admission, capture, cursor.
fn attach(criterion: &mut Criterion) {
    let body = deltas(10_000, 1024, Text::Ascii);
    // A fresh run for each, so that every attach captures anew and no limit on a run's size ends it unseen.
    let run = || {
        let mut run = Pushed::new();
        run.push(&body);
        run
    };
    let mut group = criterion.benchmark_group("attach to 10,000 x 1 KiB");
    group.sample_size(20);
    group.bench_function("nothing cached", |bencher| {
        bencher.iter_batched_ref(run, Pushed::observe, BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, snapshots, attach);
criterion_main!(benches);
