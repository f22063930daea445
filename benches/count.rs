//! Instructions instead of seconds: does one thing many times, for callgrind (see `benches/count.sh`).
//!
//! `count WHAT TIMES`: `append-16`, `append-200`, `append-1024`, `append-escapes`, `fanout` or `snapshot`.

mod support;

use std::hint::black_box;

use rejoin::proto::id::{RunId, Seq, Ticket};
use rejoin::wire::frame::Form;
use rejoin::wire::snapshot::SnapshotJob;

use support::{Pushed, Text, deltas, text, unjoined};

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let (Some(what), Some(times)) = (args.next(), args.next().and_then(|times| times.parse().ok())) else {
        return;
    };
    match what.as_str() {
        "append-16" => Pushed::new().push(&deltas(times, 16, Text::Ascii)),
        "append-200" => Pushed::new().push(&deltas(times, 200, Text::Ascii)),
        "append-1024" => Pushed::new().push(&deltas(times, 1024, Text::Ascii)),
        "append-escapes" => Pushed::new().push(&deltas(times, 1024, Text::Escapes)),
        "fanout" => fan_out(times),
        "snapshot" => snapshot(times),
        other => panic!("nothing is known to count as {other}"),
    }
}

fn fan_out(times: usize) {
    let mut run = Pushed::new();
    (0..1_000).for_each(|_| run.observe());
    let body = deltas(1, 200, Text::Ascii);
    for _ in 0..times {
        run.push(&body);
        run.settle();
    }
}

/// Captured and made ready for the wire: a run whose 20,000 events can't be joined.
fn snapshot(times: usize) {
    let text = text(&unjoined(20_000));
    for _ in 0..times {
        let (ticket, run, seq) = (Ticket(1), RunId::from_bits(1), Seq(20_000));
        let job = SnapshotJob { ticket, run, seq, events: text.capture(), legacy: false };
        black_box(job.encode().pieces(Form::LOG));
    }
}
