//! The event bus.

use serde_json::Value;

use super::case;
use crate::conformance::peer::Peer;
use crate::conformance::stream::Stream;
use crate::conformance::{Case, Stop, Tested, ensure};

pub(super) const CASES: &[Case] = &[
    case("bus.snapshot-first", "the first message has the runs that are not over", snapshot),
    case(
        "bus.started-and-ended",
        "`stream_started`, then `stream_ended` with `persisted` and `superseded`",
        started_and_ended,
    ),
    case(
        "bus.replacement-order",
        "the old run's `stream_ended` comes before the new one's `stream_started`",
        replacement,
    ),
    case(
        "bus.chunks",
        "with `chunks=1` each event comes with its seq, byte for byte, between the two",
        chunks,
    ),
];

/// The next message about this chat: others may be busy.
fn next(bus: &mut Stream, chat: &str) -> Result<Value, Stop> {
    loop {
        let message = bus.json()?;
        let message = message.ok_or_else(|| Stop::Failed("the event bus ended".to_owned()))?;
        if message["chat_id"] == chat {
            return Ok(message);
        }
    }
}

/// Subscribes; the first message.
fn subscribe(peer: &Peer<'_>, query: &str) -> Result<(Stream, Value), Stop> {
    let mut bus = peer.stream(&format!("GET /events/stream{query}"))?;
    let first = bus.json()?.unwrap_or_default();
    ensure!(first["event"] == "snapshot" && first["streams"].is_array(), "the first message is {first}");
    Ok((bus, first))
}

fn is(message: &Value, event: &str, run: &str) -> Tested {
    let so = message["event"] == event && message["run_id"] == run;
    ensure!(so, "expected {event} of run {run}, got {message}");
    Ok(())
}

fn snapshot(peer: &Peer<'_>) -> Tested {
    let (active, over) = (peer.run_of(1)?, peer.saved_run_of(1)?);
    let (_bus, first) = subscribe(peer, "")?;
    let streams = first["streams"].as_array().cloned().unwrap_or_default();
    let listed = |id: &str| streams.iter().find(|stream| stream["run_id"] == id);
    let Some(stream) = listed(&active.id) else {
        return Err(Stop::Failed("an active run is not in the snapshot".to_owned()));
    };
    let so = stream["chat_id"] == active.chat.as_str()
        && stream["trigger"] == "user"
        && stream["state"] == "active";
    ensure!(so, "an active run is listed as {stream}");
    ensure!(listed(&over.id).is_none(), "a run that is over is in the snapshot");
    Ok(())
}

fn started_and_ended(peer: &Peer<'_>) -> Tested {
    let (mut bus, _) = subscribe(peer, "")?;
    let run = peer.start_in(&peer.chat(), r#"{"trigger":"schedule"}"#)?;
    peer.append_numbers(&run, 1, 1)?;
    peer.finish(&run)?;
    let started = next(&mut bus, &run.chat)?;
    is(&started, "stream_started", &run.id)?;
    ensure!(started["trigger"] == "schedule", "the trigger is missing: {started}");
    let ended = next(&mut bus, &run.chat)?;
    is(&ended, "stream_ended", &run.id)?;
    ensure!(ended["persisted"] == true && ended["superseded"] == false, "it ended with {ended}");
    Ok(())
}

fn replacement(peer: &Peer<'_>) -> Tested {
    let (mut bus, _) = subscribe(peer, "")?;
    let old = peer.run_of(1)?;
    let new = peer.start_in(&old.chat, r#"{"supersede":true}"#)?;
    is(&next(&mut bus, &old.chat)?, "stream_started", &old.id)?;
    let ended = next(&mut bus, &old.chat)?;
    is(&ended, "stream_ended", &old.id)?;
    ensure!(
        ended["superseded"] == true && ended["persisted"] == false,
        "the replaced run ended with {ended}"
    );
    is(&next(&mut bus, &old.chat)?, "stream_started", &new.id)
}

fn chunks(peer: &Peer<'_>) -> Tested {
    let (mut bus, _) = subscribe(peer, "?chunks=1")?;
    let run = peer.run_of(3)?;
    peer.finish(&run)?;
    is(&next(&mut bus, &run.chat)?, "stream_started", &run.id)?;
    for seq in 1..=3 {
        let chunk = next(&mut bus, &run.chat)?;
        is(&chunk, "chunk", &run.id)?;
        ensure!(chunk["seq"] == seq && chunk["data"]["value"] == seq, "event {seq} came as {chunk}");
    }
    is(&next(&mut bus, &run.chat)?, "stream_ended", &run.id)
}
