//! Producing over HTTP.

use serde_json::Value;

use super::case;
use crate::conformance::peer::{NDJSON, Peer, Reply, Run, number, numbers};
use crate::conformance::{Case, Stop, Tested, ensure};

pub(super) const CASES: &[Case] = &[
    case("push.visible-at-once", "an event is seen while its request is still being sent", visible_at_once),
    case(
        "push.formats",
        "NDJSON, SSE and JSON bodies give the same events; blank lines, comments and `[DONE]` are skipped",
        formats,
    ),
    case(
        "push.answer",
        "a body is answered with `seq` and `next`, `GET /runs/{run_id}` says the same",
        answer,
    ),
    case("push.resend", "`from_seq`: events that the run has are skipped", resend),
    case("push.gap", "`from_seq` beyond the next event: 409 `gap` with `next`, and nothing is appended", gap),
    case(
        "push.bad-line",
        "a bad line: 400 `bad_event` with its number, the events before it stay, the run goes on",
        bad_line,
    ),
    case(
        "push.taken-over",
        "a new body takes over: the older gets 409 `taken_over`, none of its later bytes count",
        taken_over,
    ),
    case("push.broken-body", "a body that breaks off may be continued by the next", broken_body),
    case("push.run-over", "events for a run that is over: 409 `run_over` with its `state`", run_over),
    case("push.finish-again", "a finish is answered again and again in the same way", finish_again),
    case(
        "push.finish-closes",
        "a run that its producer fails is closed: …_END for what is open, then RUN_ERROR",
        finish_closes,
    ),
    case("push.stream", "`stream=1` starts a run, appends the body and finishes it", stream),
    case(
        "push.stream-cut",
        "a `stream=1` body that breaks off closes the run with `producer_lost`",
        stream_cut,
    ),
    case(
        "push.stream-bad",
        "a `stream=1` body with a fault is 400 and closes the run with `agent_error`",
        stream_bad,
    ),
    case("push.unknown-run", "an unknown run: 404 `unknown_run`", unknown_run),
];

const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const OPENED: &str = r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#;

/// The run has exactly these numbers.
fn has(peer: &Peer<'_>, run: &Run, count: u64) -> Tested {
    let told = peer.live(&run.chat, "")?.events_to(count)?;
    let expected: Vec<String> = (1..=count).map(number).collect();
    ensure!(told == expected, "the run should have events 1 to {count}, it has {told:?}");
    Ok(())
}

fn append_from(peer: &Peer<'_>, run: &Run, from: u64, body: &str) -> Result<Reply, Stop> {
    peer.send(&run.line("POST", "events", &format!("&from_seq={from}")), NDJSON, body.as_bytes())
}

fn acknowledges(reply: &Reply, seq: u64) -> Tested {
    reply.is(200, "appending")?;
    let so = reply.json["seq"] == seq && reply.json["next"] == seq + 1;
    ensure!(so, "expected seq {seq} and next {}, got {}", seq + 1, reply.json);
    Ok(())
}

fn visible_at_once(peer: &Peer<'_>) -> Tested {
    for (kind, pieces) in [
        (NDJSON, [number(1) + "\n", number(2) + "\n"]),
        ("text/event-stream", [format!("data: {}\n\n", number(1)), format!("data: {}\n\n", number(2))]),
        ("application/json", [format!("[{},", number(1)), format!("{}]", number(2))]),
    ] {
        let run = peer.start()?;
        let mut stream = peer.live(&run.chat, "")?;
        stream.gets("S0", "a run without events")?;
        let mut body = peer.upload(&run.line("POST", "events", ""), kind)?;
        for (seq, piece) in (1..).zip(&pieces) {
            body.chunk(piece.as_bytes())?;
            stream.gets(
                &format!("E{seq}"),
                &format!("an event of a body of {kind} that is still being sent"),
            )?;
        }
        acknowledges(&Reply::read(body.finish()?)?, 2)?;
    }
    Ok(())
}

fn formats(peer: &Peer<'_>) -> Tested {
    let [one, two] = [number(1), number(2)];
    for (kind, body) in [
        (NDJSON, format!("\n{one}\r\n\n\n{two}")),
        (
            "text/event-stream",
            format!(": hello\n\ndata: {one}\n\n: quiet\r\ndata: {two}\r\n\r\ndata: [DONE]\n\n"),
        ),
        ("text/event-stream; charset=utf-8", format!("event: x\nid: 9\ndata:{one}\n\ndata: {two}\n\n")),
        ("application/json", format!(" [ {one} ,\n {two} ] ")),
    ] {
        let run = peer.start()?;
        acknowledges(&peer.send(&run.line("POST", "events", ""), kind, body.as_bytes())?, 2)?;
        has(peer, &run, 2)?;
    }
    let run = peer.start()?;
    acknowledges(&peer.send(&run.line("POST", "events", ""), "application/json", one.as_bytes())?, 1)
}

fn answer(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    let state = |expected: &str, seq: u64| {
        let reply = peer.ask(&run.line("GET", "", ""), "")?;
        reply.is(200, "the state of a run")?;
        let json = &reply.json;
        let so = json["run_id"] == run.id.as_str() && json["chat_id"] == run.chat.as_str();
        ensure!(so && json["state"] == expected, "a run that is {expected} says {json}");
        ensure!(json["seq"] == seq && json["next"] == seq + 1, "a run with {seq} events says {json}");
        Ok(())
    };
    state("registered", 0)?;
    acknowledges(&peer.append(&run, &[&number(1), &number(2)])?, 2)?;
    state("active", 2)?;
    acknowledges(&peer.append(&run, &[&number(3)])?, 3)?;
    peer.finish(&run)?;
    state("ended", 3)
}

fn resend(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    acknowledges(&append_from(peer, &run, 1, &numbers(1, 3))?, 3)?;
    acknowledges(&append_from(peer, &run, 1, &numbers(1, 3))?, 3)?;
    acknowledges(&append_from(peer, &run, 2, &numbers(2, 4))?, 5)?;
    acknowledges(&append_from(peer, &run, 6, &numbers(6, 1))?, 6)?;
    has(peer, &run, 6)
}

fn gap(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(2)?;
    let reply = append_from(peer, &run, 4, &numbers(4, 2))?;
    reply.refuses(409, "gap", "a body that begins one event too late")?;
    ensure!(reply.json["error"]["next"] == 3, "a gap should say next 3: {}", reply.json);
    for bad in ["0", "-1", "x", "1.5"] {
        let line = run.line("POST", "events", &format!("&from_seq={bad}"));
        peer.send(&line, NDJSON, numbers(3, 1).as_bytes())?.is(400, &format!("from_seq={bad}"))?;
    }
    has(peer, &run, 2)
}

fn bad_line(peer: &Peer<'_>) -> Tested {
    for bad in ["not json", "[]", "{}", r#"{"type":1}"#, r#"{"type":"X","a":"#, r#"{"type":"X"} {}"#] {
        let run = peer.start()?;
        let body = format!("{}\n\n{bad}\n{}\n", number(1), number(2));
        let reply = peer.send(&run.line("POST", "events", ""), NDJSON, body.as_bytes())?;
        reply.refuses(400, "bad_event", &format!("the line {bad}"))?;
        ensure!(reply.json["error"]["line"] == 3, "the bad line was the third: {}", reply.json);
        peer.append_numbers(&run, 2, 1)?;
        has(peer, &run, 2)?;
    }
    Ok(())
}

fn taken_over(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    let mut seen = peer.live(&run.chat, "")?;
    let mut older = peer.upload(&run.line("POST", "events", ""), NDJSON)?;
    older.chunk(format!("{}\n{{\"type\":\"CUS", number(1)).as_bytes())?;
    seen.gets("S0 E1", "the older body's first event")?;
    let mut newer = peer.upload(&run.line("POST", "events", "&from_seq=2"), NDJSON)?;
    newer.chunk(format!("{}\n", number(2)).as_bytes())?;
    seen.gets("E2", "the newer body's first event")?;
    // The connection may be closed already.
    let _ = older.chunk(format!("TOM\"}}\n{}\n", number(9)).as_bytes());
    let told = Reply::read(older.answer()?)?;
    told.refuses(409, "taken_over", "the older body")?;
    newer.chunk(format!("{}\n", number(3)).as_bytes())?;
    acknowledges(&Reply::read(newer.finish()?)?, 3)?;
    has(peer, &run, 3)
}

fn broken_body(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    let mut seen = peer.live(&run.chat, "")?;
    let mut body = peer.upload(&run.line("POST", "events", "&from_seq=1"), NDJSON)?;
    body.chunk(format!("{}\n{}\n{{\"ty", number(1), number(2)).as_bytes())?;
    seen.gets("S0 E1 E2", "what came before the break")?;
    drop(body);
    acknowledges(&append_from(peer, &run, 2, &numbers(2, 2))?, 3)?;
    has(peer, &run, 3)?;
    peer.finish(&run).map(|_| ())
}

fn run_over(peer: &Peer<'_>) -> Tested {
    let run = peer.saved_run_of(2)?;
    let late = peer.send(&run.line("POST", "events", ""), NDJSON, number(3).as_bytes())?;
    late.refuses(409, "run_over", "an event for a run that ended")?;
    ensure!(late.json["error"]["state"] == "ended", "it should say its state: {}", late.json);
    peer.live(&run.chat, &run.cursor(1))?.gets("E2 X2p -", "the run that ended")
}

fn finish_again(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(2)?;
    let first = peer.finish(&run)?;
    for _ in 0..2 {
        let again = peer.finish(&run)?;
        ensure!(again.json == first.json, "first {}, then {}", first.json, again.json);
    }
    Ok(())
}

/// The types of the events behind the second.
fn tail(peer: &Peer<'_>, run: &Run) -> Result<(Vec<String>, Value), Stop> {
    let mut stream = peer.live(&run.chat, &run.cursor(2))?;
    let (mut types, mut last) = (Vec::new(), Value::Null);
    while let Some(frame) = stream.json()? {
        if frame["type"] == "STREAM_EVENT" {
            last = frame["event"].clone();
            types.push(last["type"].as_str().unwrap_or_default().to_owned());
        }
    }
    Ok((types, last))
}

fn was_closed(peer: &Peer<'_>, run: &Run, code: &str) -> Tested {
    let (types, last) = tail(peer, run)?;
    ensure!(types == ["TEXT_MESSAGE_END", "RUN_ERROR"], "the run was closed with {types:?}");
    ensure!(last["code"] == code && last["message"].is_string(), "expected the code {code}: {last}");
    Ok(())
}

fn finish_closes(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    peer.append(&run, &[STARTED, OPENED])?;
    let body = r#"{"error":{"message":"out of paper"}}"#;
    let reply = peer.ask(&run.line("POST", "finish", ""), body)?;
    reply.is(200, "a finish with an error")?;
    ensure!(reply.json["seq"] == 4, "two events should have been appended: {}", reply.json);
    was_closed(peer, &run, "agent_error")
}

fn stream(peer: &Peer<'_>) -> Tested {
    let chat = peer.chat();
    let line = format!("POST /chats/{chat}/runs?stream=1&trigger=canvas");
    let reply = peer.send(&line, NDJSON, numbers(1, 3).as_bytes())?;
    reply.is(200, "a run in one request")?;
    let so = reply.json["seq"] == 3 && reply.json["persisted"] == true;
    ensure!(so, "a run of three events was answered with {}", reply.json);
    let id = reply.json["run_id"].as_str().unwrap_or_default().to_owned();
    let run = Run { id, chat };
    peer.live(&run.chat, &run.cursor(0))?.gets("E1 E2 E3 X3p -", "its run")
}

/// A `stream=1` body with two events of an answer, still open, and its run.
fn open_stream(peer: &Peer<'_>) -> Result<(crate::client::http::Upload, Run), Stop> {
    let chat = peer.chat();
    let mut body = peer.upload(&format!("POST /chats/{chat}/runs?stream=1"), NDJSON)?;
    body.chunk(format!("{STARTED}\n{OPENED}\n").as_bytes())?;
    let mut seen = peer.live(&chat, ",\"wait_ms\":10000")?;
    let frame = seen.json()?.unwrap_or_default();
    let id = frame["run_id"].as_str().unwrap_or_default().to_owned();
    let mut seq = frame["seq"].as_u64().unwrap_or_default();
    while seq < 2 {
        seen.event()?;
        seq += 1;
    }
    Ok((body, Run { id, chat }))
}

fn stream_cut(peer: &Peer<'_>) -> Tested {
    let (body, run) = open_stream(peer)?;
    drop(body);
    was_closed(peer, &run, "producer_lost")
}

fn stream_bad(peer: &Peer<'_>) -> Tested {
    let (mut body, run) = open_stream(peer)?;
    body.chunk(b"nonsense\n")?;
    Reply::read(body.answer()?)?.refuses(400, "bad_event", "a bad line of a run in one request")?;
    was_closed(peer, &run, "agent_error")
}

fn unknown_run(peer: &Peer<'_>) -> Tested {
    let chat = peer.chat();
    for id in ["nonsense", "AAAAAAAAAAAAAAAAAAAAAA"] {
        let run = Run { id: id.to_owned(), chat: chat.clone() };
        peer.ask(&run.line("GET", "", ""), "")?.refuses(404, "unknown_run", "the state of an unknown run")?;
        peer.ask(&run.line("POST", "finish", ""), "")?.refuses(
            404,
            "unknown_run",
            "finishing an unknown run",
        )?;
        let reply = peer.send(&run.line("POST", "events", ""), NDJSON, number(1).as_bytes())?;
        reply.refuses(404, "unknown_run", "events of an unknown run")?;
    }
    Ok(())
}
