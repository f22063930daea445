//! Observing over real sockets, against the real binary: every row of the table of `/chat/live`, and what an observer
//! relies on beside it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "some promises are about time")]

#[path = "support/server.rs"]
mod server;

use std::time::{Duration, Instant};

use serde_json::Value;
use server::{Served, Stream, number, request, serve};

/// A server with a run of three events.
fn with_run(args: &[&str]) -> (Served, String) {
    let served = serve(args);
    let run = served.start("c", "{}");
    served.append_numbers(&run, 1, 3);
    (served, run)
}

fn cursor(run: &str, after: u64) -> String {
    format!(",\"run_id\":\"{run}\",\"after_seq\":{after}")
}

/// What these members get: the status if there is no stream, else the first frames in short.
fn check(served: &Served, members: &str, expected: &str) {
    let mut stream = served.live("c", members);
    let got = match stream.head.status {
        200 => stream.shorts(expected.split(' ').count()),
        status => status.to_string(),
    };
    assert_eq!(got, expected, "{members}");
}

/// A database that another process has locked: nothing can be saved.
fn unsaved_run() -> (Served, String, rusqlite::Connection) {
    let served = server::serve_with_db("chats.db", &[]);
    let lock = rusqlite::Connection::open(served.dir.join("chats.db")).unwrap();
    lock.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let run = served.start("c", "{}");
    served.append_numbers(&run, 1, 2);
    assert!(!served.finish(&run), "a locked database saves nothing");
    (served, run, lock)
}

#[test]
fn row_no_run_204_and_no_waiting_beyond_wait_ms() {
    let served = serve(&[]);
    check(&served, "", "204");
    check(&served, &cursor("nonsense", 4), "204");
    check(&served, ",\"wait_ms\":30", "204");
}

#[test]
fn row_no_run_waits_until_one_is_registered_and_starts_at_seq_0() {
    let served = serve(&[]);
    let waiting = served.probe("c", ",\"wait_ms\":20000");
    let run = served.start("c", "{}");
    served.append_numbers(&run, 1, 2);
    assert_eq!(Stream::from(waiting).shorts(3), "S0 E1 E2");
}

#[test]
fn row_with_wait_an_ended_and_persisted_run_counts_as_none() {
    let (served, run) = with_run(&[]);
    assert!(served.finish(&run));
    check(&served, ",\"wait_ms\":30", "204");
    let waiting = served.probe("c", ",\"wait_ms\":20000");
    let next = served.start("c", "{}");
    served.append_numbers(&next, 1, 1);
    assert_eq!(Stream::from(waiting).shorts(2), "S0 E1");
}

#[test]
fn a_wait_ends_at_once_when_its_client_sends_nothing_more() {
    let served = serve(&[]);
    let waiting = served.probe("c", ",\"wait_ms\":20000");
    let started = Instant::now();
    waiting.half_close();
    assert_eq!(Stream::from(waiting).head.status, 204);
    assert!(started.elapsed() < Duration::from_secs(10), "it did not wait for its time to be up");
}

#[test]
fn row_no_cursor_and_a_run_that_goes_on_snapshot_then_live() {
    let served = serve(&[]);
    let run = served.start("c", "{}");
    served.append_numbers(&run, 1, 2);
    let mut stream = served.live("c", "");
    assert_eq!(stream.short(), "S2");
    served.append_numbers(&run, 3, 2);
    assert_eq!(stream.shorts(2), "E3 E4");
    assert!(served.finish(&run));
    assert_eq!(stream.shorts(2), "X4p -");
    assert!(stream.complete);
}

#[test]
fn row_no_cursor_ended_and_persisted_204() {
    let (served, run) = with_run(&[]);
    assert!(served.finish(&run));
    check(&served, "", "204");
}

#[test]
fn row_no_cursor_ended_not_persisted_snapshot_and_end() {
    let (served, _, lock) = unsaved_run();
    check(&served, "", "S2 X2 -");
    lock.execute_batch("ROLLBACK").unwrap();
    let next = served.start("c", "{}");
    assert!(served.finish(&next), "an unlocked database saves again");
}

#[test]
fn row_cursor_in_the_window_exact_tail_and_zero_is_a_cursor() {
    let (served, run) = with_run(&[]);
    check(&served, &cursor(&run, 0), "E1 E2 E3");
    check(&served, &cursor(&run, 2), "E3");
    let mut stream = served.live("c", &cursor(&run, 3));
    served.append_numbers(&run, 4, 1);
    assert_eq!(stream.short(), "E4");
}

#[test]
fn row_cursor_older_than_the_window_or_beyond_the_head_snapshot_then_live() {
    let served = serve(&["--window-events", "4"]);
    let run = served.start("c", "{}");
    served.append_numbers(&run, 1, 10);
    check(&served, &cursor(&run, 5), "S10");
    check(&served, &cursor(&run, 6), "E7 E8 E9 E10");
    check(&served, &cursor(&run, 7), "E8 E9 E10");
    check(&served, &cursor(&run, 11), "S10");
    check(&served, &cursor(&run, u64::MAX), "S10");
    let mut stream = served.live("c", &cursor(&run, 10));
    served.append_numbers(&run, 11, 1);
    assert_eq!(stream.short(), "E11");
}

#[test]
fn row_cursor_of_an_ended_run_tail_and_end_again_and_again() {
    let (served, run) = with_run(&[]);
    assert!(served.finish(&run));
    for _ in 0..3 {
        check(&served, &cursor(&run, 1), "E2 E3 X3p -");
        check(&served, &cursor(&run, 3), "X3p -");
        check(&served, &cursor(&run, 9), "S3 X3p -");
    }
}

#[test]
fn row_cursor_of_another_run_or_half_a_cursor_snapshot_even_when_persisted() {
    let (served, run) = with_run(&[]);
    let foreign = [
        cursor("nonsense", 2),
        cursor("AAAAAAAAAAAAAAAAAAAAAA", 2),
        format!(",\"run_id\":\"{run}\""),
        ",\"after_seq\":1".to_owned(),
    ];
    for cursor in &foreign {
        check(&served, cursor, "S3");
    }
    assert!(served.finish(&run));
    for cursor in &foreign {
        check(&served, cursor, "S3 X3p -");
    }
}

#[test]
fn row_cursor_of_a_replaced_run_gets_the_new_one() {
    let (served, old) = with_run(&[]);
    let mut stream = served.live("c", &cursor(&old, 3));
    let new = served.start("c", "{\"supersede\":true}");
    assert_eq!(stream.shorts(2), "X3s -");
    served.append_numbers(&new, 1, 1);
    check(&served, &cursor(&old, 3), "S1");
    let (status, answer) = served.ask(&format!("POST /runs/{old}/finish"), "");
    assert_eq!((status, &answer["error"]["state"]), (409, &Value::from("superseded")));
}

#[test]
fn row_no_protocol_is_the_legacy_format() {
    let (served, run) = with_run(&[]);
    let mut stream = served.live_body(r#"{"chat_id":"c"}"#);
    served.append_numbers(&run, 4, 1);
    assert!(served.finish(&run));
    let values: Vec<Value> = stream.all().iter().map(|event| event["value"].clone()).collect();
    assert_eq!(values, [1, 2, 3, 4].map(Value::from));
    assert!(stream.complete, "an ended run's body ends properly");
}

#[test]
fn a_legacy_stream_that_is_replaced_does_not_look_complete() {
    let (served, _) = with_run(&[]);
    let mut chunked = served.live_body(r#"{"chat_id":"c"}"#);
    let body = r#"{"chat_id":"c"}"#;
    let mut old = served.stream(&format!(
        "POST /chat/live HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    for stream in [&mut chunked, &mut old] {
        for value in 1..=3 {
            assert_eq!(stream.data().unwrap()["value"], value);
        }
    }
    served.start("c", r#"{"supersede":true}"#);
    assert_eq!((chunked.data(), chunked.complete), (None, false));
    assert_eq!((old.data(), old.conn.was_reset), (None, true), "HTTP/1.0 can only say it with a reset");
}

#[test]
fn malformed_requests_are_400_and_say_what_to_change() {
    let served = serve(&[]);
    let long = format!(r#"{{"chat_id":"{}"}}"#, "x".repeat(257));
    let bodies = [
        "x",
        "[]",
        "null",
        "{}",
        r#"{"chat_id":""}"#,
        r#"{"chat_id":7}"#,
        r#"{"chat_id":"a\u0000"}"#,
        &long,
        r#"{"chat_id":"c","protocol":2}"#,
        r#"{"chat_id":"c","protocol":"1"}"#,
        r#"{"chat_id":"c","after_seq":-1}"#,
        r#"{"chat_id":"c","after_seq":1.5}"#,
        r#"{"chat_id":"c","after_seq":"1"}"#,
        r#"{"chat_id":"c","wait_ms":-1}"#,
        r#"{"chat_id":"c","wait_ms":1e308}"#,
        r#"{"chat_id":"c"} trailing"#,
    ];
    for body in bodies {
        let (status, answer) = served.ask("POST /chat/live", body);
        assert_eq!(
            (status, &answer["error"]["code"]),
            (400, &Value::from("bad_request")),
            "{body}: {answer}"
        );
        assert!(answer["error"]["message"].as_str().unwrap().len() > 10, "{answer}");
    }
    for query in ["", "chat_id=", "chat_id=c&after_seq=x", "chat_id=c&wait_ms=-5"] {
        let stream = served.live_get(query, None);
        assert_eq!(stream.head.status, 400, "{query}");
    }
}

#[test]
fn get_frames_carry_ids_and_last_event_id_wins() {
    let (served, run) = with_run(&[]);
    let mut stream =
        served.live_get(&format!("chat_id=c&run_id={run}&after_seq=0"), Some(&format!("{run}:1")));
    for seq in 2..=3 {
        assert_eq!(stream.message().unwrap()[0], format!("id: {run}:{seq}"));
    }
    assert!(served.finish(&run));
    assert_eq!(stream.message().unwrap()[0], format!("id: {run}:end"));
    assert_eq!(served.live_get("chat_id=c", Some(&format!("{run}:2"))).shorts(3), "E3 X3p -");
    assert_eq!(served.live_get("chat_id=c", Some("garbage")).shorts(2), "S3 X3p");
}

#[test]
fn an_end_cursor_stops_event_source_until_there_is_a_newer_run() {
    let (served, run) = with_run(&["--retention", "1"]);
    let end = format!("{run}:end");
    assert!(served.finish(&run));
    assert_eq!(served.live_get("chat_id=c&wait_ms=5000", Some(&end)).head.status, 204);
    assert_eq!(served.live_get("chat_id=other", Some(&end)).head.status, 204);
    let next = served.start("c", "{}");
    assert_eq!(served.live_get("chat_id=c", Some(&end)).short(), "S0");
    assert!(served.finish(&next));
    assert_eq!(served.live_get("chat_id=c", Some(&end)).head.status, 204);
}

#[test]
fn http_1_0_gets_the_same_frames_without_chunks() {
    let (served, run) = with_run(&[]);
    let body = format!("{{\"chat_id\":\"c\",\"protocol\":1{}}}", cursor(&run, 1));
    let line = "POST /chat/live HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length";
    let mut stream = served.stream(&format!("{line}: {}\r\n\r\n{body}", body.len()));
    assert_eq!(stream.head.field("Transfer-Encoding"), None);
    assert!(served.finish(&run));
    assert_eq!(stream.shorts(4), "E2 E3 X3p -");
}

#[test]
fn streams_are_not_to_be_cached_or_held_back() {
    let (served, _) = with_run(&[]);
    let head = served.live("c", "").head;
    for (name, value) in [
        ("Content-Type", "text/event-stream"),
        ("Cache-Control", "no-cache, no-transform"),
        ("X-Accel-Buffering", "no"),
    ] {
        assert_eq!(head.field(name), Some(value));
    }
    assert!(head.field("Date").is_some());
}

#[test]
fn retention_ends_by_count_oldest_first() {
    let served = serve(&["--retention-chats", "2"]);
    let runs: Vec<String> = (0..4)
        .map(|number| {
            let run = served.start(&format!("chat{number}"), "{}");
            assert!(served.finish(&run));
            run
        })
        .collect();
    let status = |number: usize| served.live(&format!("chat{number}"), &cursor(&runs[number], 0)).head.status;
    assert_eq!([0, 1, 2, 3].map(status), [204, 204, 200, 200]);
}

#[test]
fn retention_ends_by_age() {
    let (served, run) = with_run(&["--retention", "0"]);
    assert!(served.finish(&run));
    check(&served, &cursor(&run, 1), "204");
    let (status, state) = served.ask(&format!("GET /runs/{run}"), "");
    assert_eq!((status, &state["state"]), (200, &Value::from("ended")), "its state is still told");
}

#[test]
fn a_quiet_stream_gets_a_comment_within_16_seconds() {
    let (served, _) = with_run(&[]);
    let mut stream = served.live("c", "");
    assert_eq!(stream.short(), "S3");
    let started = Instant::now();
    assert_eq!(stream.message().unwrap(), [": keep-alive"]);
    assert!(started.elapsed() < Duration::from_secs(16));
}

#[test]
fn a_slow_observer_loses_nothing_and_slows_nobody() {
    let served = serve(&["--window-events", "8"]);
    let run = served.start("c", "{}");
    let mut slow = served.live("c", "");
    assert_eq!(slow.short(), "S0");
    let mut quick = served.live("c", "");
    assert_eq!(quick.short(), "S0");
    // Far more than the sockets hold: the slow one falls out of the window.
    let filler = "x".repeat(60_000);
    for seq in 1..=400_u64 {
        served.append(&run, &[&format!(r#"{{"type":"CUSTOM","name":"{filler}","value":{seq}}}"#)]);
        let frame = quick.data().unwrap();
        assert_eq!(frame["event"]["value"], seq);
    }
    assert!(served.finish(&run));
    assert_eq!(quick.short(), "X400p");
    let mut at = 0;
    let mut values: Vec<Value> = Vec::new();
    let mut snapshots = 0;
    for frame in slow.all() {
        let seq = frame["seq"].as_u64().unwrap();
        match frame["type"].as_str().unwrap() {
            "STREAM_SNAPSHOT" => {
                snapshots += 1;
                values =
                    frame["events"].as_array().unwrap().iter().map(|event| event["value"].clone()).collect();
            }
            "STREAM_EVENT" => {
                assert_eq!(seq, at + 1);
                values.push(frame["event"]["value"].clone());
            }
            _ => assert_eq!(frame["persisted"], true),
        }
        at = seq;
    }
    assert!(snapshots >= 1, "it was reset");
    assert_eq!(values, (1..=400_u64).map(Value::from).collect::<Vec<_>>());
}

#[test]
fn observers_that_attach_at_any_moment_have_the_same_state() {
    let served = serve(&[]);
    let run = served.start("c", "{}");
    let (attached, arrivals) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let follow = |attached: std::sync::mpsc::Sender<()>| {
            let mut values: Vec<u64> = Vec::new();
            let mut stream = served.live("c", "");
            while let Some(frame) = stream.data() {
                if let Some(events) = frame["events"].as_array() {
                    values = events.iter().map(|event| event["value"].as_u64().unwrap()).collect();
                    attached.send(()).unwrap();
                } else if let Some(value) = frame["event"]["value"].as_u64() {
                    values.push(value);
                }
            }
            values
        };
        let mut observers = Vec::new();
        for value in 1..=300_u64 {
            if value % 5 == 0 {
                let attached = attached.clone();
                observers.push(scope.spawn(move || follow(attached)));
            }
            served.append(&run, &[&number(value)]);
        }
        for _ in &observers {
            arrivals.recv().unwrap();
        }
        assert!(served.finish(&run));
        for observer in observers {
            assert_eq!(observer.join().unwrap(), (1..=300).collect::<Vec<u64>>());
        }
    });
}

#[test]
fn racing_probes_get_the_stream_from_the_start_or_204() {
    let served = serve(&[]);
    for round in 0..1_250 {
        let chat = format!("chat{round}");
        std::thread::scope(|scope| {
            let probes: Vec<_> = (0..8)
                .map(|probe| {
                    let (served, chat) = (&served, &chat);
                    let wait = if probe % 2 == 0 { ",\"wait_ms\":20" } else { "" };
                    scope.spawn(move || {
                        let mut stream = served.live(chat, wait);
                        if stream.head.status == 204 { Vec::new() } else { stream.all() }
                    })
                })
                .collect();
            let run = served.start(&chat, "{}");
            served.append_numbers(&run, 1, 2);
            assert!(served.finish(&run));
            for probe in probes {
                let frames = probe.join().unwrap();
                let Some(first) = frames.first() else { continue };
                assert_eq!(first["type"], "STREAM_SNAPSHOT");
                let snapshot = first["events"].as_array().unwrap().len() as u64;
                assert_eq!(first["seq"].as_u64(), Some(snapshot));
                assert_eq!(frames.last().unwrap()["seq"], 2);
                assert_eq!(frames.len() as u64, 2 + 2 - snapshot, "{frames:?}");
            }
        });
    }
}

#[test]
fn history_that_is_read_after_the_end_has_the_turn() {
    let served = server::serve_with_db("chats.db", &[]);
    for round in 0..30 {
        let chat = format!("chat{round}");
        let run = served.start(&chat, "{}");
        let mut stream = served.live(&chat, "");
        served.append_numbers(&run, 1, 1);
        std::thread::scope(|scope| {
            scope.spawn(|| served.finish(&run));
            let end = stream.all().pop().unwrap();
            assert_eq!(end["persisted"], true);
            let (status, history) = served.ask(&format!("GET /chats/{chat}"), "");
            assert_eq!((status, &history["turns"][0]["run_id"]), (200, &Value::from(run.as_str())));
        });
    }
}

#[test]
fn a_client_that_goes_away_disturbs_nobody() {
    let (served, run) = with_run(&[]);
    let mut steady = served.live("c", "");
    assert_eq!(steady.short(), "S3");
    for number in 0..200_u64 {
        let mut conn = served.connect();
        match number % 4 {
            0 => conn.send(b"POST /chat/li"),
            1 => {
                conn.send(&request("POST /chat/live", "application/json", r#"{"chat_id":"c","protocol":1}"#))
            }
            2 => conn.send(b"\x16\x03\x01garbage"),
            _ => {}
        }
        drop(conn);
    }
    assert_eq!(served.ask("GET /healthz", ""), (200, serde_json::json!({"status": "ok"})));
    served.append_numbers(&run, 4, 1);
    assert_eq!(steady.short(), "E4");
}

#[test]
fn deleting_a_chat_ends_its_run_unsaved() {
    let (served, run) = with_run(&[]);
    let mut stream = served.live("c", "");
    assert_eq!(stream.short(), "S3");
    assert_eq!(served.ask("DELETE /chats/c", "").0, 204);
    assert_eq!(stream.shorts(2), "X3 -");
    check(&served, &cursor(&run, 1), "204");
    assert_eq!(served.ask("GET /chats/c", "").0, 404);
    let (status, answer) = served.ask(&format!("POST /runs/{run}/finish"), "");
    assert_eq!((status, &answer["error"]["state"]), (409, &Value::from("deleted")));
}

#[test]
fn a_signal_closes_saves_and_tells() {
    let mut served = server::serve_with_db("chats.db", &[]);
    let run = served.start("c", "{}");
    served.append(&run, &[r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#]);
    let mut framed = served.live("c", "");
    let mut legacy = served.live_body(r#"{"chat_id":"c"}"#);
    assert_eq!(framed.short(), "S1");
    assert!(legacy.data().is_some());
    assert!(served.terminate(), "it ends well");
    let error = framed.data().unwrap();
    assert_eq!(error["event"]["code"], "shutdown");
    assert_eq!(framed.shorts(2), "X2p -");
    assert_eq!(legacy.all().last().unwrap()["code"], "shutdown");
    assert!(!legacy.complete, "a legacy stream that a shutdown cut must not look complete");
    let db = rusqlite::Connection::open(served.dir.join("chats.db")).unwrap();
    let closed: String = db.query_row("SELECT closed FROM turns", [], |row| row.get(0)).unwrap();
    assert_eq!(closed, "shutdown");
}
