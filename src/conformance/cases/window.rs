//! The edges of the replay window.

use super::case;
use crate::conformance::peer::{Peer, Run};
use crate::conformance::{Case, Stop, Tested, ensure};

pub(super) const CASES: &[Case] = &[
    case(
        "window.oldest",
        "a cursor right before the oldest event in the window: all events of the window, no SNAPSHOT",
        oldest,
    ),
    case("window.one-older", "a cursor one event older: SNAPSHOT, then live", one_older),
    case("window.far-older", "a cursor at 0 of a long run: SNAPSHOT with all events, then live", far_older),
    case("window.ended", "the same edges when the run has ended: events or SNAPSHOT, then END", ended),
];

/// Events beyond the window.
const BEYOND: u64 = 7;

/// A run that is a few events longer than the window.
fn long_run(peer: &Peer<'_>) -> Result<Run, Stop> {
    peer.run_of(peer.options.window_events + BEYOND)
}

/// The cursor gets this many events, without a snapshot, up to the end of the run.
fn replays(peer: &Peer<'_>, run: &Run, after: u64) -> Tested {
    let told = peer.live(&run.chat, &run.cursor(after))?.follow(after)?;
    ensure!(told.snapshots == 0, "a cursor at {after}, in the window, got a snapshot");
    told.has(after + 1, peer.options.window_events + BEYOND)
}

fn oldest(peer: &Peer<'_>) -> Tested {
    let run = long_run(peer)?;
    let first = format!("E{}", BEYOND + 1);
    peer.live(&run.chat, &run.cursor(BEYOND))?.gets(&first, "a cursor at the edge of the window")?;
    peer.finish(&run)?;
    replays(peer, &run, BEYOND)
}

fn one_older(peer: &Peer<'_>) -> Tested {
    let run = long_run(peer)?;
    let head = peer.options.window_events + BEYOND;
    let mut stream = peer.live(&run.chat, &run.cursor(BEYOND - 1))?;
    stream.gets(&format!("S{head}"), "a cursor one older than the window")?;
    peer.append_numbers(&run, head + 1, 1)?;
    stream.gets(&format!("E{}", head + 1), "then live")
}

fn far_older(peer: &Peer<'_>) -> Tested {
    let run = long_run(peer)?;
    let head = peer.options.window_events + BEYOND;
    let mut stream = peer.live(&run.chat, &run.cursor(0))?;
    peer.append_numbers(&run, head + 1, 3)?;
    peer.finish(&run)?;
    let told = stream.follow(0)?;
    ensure!(told.snapshots > 0, "event {} was kept beyond the window of {}", 1, peer.options.window_events);
    told.has(1, head + 3)
}

fn ended(peer: &Peer<'_>) -> Tested {
    let run = long_run(peer)?;
    peer.finish(&run)?;
    replays(peer, &run, BEYOND)?;
    let head = peer.options.window_events + BEYOND;
    let mut stream = peer.live(&run.chat, &run.cursor(BEYOND - 1))?;
    stream.gets(&format!("S{head} X{head}p -"), "a cursor one older than the window, ended")?;
    peer.live(&run.chat, &run.cursor(head))?.gets(&format!("X{head}p -"), "a cursor at the head, ended")
}
