//! What a peer must not be able to do, and what it is told: rows as raw bytes against the real binary, each with its
//! name. The framing of requests in general is in `http.rs`; here are bodies, their JSON, and memory.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "support/server.rs"]
mod server;

use serde_json::{Value, json};

use server::{Conn, Served, request, serve};

/// Sends bytes; status, whether the answer closes, and the error's code.
fn answer(served: &Served, bytes: &[u8]) -> (u16, bool, Value) {
    let mut conn = served.connect();
    conn.send(bytes);
    let head = conn.head();
    let closes = head.field("Connection") == Some("close");
    (head.status, closes, conn.json(&head)["error"]["code"].take())
}

/// A request with a JSON body of any bytes.
fn with_body(line: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

#[test]
fn a_refused_body_is_never_read_as_the_next_request() {
    let served = serve(&[]);
    let run = served.start("kept", "{}");
    let smuggled = "DELETE /chats/kept HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let rows = [
        ("both, length first", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"),
        ("both, chunked first", "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n"),
        ("two lengths", "Content-Length: 0\r\nContent-Length: 52\r\n"),
        ("two lengths in one field", "Content-Length: 0, 52\r\n"),
        ("a length that is none", "Content-Length: -1\r\n"),
        ("two codings", "Transfer-Encoding: chunked, identity\r\n"),
        ("chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        ("a coding with a space before its colon", "Transfer-Encoding : chunked\r\n"),
        ("a coding behind a bare LF", "X: 1\nTransfer-Encoding: chunked\r\n"),
        ("a folded coding", "Transfer-Encoding:\r\n chunked\r\n"),
    ];
    for (name, fields) in rows {
        let bytes = format!("POST /chat/live HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n{smuggled}");
        let mut conn = served.connect();
        conn.send(bytes.as_bytes());
        let head = conn.head();
        assert!([400, 501].contains(&head.status), "{name}: {}", head.text);
        assert_eq!(head.field("Connection"), Some("close"), "{name}");
        conn.body(&head);
        assert!(conn.is_closed(), "{name}: one answer, no second");
        assert_eq!(served.ask(&format!("GET /runs/{run}"), "").0, 200, "{name}: the chat is still there");
    }
}

#[test]
fn a_head_without_end_is_refused_at_its_budget() {
    let served = serve(&[]);
    let rows = [
        ("a line without end", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", "x", 431),
        ("fields without end", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n", "X: 1\r\n", 431),
        ("a target without end", "GET /", "x", 414),
        ("a method without end", "", "X", 501),
    ];
    for (name, start, again, status) in rows {
        let endless = start.to_owned() + &again.repeat(40_000 / again.len());
        assert_eq!(answer(&served, endless.as_bytes()).0, status, "{name}");
    }
}

#[test]
fn json_of_a_request_has_to_be_json() {
    let served = serve(&[]);
    let deep = [b"{\"chat_id\":".as_slice(), &b"[".repeat(30_000), &b"]".repeat(30_000), b"}"].concat();
    let rows: [(&str, &[u8]); 8] = [
        ("empty", b""),
        ("NaN", b"{\"chat_id\":\"c\",\"wait_ms\":NaN}"),
        ("invalid UTF-8", b"{\"chat_id\":\"\xff\"}"),
        ("a surrogate in UTF-8", b"{\"chat_id\":\"\xed\xa0\xbd\"}"),
        ("half a surrogate pair as an id", b"{\"chat_id\":\"\\ud83d\"}"),
        ("a raw newline in a string", b"{\"chat_id\":\"a\nb\"}"),
        ("NUL", b"{\"chat_id\":\"a\0b\"}"),
        ("nesting", &deep),
    ];
    for line in ["POST /chat/live", "POST /chat/send", "POST /chat/stop", "POST /chat/respond", "POST /agui"]
    {
        for (name, body) in rows {
            let (status, _, code) = answer(&served, &with_body(line, body));
            assert_eq!((status, code), (400, json!("bad_request")), "{line}, {name}");
        }
    }
    for number in ["18446744073709551616", "-1", "1.5", "1e308"] {
        let body = format!(r#"{{"chat_id":"c","protocol":1,"run_id":"r","after_seq":{number}}}"#);
        assert_eq!(answer(&served, &with_body("POST /chat/live", body.as_bytes())).0, 400, "{number}");
    }
}

#[test]
fn an_event_of_the_largest_size_is_taken_and_one_byte_more_is_not() {
    let event = r#"{"type":"CUSTOM","name":"n","value":1}"#;
    let limit = event.len();
    let served = serve(&["--event-bytes-max", &limit.to_string()]);
    let run = served.start("c", "{}");
    served.append(&run, &[event]);
    let larger = event.replace('1', "10") + "\n";
    let bytes = request(&format!("POST /runs/{run}/events"), "application/x-ndjson", &larger);
    assert_eq!(answer(&served, &bytes), (413, true, json!("event_too_large")));
    served.append(&run, &[event]);
}

#[test]
fn a_run_of_the_largest_size_is_taken_and_one_event_more_is_not() {
    let event = r#"{"type":"CUSTOM","name":"n","value":1}"#;
    let limit = 3 * event.len();
    let served = serve(&["--event-bytes-max", "40", "--run-bytes-max", &limit.to_string()]);
    let run = served.start("c", "{}");
    served.append(&run, &[event; 3]);
    let bytes = request(&format!("POST /runs/{run}/events"), "application/x-ndjson", &format!("{event}\n"));
    let (status, _, code) = answer(&served, &bytes);
    assert_eq!((status, code), (413, json!("run_too_large")));
}

/// A slow body: so many bytes of a request for a turn that never gets complete.
fn part_of_a_body(served: &Served, bytes: usize) -> Conn {
    let mut conn = served.connect();
    conn.send(
        b"POST /chat/send HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20000000\r\n\r\n",
    );
    conn.send(&vec![b' '; bytes]);
    conn
}

fn held(served: &Served) -> u64 {
    served.ask("GET /status", "").1["memory_bytes"].as_u64().unwrap()
}

/// Opens slow bodies, one after the other, until the memory is used up.
fn fill(served: &Served, ceiling: u64) -> Vec<Conn> {
    const PART: usize = 60_000;
    let mut swarm = Vec::new();
    for _ in 0..2 * ceiling / PART as u64 {
        let before = held(served);
        swarm.push(part_of_a_body(served, PART));
        // When it holds that much, all of this body was read, and nothing about it changes any more.
        let settled = (0..400).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            held(served) >= before + PART as u64
        });
        if settled && held(served) >= ceiling {
            return swarm;
        }
    }
    panic!("the slow bodies do not count");
}

#[test]
fn a_swarm_of_slow_bodies_does_not_pass_the_memory_ceiling_and_hurts_no_running_run() {
    let ceiling = 1_000_000;
    let served = serve(&[
        "--memory-max",
        &ceiling.to_string(),
        "--run-bytes-max",
        "500000",
        "--event-bytes-max",
        "1000",
    ]);
    let run = served.start("running", "{}");
    let mut stream = served.live("running", "");
    assert_eq!(stream.short(), "S0");
    let swarm = fill(&served, ceiling);
    for _ in 0..20 {
        let mut late = part_of_a_body(&served, 512 << 10);
        let head = late.head();
        assert_eq!((head.status, head.field("Connection")), (503, Some("close")), "{}", head.text);
        assert!(head.field("Retry-After").is_some(), "{}", head.text);
        assert_eq!(late.json(&head)["error"]["code"], "out_of_memory");
    }
    assert!(held(&served) < ceiling + 200_000, "{} bytes are held", held(&served));
    assert_eq!(served.ask("POST /chats/new/runs", "{}").0, 503, "a new run is refused");
    served.append_numbers(&run, 1, 1);
    assert_eq!(stream.short(), "E1", "the running one goes on");
    assert!(served.finish(&run));
    drop(swarm);
    let room_again = (0..2_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        served.ask("POST /chats/later/runs", "{}").0 == 201
    });
    assert!(room_again, "the memory of bodies that broke off came back");
}

#[test]
fn an_event_that_is_no_json_is_named_by_its_line_and_the_one_before_it_stays() {
    let served = serve(&[]);
    let deep =
        [br#"{"type":"X","a":"#.as_slice(), &b"[".repeat(200_000), &b"]".repeat(200_000), b"}"].concat();
    let rows: [(&str, &[u8]); 13] = [
        ("invalid UTF-8", b"{\"type\":\"X\",\"a\":\"\xff\"}"),
        ("an overlong UTF-8", b"{\"type\":\"X\",\"a\":\"\xc0\xaf\"}"),
        ("a surrogate in UTF-8", b"{\"type\":\"X\",\"a\":\"\xed\xa0\xbd\"}"),
        ("NUL in a string", b"{\"type\":\"X\",\"a\":\"\0\"}"),
        ("NUL between members", b"{\"type\":\"X\",\0\"a\":1}"),
        ("a raw newline in a string", b"{\"type\":\"X\",\"a\":\"\n\"}"),
        ("a raw tab in a string", b"{\"type\":\"X\",\"a\":\"\t\"}"),
        ("NaN", b"{\"type\":\"X\",\"a\":NaN}"),
        ("a leading zero", b"{\"type\":\"X\",\"a\":01}"),
        ("an unknown escape", b"{\"type\":\"X\",\"a\":\"\\x41\"}"),
        ("nesting", &deep),
        ("a type that is no text", b"{\"type\":7}"),
        ("a comma too much", b"{\"type\":\"X\",}"),
    ];
    for (index, (name, row)) in rows.into_iter().enumerate() {
        let run = served.start(&format!("c{index}"), "{}");
        let body = [server::number(1).as_bytes(), b"\n", row, b"\n"].concat();
        let (status, told) = push(&served, &run, &body);
        assert_eq!((status, &told["error"]["code"]), (400, &json!("bad_event")), "{name}: {told}");
        assert_eq!(
            (&told["error"]["line"], &told["error"]["next"]),
            (&json!(2), &json!(2)),
            "{name}: {told}"
        );
    }
}

/// Appends these bytes to a run.
fn push(served: &Served, run: &str, body: &[u8]) -> (u16, Value) {
    let head = format!(
        "POST /runs/{run}/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut conn = served.connect();
    conn.send(&[head.as_bytes(), body].concat());
    let head = conn.head();
    (head.status, conn.json(&head))
}

#[test]
fn a_broken_request_is_refused_the_same_wherever_it_is_cut() {
    let served = serve(&[]);
    let rows = [
        (
            "two lengths",
            "POST /chat/live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            400,
        ),
        (
            "an unknown coding",
            "POST /chat/live HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xyz\r\n\r\n",
            501,
        ),
        ("a bare LF", "GET /healthz HTTP/1.1\r\nHost: localhost\nX: 1\r\n\r\n", 400),
        ("a folded line", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: 1\r\n 2\r\n\r\n", 400),
        ("an odd target", "GET healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("a tunnel", "CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 501),
    ];
    for (name, bytes, status) in rows {
        for at in 1..bytes.len() {
            let mut conn = served.connect();
            let (first, second) = bytes.as_bytes().split_at(at);
            conn.send(first);
            conn.send(second);
            assert_eq!(conn.head().status, status, "{name}, cut at {at}");
        }
    }
}
