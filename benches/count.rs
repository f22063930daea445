//! Instructions instead of seconds: does one thing many times, for callgrind (see `benches/count.sh`).
//!
//! `count WHAT TIMES`: `append-16`, `append-200`, `append-1024`, `fanout` or `nothing`, so that the set-up can be taken off.

mod support;

use support::{Pushed, Text, deltas};

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let (Some(what), Some(times)) = (args.next(), args.next().and_then(|times| times.parse().ok())) else {
        return;
    };
    let mut run = Pushed::new();
    match what.strip_prefix("append-").and_then(|bytes| bytes.parse().ok()) {
        Some(bytes) => run.push(&deltas(times, bytes, Text::Ascii)),
        None if what == "fanout" => {
            (0..1_000).for_each(|_| run.observe());
            let body = deltas(1, 200, Text::Ascii);
            for _ in 0..times {
                run.push(&body);
                run.settle();
            }
        }
        None => {}
    }
}
