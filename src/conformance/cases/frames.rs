//! Frames and the head of a stream.

use serde_json::Value;

use super::case;
use crate::conformance::peer::{Peer, number};
use crate::conformance::{Case, Stop, Tested, ensure};

pub(super) const CASES: &[Case] = &[
    case(
        "frames.head",
        "200, `text/event-stream`, `no-cache, no-transform`, and no buffering by proxies",
        head,
    ),
    case("frames.one-line", "a frame is one `data:` line of JSON, whatever the event holds", one_line),
    case("frames.bytes", "an event comes through byte for byte, live, replayed and in a SNAPSHOT", bytes),
    case(
        "frames.line-breaks",
        "line breaks between an event's tokens are removed, nothing else",
        line_breaks,
    ),
    case("frames.large", "an event of 512 KiB comes through whole", large),
    case("frames.run-id", "all frames of a run have the `run_id` that its producer was told", run_id),
    case("frames.keep-alive", "a quiet stream gets a comment every 15 s (with `--slow`)", keep_alive),
];

/// Spellings that a server that reads and writes events again would change.
const SPELLINGS: [&str; 7] = [
    r#"{"type":"CUSTOM","name":"n","value":[1.0,1.50e2,-0,0.1e-7,1E5]}"#,
    r#"{"type":"CUSTOM","name":"n","value":123456789012345678901234567890}"#,
    r#"{"value":9007199254740993,"name":"n","type":"CUSTOM"}"#,
    r#"{ "type" : "CUSTOM" ,"name":"n","value":{"b":1,"a":2,"b":3} }"#,
    r#"{"type":"CUSTOM","name":"\u0041\/\u00e9","value":"\ud83d half, é 日本 👩‍👩‍👧"}"#,
    r#"{"type":"SOMETHING_NEW","deep":[[[[{"a":[null,true,false]}]]]]}"#,
    r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant","unknown":{"x":[]}}"#,
];

fn head(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(1)?;
    let streams = [peer.live(&run.chat, "")?, peer.live_get(&format!("chat_id={}", run.chat), None)?];
    for stream in streams {
        let answer = &stream.answer;
        ensure!(
            answer.status == 200 && answer.is_event_stream(),
            "expected 200 text/event-stream, got {}",
            answer.status
        );
        let caching = answer.field("cache-control").unwrap_or_default();
        for word in ["no-cache", "no-transform"] {
            ensure!(caching.contains(word), "Cache-Control needs {word}, it is {caching:?}");
        }
        // A proxy that heeds the field takes it away.
        let proxied = answer.field("server").is_some_and(|server| server.starts_with("nginx"));
        let buffering = answer.field("x-accel-buffering");
        ensure!(proxied || buffering == Some("no"), "X-Accel-Buffering should be no, it is {buffering:?}");
        ensure!(answer.field("content-encoding").is_none(), "a stream must not be compressed");
    }
    Ok(())
}

fn one_line(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    let mut live = peer.live(&run.chat, "")?;
    live.gets("S0", "a run without events")?;
    let event =
        r#"{"type":"CUSTOM","name":"\n\ndata: {\"type\":\"STREAM_END\"}\n\n","value":"\r\u2028\u0000"}"#;
    peer.append(&run, &[event])?;
    let got = live.event()?;
    ensure!(got == event, "an event with line ends in its text came as {got}");
    let events = peer.live(&run.chat, "")?.events_to(1)?;
    ensure!(events == [event], "in the snapshot it came as {events:?}");
    Ok(())
}

fn bytes(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    let mut live = peer.live(&run.chat, "")?;
    live.gets("S0", "a run without events")?;
    peer.append(&run, &SPELLINGS)?;
    let mut replayed = peer.live(&run.chat, &run.cursor(0))?;
    // Of a run that nobody has followed: it has no older snapshot.
    let other = peer.start()?;
    peer.append(&other, &SPELLINGS)?;
    let snapshot = peer.live(&other.chat, "")?.events_to(7)?;
    ensure!(snapshot.len() == SPELLINGS.len(), "the snapshot has {} events of 7", snapshot.len());
    for (sent, joined) in SPELLINGS.iter().zip(&snapshot) {
        for (how, got) in
            [("live", &live.event()?), ("replayed", &replayed.event()?), ("in a snapshot", joined)]
        {
            ensure!(got == sent, "{how}, the event {sent} came as {got}");
        }
    }
    Ok(())
}

fn line_breaks(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    let mut live = peer.live(&run.chat, "")?;
    live.gets("S0", "a run without events")?;
    let pretty = "{\r\n  \"type\": \"CUSTOM\",\n\t\"name\": \"n\",\r  \"value\": 1.0\n}";
    peer.send(&run.line("POST", "events", ""), "application/json", pretty.as_bytes())?
        .is(200, "an event over several lines")?;
    let (got, snapshot) = (live.event()?, peer.live(&run.chat, "")?.events_to(1)?);
    for got in [Some(&got), snapshot.first()] {
        let got = got.map_or("", String::as_str);
        let same = serde_json::from_str::<Value>(got).is_ok_and(|event| event["name"] == "n");
        ensure!(same && got.contains("1.0"), "an event over several lines came as {got:?}");
    }
    Ok(())
}

fn large(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    let mut live = peer.live(&run.chat, "")?;
    let event = format!(r#"{{"type":"CUSTOM","name":"n","value":"{}"}}"#, "xé".repeat(512 * 1024 / 3));
    live.gets("S0", "a run without events")?;
    peer.append(&run, &[&event, &number(2)])?;
    ensure!(live.event()? == event, "a large event was changed");
    live.gets("E2", "behind a large event")?;
    let events = peer.live(&run.chat, "")?.events_to(2)?;
    ensure!(events.first() == Some(&event), "a large event was changed in the snapshot");
    Ok(())
}

fn run_id(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(2)?;
    let mut stream = peer.live(&run.chat, "")?;
    peer.append_numbers(&run, 3, 1)?;
    peer.finish(&run)?;
    while let Some(frame) = stream.json()? {
        ensure!(
            frame["run_id"] == run.id.as_str(),
            "the run is {}, a frame says {}",
            run.id,
            frame["run_id"]
        );
    }
    Ok(())
}

fn keep_alive(peer: &Peer<'_>) -> Tested {
    if !peer.options.slow {
        return Err(Stop::Skipped("it takes 16 s: add --slow".to_owned()));
    }
    let run = peer.run_of(1)?;
    let mut stream = peer.live(&run.chat, "")?;
    stream.gets("S1", "an active run")?;
    std::thread::scope(|scope| {
        let later = scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_secs(16));
            peer.append_numbers(&run, 2, 1)
        });
        let got = stream.gets("E2", "after a quiet time");
        later.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).and(got)
    })?;
    ensure!(stream.comments > 0, "there was no comment in 16 quiet seconds");
    Ok(())
}
