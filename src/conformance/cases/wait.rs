//! Waiting for a run.

use std::time::Duration;

use super::case;
use crate::conformance::peer::{NDJSON, Peer, numbers};
use crate::conformance::{Case, Stop, Tested, ensure, now};

pub(super) const CASES: &[Case] = &[
    case(
        "wait.204-when-time-is-up",
        "no run comes within `wait_ms`: 204, neither sooner nor much later",
        time_is_up,
    ),
    case("wait.attached-at-0", "who waits is attached when the run is registered, at seq 0", attached),
    case("wait.all-attached", "all who wait are attached, POST and GET alike", all_attached),
    case(
        "wait.saved-run-counts-as-none",
        "a run that ended and was saved counts as none: the wait is for the next",
        after_saved,
    ),
    case("wait.cursor-does-not-wait", "with a run to show nobody waits", no_wait),
    case(
        "wait.ends-with-its-client",
        "a wait ends when its client goes away (seen in `GET /status`)",
        client_leaves,
    ),
];

const WAIT: &str = ",\"wait_ms\":15000";

fn time_is_up(peer: &Peer<'_>) -> Tested {
    let (begin, wait) = (now(), Duration::from_millis(700));
    peer.live(&peer.chat(), ",\"wait_ms\":700")?.answers(204, "a wait of 700 ms")?;
    let took = begin.elapsed();
    ensure!(took >= wait, "wait_ms was 700, and the answer came after {} ms", took.as_millis());
    ensure!(took < wait + Duration::from_secs(8), "wait_ms was 700, the answer took {} ms", took.as_millis());
    Ok(())
}

fn attached(peer: &Peer<'_>) -> Tested {
    peer.with_pauses(|pause| {
        let chat = peer.chat();
        let mut told = beside(peer, pause, |peer| peer.live(&chat, WAIT), |peer| write(peer, &chat))?;
        told.gets("S0 E1 E2 E3 X3p -", "a request that waited when the run was registered")
    })
}

fn all_attached(peer: &Peer<'_>) -> Tested {
    peer.with_pauses(|pause| {
        let chat = peer.chat();
        let wait = |peer: &Peer<'_>, number: usize| match number % 2 {
            0 => peer.live(&chat, WAIT),
            _ => peer.live_get(&format!("chat_id={chat}&wait_ms=15000"), None),
        };
        let streams = std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..6).map(|number| scope.spawn(move || wait(peer, number))).collect();
            std::thread::sleep(pause);
            let written = write(peer, &chat);
            let streams: Vec<_> = waiting.into_iter().map(|thread| joined(thread.join())).collect();
            written.map(|()| streams)
        })?;
        for stream in streams {
            stream?.gets("S0 E1 E2 E3 X3p -", "one of six requests that waited")?;
        }
        Ok(())
    })
}

fn after_saved(peer: &Peer<'_>) -> Tested {
    peer.with_pauses(|pause| {
        let run = peer.saved_run_of(2)?;
        let mut told = beside(peer, pause, |peer| peer.live(&run.chat, WAIT), |peer| write(peer, &run.chat))?;
        told.gets("S0 E1 E2 E3 X3p -", "a request that waited behind a saved run")
    })?;
    let run = peer.saved_run_of(1)?;
    peer.live(&run.chat, ",\"wait_ms\":200")?.answers(204, "a wait behind a saved run")
}

fn no_wait(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(2)?;
    peer.live(&run.chat, WAIT)?.gets("S2", "an active run, with wait_ms")?;
    peer.live(&run.chat, &(run.cursor(1) + WAIT))?.gets("E2", "a cursor, with wait_ms")?;
    peer.finish(&run)?;
    peer.live(&run.chat, &(run.cursor(1) + WAIT))?.gets("E2 X2p -", "a cursor of an ended run, with wait_ms")
}

fn client_leaves(peer: &Peer<'_>) -> Tested {
    let waiting = || {
        let status = peer.status()?;
        status["waiting"]
            .as_u64()
            .ok_or_else(|| Stop::Skipped("GET /status does not say who waits".to_owned()))
    };
    let before = waiting()?;
    let chat = peer.chat();
    // A body in chunks, since the socket stays in hand: what was sent whole is only there again with its answer.
    let mut requests = Vec::new();
    for _ in 0..5 {
        let mut request = peer.upload("POST /chat/live", "application/json")?;
        request.chunk(format!("{{\"chat_id\":\"{chat}\",\"protocol\":1{WAIT}}}").as_bytes())?;
        request.last_chunk()?;
        requests.push(request);
    }
    peer.until("five requests wait", || Ok(waiting()? >= before + 5))?;
    drop(requests);
    peer.until("their waits ended with their connections", || Ok(waiting()? <= before))
}

/// A run of three events, begun and ended in one request.
fn write(peer: &Peer<'_>, chat: &str) -> Tested {
    let line = format!("POST /chats/{chat}/runs?stream=1");
    peer.send(&line, NDJSON, numbers(1, 3).as_bytes())?.is(200, "a run in one request")
}

/// Begins `first`, whose answer is waited for, and after the pause does `second`.
fn beside<T: Send>(
    peer: &Peer<'_>,
    pause: Duration,
    first: impl FnOnce(&Peer<'_>) -> Result<T, Stop> + Send,
    second: impl FnOnce(&Peer<'_>) -> Tested,
) -> Result<T, Stop> {
    std::thread::scope(|scope| {
        let first = scope.spawn(|| first(peer));
        std::thread::sleep(pause);
        let done = second(peer);
        let first = joined(first.join());
        done.and(first)
    })
}

/// What a thread came to; its panic goes on here.
fn joined<T>(result: std::thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
