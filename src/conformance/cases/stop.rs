//! Stopping a run, deleting a chat, and leaving.

use super::case;
use crate::conformance::peer::Peer;
use crate::conformance::{Case, Stop, Tested, ensure};

pub(super) const CASES: &[Case] = &[
    case(
        "stop.closes-and-saves",
        "`POST /chat/stop`: the run is closed with code `stopped` and saved",
        stops,
    ),
    case("stop.nothing-to-stop", "no active run: 404 `no_active_run`", nothing_to_stop),
    case(
        "delete.ends-unsaved",
        "`DELETE /chats/{chat_id}`: 204, an active run ends with neither flag, nothing is retained",
        deletes,
    ),
    case("delete.refuses-late-events", "the run of a deleted chat takes no more events", late_events),
    case(
        "leave.observers",
        "an observer that went away is noticed when something is written to it (seen in `GET /status`)",
        leaves,
    ),
    case(
        "leave.disturbs-nobody",
        "connections that break at any stage disturb no other observer",
        disturbs_nobody,
    ),
];

fn stops(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    peer.append(&run, &[r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#])?;
    let mut live = peer.live(&run.chat, "")?;
    live.gets("S1", "an active run")?;
    let reply = peer.ask("POST /chat/stop", &format!("{{\"chat_id\":\"{}\"}}", run.chat))?;
    reply.is(200, "stopping a run")?;
    let so =
        reply.json["run_id"] == run.id.as_str() && reply.json["seq"] == 2 && reply.json["persisted"] == true;
    ensure!(so, "stopping was answered with {}", reply.json);
    let error = live.event()?;
    ensure!(error.contains("RUN_ERROR") && error.contains("stopped"), "the run was closed with {error}");
    live.gets("X2p -", "the end of a run that was stopped")
}

fn nothing_to_stop(peer: &Peer<'_>) -> Tested {
    let stop = |chat: &str| peer.ask("POST /chat/stop", &format!("{{\"chat_id\":\"{chat}\"}}"));
    stop(&peer.chat())?.refuses(404, "no_active_run", "a chat without a run")?;
    stop(&peer.saved_run_of(1)?.chat)?.refuses(404, "no_active_run", "a chat whose run is over")
}

fn deletes(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(3)?;
    let mut live = peer.live(&run.chat, "")?;
    live.gets("S3", "an active run")?;
    peer.ask(&format!("DELETE /chats/{}", run.chat), "")?.is(204, "deleting a chat")?;
    live.gets("X3 -", "an observer of a deleted chat")?;
    peer.live(&run.chat, &run.cursor(1))?.answers(204, "a cursor of a deleted chat")?;
    peer.ask(&format!("GET /chats/{}", run.chat), "")?.is(404, "the history of a deleted chat")
}

fn late_events(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(1)?;
    peer.ask(&format!("DELETE /chats/{}", run.chat), "")?.is(204, "deleting a chat")?;
    let event = r#"{"type":"CUSTOM","name":"n","value":2}"#;
    let late =
        peer.send(&run.line("POST", "events", ""), crate::conformance::peer::NDJSON, event.as_bytes())?;
    late.refuses(409, "run_over", "an event for a deleted chat")?;
    ensure!(late.json["error"]["state"] == "deleted", "it should say its state: {}", late.json);
    Ok(())
}

fn leaves(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(1)?;
    let observers = || -> Result<Option<u64>, Stop> { Ok(peer.status_of(&run)?["observers"].as_u64()) };
    observers()?;
    let mut streams = Vec::new();
    for _ in 0..4 {
        let mut stream = peer.live(&run.chat, "")?;
        stream.gets("S1", "an active run")?;
        streams.push(stream);
    }
    peer.until("four observers are there", || Ok(observers()? == Some(4)))?;
    streams.truncate(1);
    let mut head = 1;
    peer.until("three of four observers were noticed to be gone", || {
        head += 1;
        peer.append_numbers(&run, head, 1)?;
        Ok(observers()? == Some(1))
    })?;
    for seq in 2..=head {
        streams[0].gets(&format!("E{seq}"), "the observer that stayed")?;
    }
    Ok(())
}

fn disturbs_nobody(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(1)?;
    let mut steady = peer.live(&run.chat, "")?;
    steady.gets("S1", "an active run")?;
    for number in 0..20 {
        match number % 3 {
            0 => drop(peer.live(&run.chat, "")?),
            1 => drop(peer.upload("POST /chat/live", "application/json")?),
            _ => {
                let mut body =
                    peer.upload(&run.line("POST", "events", "&from_seq=1"), "application/x-ndjson")?;
                body.chunk(b"{\"type\":")?;
            }
        }
    }
    peer.append_numbers(&run, 2, 1)?;
    steady.gets("E2", "who stayed")
}
