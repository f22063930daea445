//! Producing over real sockets, against the real binary: bodies, resends, take-overs, ends, the control stream and the
//! event bus.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/server.rs"]
mod server;

use serde_json::{Value, json};
use server::{Conn, Head, Served, Stream, number, request, serve};

const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const FINISHED: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;

/// Begins a chunked body and leaves it open.
fn open_body(served: &Served, line: &str, kind: &str) -> Conn {
    let mut conn = served.connect();
    conn.send(
        format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        .as_bytes(),
    );
    conn
}

fn chunk(conn: &mut Conn, data: &str) {
    conn.send(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes());
}

fn end_body(conn: &mut Conn) -> (u16, Value) {
    conn.send(b"0\r\n\r\n");
    answer(conn)
}

fn answer(conn: &mut Conn) -> (u16, Value) {
    let head: Head = conn.head();
    (head.status, conn.json(&head))
}

fn post(served: &Served, line: &str, kind: &str, body: &str) -> (u16, Value) {
    let mut conn = served.connect();
    conn.send(&request(line, kind, body));
    answer(&mut conn)
}

/// The events of a run, as a fresh snapshot has them.
fn events(served: &Served, chat: &str) -> Vec<Value> {
    let mut stream = served.live(chat, ",\"run_id\":\"x\",\"after_seq\":0");
    stream.data().unwrap()["events"].as_array().unwrap().clone()
}

fn values(served: &Served, chat: &str) -> Vec<u64> {
    events(served, chat).iter().filter_map(|event| event["value"].as_u64()).collect()
}

#[test]
fn each_event_is_visible_while_its_request_is_still_being_sent() {
    let served = serve(&[]);
    for (kind, pieces) in [
        ("application/x-ndjson", [format!("{}\n", number(1)), format!("\n{}\n", number(2))]),
        (
            "text/event-stream",
            [format!("data: {}\n\n", number(1)), format!(": quiet\r\ndata: {}\r\n\r\n", number(2))],
        ),
        ("application/json", [format!("[{},", number(1)), format!("\n {}", number(2))]),
    ] {
        let chat = kind.replace('/', "-");
        let run = served.start(&chat, "{}");
        let mut stream = served.live(&chat, "");
        assert_eq!(stream.short(), "S0");
        let mut body = open_body(&served, &format!("POST /runs/{run}/events"), kind);
        for (seq, piece) in (1..).zip(&pieces) {
            chunk(&mut body, piece);
            assert_eq!(stream.short(), format!("E{seq}"), "{kind}");
        }
        if kind == "application/json" {
            chunk(&mut body, "]");
        }
        assert_eq!(end_body(&mut body), (200, json!({"seq": 2, "next": 3})), "{kind}");
    }
}

#[test]
fn stream_1_starts_appends_and_finishes_in_one_request() {
    let served = serve(&[]);
    let mut body =
        open_body(&served, "POST /chats/c/runs?stream=1&trigger=heartbeat", "application/x-ndjson");
    chunk(&mut body, &format!("{STARTED}\n{FINISHED}"));
    let (status, answer) = end_body(&mut body);
    assert_eq!((status, &answer["seq"], &answer["persisted"]), (200, &json!(2), &json!(true)));
    let (_, history) = served.ask("GET /chats/c", "");
    assert_eq!(history["turns"][0]["trigger"], "heartbeat");
    assert_eq!(history["turns"][0]["closed"], Value::Null);
}

#[test]
fn a_resend_after_a_lost_acknowledgement_doubles_nothing() {
    let served = serve(&[]);
    let run = served.start("c", "{}");
    let line = |from: u64| format!("POST /runs/{run}/events?from_seq={from}");
    let body = |range: std::ops::RangeInclusive<u64>| range.map(|n| number(n) + "\n").collect::<String>();
    let send = |from, range| post(&served, &line(from), "application/x-ndjson", &body(range));
    assert_eq!(send(1, 1..=3), (200, json!({"seq": 3, "next": 4})));
    assert_eq!(send(1, 1..=3), (200, json!({"seq": 3, "next": 4})));
    assert_eq!(send(2, 2..=5), (200, json!({"seq": 5, "next": 6})));
    let (status, gap) = send(7, 7..=8);
    assert_eq!((status, &gap["error"]["code"], &gap["error"]["next"]), (409, &json!("gap"), &json!(6)));
    assert_eq!(values(&served, "c"), [1, 2, 3, 4, 5]);
    for bad in ["0", "-1", "x", "1.5"] {
        let (status, _) =
            post(&served, &format!("POST /runs/{run}/events?from_seq={bad}"), "application/x-ndjson", "\n");
        assert_eq!(status, 400, "from_seq={bad}");
    }
}

#[test]
fn a_new_body_takes_over_and_no_later_byte_of_the_older_counts() {
    let served = serve(&[]);
    let run = served.start("c", "{}");
    let mut older = open_body(&served, &format!("POST /runs/{run}/events"), "application/x-ndjson");
    chunk(&mut older, &format!("{}\n{{\"type\":\"CUS", number(1)));
    served.wait_for(&run, |state| state["seq"] == 1);
    let mut newer =
        open_body(&served, &format!("POST /runs/{run}/events?from_seq=2"), "application/x-ndjson");
    let (status, told) = answer(&mut older);
    assert_eq!(
        (status, &told["error"]["code"], &told["error"]["next"]),
        (409, &json!("taken_over"), &json!(2))
    );
    chunk(&mut older, &format!("TOM\"}}\n{}\n", number(9)));
    chunk(&mut newer, &format!("{}\n", number(2)));
    assert_eq!(end_body(&mut newer).0, 200);
    assert_eq!(values(&served, "c"), [1, 2]);
}

#[test]
fn a_bad_line_is_named_and_the_events_before_it_stay() {
    let served = serve(&[]);
    let cases = [
        ("not json", 400, "bad_event"),
        ("[]", 400, "bad_event"),
        ("{}", 400, "bad_event"),
        (r#"{"type":"X","a":"\ud83d"#, 400, "bad_event"),
        (r#"{"type":"X"} {}"#, 400, "bad_event"),
    ];
    for (number_of_case, (bad, status, code)) in cases.iter().enumerate() {
        let chat = format!("chat{number_of_case}");
        let run = served.start(&chat, "{}");
        let body = format!("{}\n\n{bad}\n{}\n", number(1), number(2));
        let (got, told) = post(&served, &format!("POST /runs/{run}/events"), "application/x-ndjson", &body);
        assert_eq!((got, &told["error"]["code"]), (*status, &json!(code)), "{bad}: {told}");
        assert_eq!((&told["error"]["line"], &told["error"]["next"]), (&json!(3), &json!(2)), "{told}");
        served.append_numbers(&run, 2, 1);
        assert_eq!(values(&served, &chat), [1, 2], "the run goes on");
    }
}

#[test]
fn too_large_an_event_is_413_and_too_large_a_run_is_closed() {
    let served = serve(&["--event-bytes-max", "200", "--run-bytes-max", "1000"]);
    let run = served.start("c", "{}");
    let large = format!(r#"{{"type":"X","a":"{}"}}"#, "x".repeat(300));
    let (status, told) = post(&served, &format!("POST /runs/{run}/events"), "application/x-ndjson", &large);
    assert_eq!((status, &told["error"]["code"]), (413, &json!("event_too_large")));
    let many = format!("{STARTED}\n") + &format!("{}\n", number(1)).repeat(40);
    let (status, told) = post(&served, &format!("POST /runs/{run}/events"), "application/x-ndjson", &many);
    assert_eq!((status, &told["error"]["code"]), (413, &json!("run_too_large")));
    served.wait_for(&run, |state| state["state"] == "ended");
    let last = events(&served, "c").pop().unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("RUN_ERROR"), &json!("too_large")));
}

#[test]
fn a_streamed_body_that_breaks_off_or_goes_bad_closes_the_run_at_once() {
    let served = serve(&[]);
    for (rest, code) in [(None, "producer_lost"), (Some("nonsense\n"), "agent_error")] {
        let mut body =
            open_body(&served, &format!("POST /chats/{code}/runs?stream=1"), "application/x-ndjson");
        chunk(&mut body, &format!("{STARTED}\n"));
        chunk(&mut body, "{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"m\",\"role\":\"assistant\"}\n");
        let mut stream = Stream::from(served.probe(code, ",\"wait_ms\":20000"));
        match rest {
            None => drop(body),
            Some(bad) => {
                chunk(&mut body, bad);
                assert_eq!(answer(&mut body).0, 400);
            }
        }
        let frames = stream.all();
        let tail: Vec<&str> = frames
            .iter()
            .rev()
            .take(3)
            .map(|frame| frame["event"]["type"].as_str().unwrap_or("END"))
            .collect();
        assert_eq!(tail, ["END", "RUN_ERROR", "TEXT_MESSAGE_END"], "{code}");
        assert_eq!(frames[frames.len() - 2]["event"]["code"], code);
    }
}

#[test]
fn a_body_that_breaks_off_may_be_continued() {
    let served = serve(&[]);
    let run = served.start("c", "{}");
    let mut body = open_body(&served, &format!("POST /runs/{run}/events?from_seq=1"), "application/x-ndjson");
    chunk(&mut body, &format!("{}\n{}\n{{\"ty", number(1), number(2)));
    served.wait_for(&run, |state| state["seq"] == 2);
    drop(body);
    let rest = format!("{}\n{}\n", number(2), number(3));
    let (status, _) =
        post(&served, &format!("POST /runs/{run}/events?from_seq=2"), "application/x-ndjson", &rest);
    assert_eq!(status, 200);
    assert!(served.finish(&run));
    assert_eq!(values(&served, "c"), [1, 2, 3]);
}

#[test]
fn finish_answers_again_and_late_appends_are_refused_with_the_state() {
    let served = serve(&[]);
    let run = served.start("c", "{}");
    served.append(&run, &[STARTED]);
    let (status, first) =
        served.ask(&format!("POST /runs/{run}/finish"), r#"{"error":{"message":"out of paper"}}"#);
    assert_eq!((status, &first["seq"], &first["persisted"]), (200, &json!(2), &json!(true)));
    assert_eq!(served.ask(&format!("POST /runs/{run}/finish"), ""), (200, first));
    let (status, late) = post(&served, &format!("POST /runs/{run}/events"), "application/x-ndjson", STARTED);
    assert_eq!(
        (status, &late["error"]["code"], &late["error"]["state"]),
        (409, &json!("run_over"), &json!("ended"))
    );
    let last = events(&served, "c").pop().unwrap();
    assert_eq!((&last["message"], &last["code"]), (&json!("out of paper"), &json!("agent_error")));
    for line in ["POST /runs/nonsense/finish", "GET /runs/AAAAAAAAAAAAAAAAAAAAAA"] {
        assert_eq!(served.ask(line, "").0, 404, "{line}");
    }
}

#[test]
fn one_run_of_a_chat_at_a_time_unless_superseded_and_the_partial_answer_is_saved() {
    let served = serve(&[]);
    let old = served.start("c", "{}");
    served.append(&old, &[STARTED, &number(1)]);
    let (status, told) = served.ask("POST /chats/c/runs", "{}");
    assert_eq!((status, &told["error"]["code"]), (409, &json!("already_streaming")));
    let (status, _) = served.ask("POST /chats/c/runs", r#"{"trigger":"heartbeat","supersede":true}"#);
    assert_eq!(status, 409, "a heartbeat replaces nothing");
    let mut control = served.stream(&format!("GET /runs/{old}/control HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    let mut body = open_body(&served, &format!("POST /runs/{old}/events"), "application/x-ndjson");
    chunk(&mut body, &format!("{}\n", number(2)));
    served.wait_for(&old, |state| state["seq"] == 3);
    let new = served.start("c", r#"{"supersede":true}"#);
    assert_eq!(control.data().unwrap(), json!({"event": "cancel", "reason": "superseded"}));
    assert_eq!(answer(&mut body).1["error"]["state"], "superseded");
    assert!(served.finish(&new), "the partial answer was saved first, so the new run is not stale");
    let (_, history) = served.ask("GET /chats/c", "");
    let turn = &history["turns"][0];
    assert_eq!((&turn["run_id"], &turn["superseded"]), (&json!(old), &json!(true)));
    assert_eq!(turn["events"].as_array().unwrap().len(), 3);
}

#[test]
fn a_recorded_agent_can_be_piped_in_as_it_is() {
    let served = serve(&[]);
    for (name, message) in [
        ("hello", json!("Hello from a real AG-UI agent.")),
        ("utf8", json!("naïve 日本語 👩‍👩‍👧 quote \" backslash \\ line\nbreak\r\n\u{2028} \u{7f} end")),
    ] {
        let path = format!("{}/tests/data/traces/pydantic-ai-{name}.sse", env!("CARGO_MANIFEST_DIR"));
        let trace = std::fs::read_to_string(path).unwrap() + "data: [DONE]\n\n";
        let line = format!("POST /chats/{name}/runs?stream=1");
        let (status, answer) = post(&served, &line, "text/event-stream; charset=utf-8", &trace);
        assert_eq!((status, &answer["persisted"]), (200, &json!(true)), "{answer}");
        let (_, history) = served.ask(&format!("GET /chats/{name}"), "");
        assert_eq!(history["messages"][0]["content"], message);
        assert_eq!(history["turns"][0]["closed"], Value::Null);
    }
}

#[test]
fn the_bus_tells_of_runs_in_order() {
    let served = serve(&[]);
    let first = served.start("a", "{}");
    let bus = |query: &str| {
        served.stream(&format!("GET /events/stream{query} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    };
    let (mut plain, mut chunks) = (bus(""), bus("?chunks=1"));
    let snapshot = json!({"event": "snapshot", "streams":
        [{"chat_id": "a", "run_id": first, "trigger": "user", "state": "registered"}]});
    assert_eq!(plain.data().unwrap(), snapshot);
    assert_eq!(chunks.data().unwrap(), snapshot);
    served.append(&first, &[STARTED]);
    let second = served.start("a", r#"{"supersede":true}"#);
    assert!(served.finish(&second));
    let ended = |run: &str, persisted, superseded| json!({"event": "stream_ended", "chat_id": "a", "run_id": run, "persisted": persisted, "superseded": superseded});
    let started = json!({"event": "stream_started", "chat_id": "a", "run_id": second, "trigger": "user"});
    let lifecycle = [ended(&first, false, true), started, ended(&second, true, false)];
    for expected in &lifecycle {
        assert_eq!(plain.data().as_ref(), Some(expected));
    }
    let chunk = chunks.data().unwrap();
    assert_eq!(
        (&chunk["event"], &chunk["seq"], &chunk["data"]["type"]),
        (&json!("chunk"), &json!(1), &json!("RUN_STARTED"))
    );
    for expected in &lifecycle {
        assert_eq!(chunks.data().as_ref(), Some(expected));
    }
}

#[test]
fn a_bus_subscriber_that_falls_behind_gets_end_of_file() {
    let served = serve(&[]);
    let run = served.start("c", "{}");
    let mut bus = served.stream("GET /events/stream?chunks=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(bus.data().unwrap()["event"], "snapshot");
    let filler = "x".repeat(900);
    let event = format!(r#"{{"type":"CUSTOM","name":"{filler}","value":1}}"#);
    let batch: Vec<&str> = std::iter::repeat_n(event.as_str(), 1_000).collect();
    for _ in 0..20 {
        served.append(&run, &batch);
    }
    let mut at = 0;
    for message in bus.all() {
        at += 1;
        assert_eq!(message["seq"].as_u64(), Some(at), "no gap before the end");
    }
    assert!(at < 20_000, "it was cut off at {at}");
    assert_eq!(served.ask("GET /healthz", "").0, 200);
}
