//! The handoff from snapshot to live events, under load.

use std::time::Duration;

use super::case;
use crate::conformance::peer::{NDJSON, Peer, Run, numbers};
use crate::conformance::stream::Told;
use crate::conformance::{Case, Stop, Tested, ensure};

pub(super) const CASES: &[Case] = &[
    case(
        "handoff.under-load",
        "who attaches while events come fast gets each once: SNAPSHOT, then what follows it",
        under_load,
    ),
    case(
        "handoff.cursors-under-load",
        "who comes back with a cursor while events come fast gets each later one once",
        cursors,
    ),
    case("handoff.herd", "many who attach at the same time all get the same", herd),
    case(
        "handoff.join-is-exact",
        "a snapshot and the later events reduce to the whole run's text",
        joined_text,
    ),
];

/// Bodies that the producer sends one after another.
const BODIES: u64 = 60;

/// Events of a body.
const EVENTS: u64 = 20;

/// Writes a run while observers attach to it, each after a pause of its own; what each was told.
fn attach_meanwhile(
    peer: &Peer<'_>,
    run: &Run,
    observers: u64,
    attach: impl Fn(u64) -> Result<(u64, Told), Stop> + Sync,
) -> Result<Vec<(u64, Told)>, Stop> {
    std::thread::scope(|scope| {
        let attach = &attach;
        let threads: Vec<_> = (0..observers)
            .map(|number| {
                scope.spawn(move || {
                    // Spread over the time that writing takes.
                    std::thread::sleep(Duration::from_micros(number * 1_700));
                    attach(number)
                })
            })
            .collect();
        let written = write(peer, run);
        let told = threads.into_iter().map(|thread| match thread.join() {
            Ok(told) => told,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let told: Result<Vec<_>, Stop> = told.collect();
        written.and(told)
    })
}

fn write(peer: &Peer<'_>, run: &Run) -> Tested {
    let mut body = peer.upload(&run.line("POST", "events", ""), NDJSON)?;
    for number in 0..BODIES {
        body.chunk(numbers(number * EVENTS + 1, EVENTS).as_bytes())?;
        std::thread::sleep(Duration::from_millis(1));
    }
    crate::conformance::peer::Reply::read(body.finish()?)?.is(200, "a body in pieces")?;
    // Who attaches to a saved run gets 204: the end has to wait for the last.
    std::thread::sleep(Duration::from_millis(150));
    peer.finish(run).map(|_| ())
}

fn under_load(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    let told = attach_meanwhile(peer, &run, 40, |_| {
        let mut stream = peer.live(&run.chat, "")?;
        if stream.answer.status == 204 {
            return Ok((0, Told::default()));
        }
        Ok((0, stream.follow(0)?))
    })?;
    let whole: Vec<&Told> = told.iter().map(|(_, told)| told).filter(|told| told.end.is_some()).collect();
    ensure!(!whole.is_empty(), "everybody got 204 although the run went on");
    for told in whole {
        ensure!(told.snapshots > 0, "there was no snapshot for who has no cursor");
        told.has(1, BODIES * EVENTS)?;
    }
    Ok(())
}

fn cursors(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    let told = attach_meanwhile(peer, &run, 40, |number| {
        // Some are beyond the head for now, and get a snapshot.
        let after = number * 7;
        Ok((after, peer.live(&run.chat, &run.cursor(after))?.follow(after)?))
    })?;
    for (after, told) in told {
        let from = if told.snapshots > 0 { 1 } else { after + 1 };
        told.has(from, BODIES * EVENTS)?;
    }
    Ok(())
}

fn herd(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(2_000)?;
    let told = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..50)
            .map(|_| {
                let run = &run;
                scope.spawn(move || peer.live(&run.chat, "")?.events_to(2_000))
            })
            .collect();
        let told = threads.into_iter().map(|thread| match thread.join() {
            Ok(told) => told,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        told.collect::<Result<Vec<_>, Stop>>()
    })?;
    for events in told {
        ensure!(events.len() == 2_000, "somebody got {} events of 2,000", events.len());
    }
    Ok(())
}

/// Text, not numbers: what is joined in the snapshot and what comes behind it meet inside a message.
fn joined_text(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    let words: Vec<String> = (0..200).map(|word| format!("{word} ")).collect();
    peer.append(&run, &[r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#])?;
    let mut streams = Vec::new();
    for (number, word) in words.iter().enumerate() {
        if number % 20 == 10 {
            streams.push(peer.live(&run.chat, "")?);
        }
        let delta = format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"{word}"}}"#);
        peer.append(&run, &[&delta])?;
    }
    for mut stream in streams {
        let (mut seq, events) = stream.snapshot()?;
        let mut text: String = events.iter().map(|event| delta(event)).collect::<Result<_, _>>()?;
        while seq < 201 {
            text += &delta(&stream.event()?)?;
            seq += 1;
        }
        ensure!(text == words.concat(), "the text came out as {text:?}");
    }
    Ok(())
}

fn delta(event: &str) -> Result<String, Stop> {
    let event: serde_json::Value =
        serde_json::from_str(event).map_err(|_| Stop::Failed(format!("an event is not JSON: {event}")))?;
    Ok(event["delta"].as_str().unwrap_or_default().to_owned())
}
