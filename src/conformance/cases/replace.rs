//! A newer run takes the place of the old.

use super::case;
use crate::conformance::peer::{NDJSON, Peer, number};
use crate::conformance::{Case, Tested, ensure};

pub(super) const CASES: &[Case] = &[
    case(
        "replace.conflict",
        "a second run of the chat is 409 `already_streaming` while one is active",
        conflict,
    ),
    case(
        "replace.superseded",
        "`supersede`: the old run's observers get END with `superseded` true, `persisted` false",
        superseded,
    ),
    case("replace.old-cursor", "a cursor of the replaced run gets a SNAPSHOT of the new one", old_cursor),
    case(
        "replace.old-run-takes-no-more",
        "the replaced run takes no more events: 409 `run_over`",
        takes_no_more,
    ),
    case(
        "replace.producer-is-told",
        "the replaced run's producer is told on its control stream",
        producer_is_told,
    ),
    case(
        "replace.partial-answer-is-saved",
        "the partial answer of the replaced run is in the history, the new run is saved after it",
        partial_answer,
    ),
    case("replace.heartbeat-does-not", "a heartbeat takes no run's place", heartbeat),
    case("replace.stream", "`stream=1&supersede=1` takes the place of a run, too", stream),
];

const SUPERSEDE: &str = r#"{"supersede":true}"#;

fn conflict(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(1)?;
    let line = format!("POST /chats/{}/runs", run.chat);
    peer.ask(&line, "{}")?.refuses(409, "already_streaming", "a second run")?;
    peer.append_numbers(&run, 2, 1)?;
    peer.finish(&run)?;
    peer.ask(&line, "{}")?.is(201, "a run after the first has ended")
}

fn superseded(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(3)?;
    let mut streams = [peer.live(&run.chat, "")?, peer.live(&run.chat, &run.cursor(3))?];
    streams[0].gets("S3", "an active run")?;
    let new = peer.start_in(&run.chat, SUPERSEDE)?;
    ensure!(new.id != run.id, "the new run has the id of the old");
    for stream in &mut streams {
        stream.gets("X3s -", "an observer of the replaced run")?;
    }
    peer.append_numbers(&new, 1, 1)?;
    peer.live(&run.chat, "")?.gets("S1", "who attaches to the new run")?;
    peer.finish(&new).map(|_| ())
}

fn old_cursor(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(3)?;
    let new = peer.start_in(&run.chat, SUPERSEDE)?;
    peer.append_numbers(&new, 1, 5)?;
    for after in [0, 2, 3] {
        let mut stream = peer.live(&run.chat, &run.cursor(after))?;
        stream.gets("S5", &format!("a cursor at {after} of the replaced run"))?;
    }
    let mut stream = peer.live(&run.chat, &run.cursor(3))?;
    let frame = stream.json()?.unwrap_or_default();
    ensure!(frame["run_id"] == new.id.as_str(), "it is told of run {}", frame["run_id"]);
    peer.append_numbers(&new, 6, 1)?;
    stream.gets("E6", "then live")
}

fn takes_no_more(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(2)?;
    let new = peer.start_in(&run.chat, SUPERSEDE)?;
    let line = run.line("POST", "events", "");
    let late = peer.send(&line, NDJSON, number(3).as_bytes())?;
    late.refuses(409, "run_over", "an event for a replaced run")?;
    ensure!(late.json["error"]["state"] == "superseded", "it should say its state: {}", late.json);
    peer.append_numbers(&new, 1, 1)?;
    let events = peer.live(&run.chat, "")?.events_to(1)?;
    ensure!(events == [number(1)], "the late event reached the new run: {events:?}");
    Ok(())
}

fn producer_is_told(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(1)?;
    let mut control = peer.stream(&run.line("GET", "control", ""))?;
    peer.start_in(&run.chat, SUPERSEDE)?;
    let told = control.json()?.unwrap_or_default();
    ensure!(told["event"] == "cancel" && told["reason"] == "superseded", "the producer was told {told}");
    Ok(())
}

fn partial_answer(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(2)?;
    let new = peer.start_in(&run.chat, SUPERSEDE)?;
    peer.append_numbers(&new, 1, 3)?;
    peer.finish(&new)?;
    let history = peer.ask(&format!("GET /chats/{}", run.chat), "")?;
    history.is(200, "the history")?;
    let turns = history.json["turns"].as_array().cloned().unwrap_or_default();
    let ids: Vec<_> = turns.iter().map(|turn| turn["run_id"].as_str().unwrap_or_default()).collect();
    ensure!(ids == [run.id.as_str(), new.id.as_str()], "the history has the runs {ids:?}");
    ensure!(turns[0]["superseded"] == true, "the replaced turn does not say so: {}", turns[0]);
    Ok(())
}

fn heartbeat(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(1)?;
    let body = r#"{"trigger":"heartbeat","supersede":true}"#;
    let answer = peer.ask(&format!("POST /chats/{}/runs", run.chat), body)?;
    answer.refuses(409, "already_streaming", "a heartbeat while a run is active")?;
    peer.append_numbers(&run, 2, 1)
}

fn stream(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(2)?;
    let mut old = peer.live(&run.chat, &run.cursor(2))?;
    let line = format!("POST /chats/{}/runs?stream=1&supersede=1", run.chat);
    let answer = peer.send(&line, NDJSON, number(1).as_bytes())?;
    answer.is(200, "a run in one request that takes a place")?;
    ensure!(answer.json["persisted"] == true, "it was not saved: {}", answer.json);
    old.gets("X2s -", "an observer of the replaced run")
}
