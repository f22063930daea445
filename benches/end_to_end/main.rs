//! End to end: real servers, real sockets, one core for the server and one for the load.
//!
//! `benches/run.sh` builds and pins everything and prints the table. Each scenario is run against every server in turns, so
//! that what the machine does meanwhile hits all of them; figures are medians of the rounds.
//!
//! The *ceiling* is a bare epoll loop without HTTP or JSON that writes each observer what it lacks: what is left to gain.
#![allow(missing_docs, unreachable_pub, reason = "a program is its own only reader")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a failing benchmark should stop"
)]
#![allow(clippy::disallowed_methods, reason = "a program that measures time")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints what it measured")]
#![allow(clippy::cast_possible_truncation, reason = "numbers of a benchmark fit")]

mod args;
mod ceiling;
mod crowd;
mod idle_cost;
mod peers;
mod process;
mod reconnect;
mod report;
mod scenarios;
mod stats;

use args::Args;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.first().is_some_and(|word| word == "ceiling") {
        ceiling::serve();
        return;
    }
    match Args::parse(&words) {
        Ok(args) => scenarios::run(&args),
        Err(message) => {
            eprintln!("end_to_end: {message}");
            std::process::exit(2);
        }
    }
}
