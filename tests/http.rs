//! HTTP as raw bytes, against the real binary: what a server must refuse, what it must take, and that one client's
//! fault leaves the others alone. Who may use the server at all is tested in `access/`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "support/server.rs"]
mod server;

use server::{Conn, Served, Stream, number, serve};

/// Sends a request and compares the answer's status and whether the connection is closed behind it; then that an
/// observer on another connection is not disturbed.
fn check(served: &Served, bytes: &[u8], status: u16, closes: bool) {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(120)]).into_owned();
    let mut conn = served.connect();
    conn.send(bytes);
    let head = conn.head();
    assert_eq!(head.status, status, "{shown:?} got {}", head.text);
    let body = conn.body(&head);
    if status >= 400 {
        let error: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert!(
            error["error"]["code"].is_string() && error["error"]["message"].is_string(),
            "{shown:?}: {error}"
        );
    }
    if closes {
        assert_eq!(head.field("Connection"), Some("close"), "{shown:?}");
        assert!(conn.is_closed(), "{shown:?}");
    } else {
        conn.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(conn.head().status, 200, "{shown:?}: the connection goes on");
    }
}

/// A request in pieces: the status of its answer.
fn pieces(served: &Served, pieces: &[&[u8]]) -> u16 {
    let mut conn = served.connect();
    for piece in pieces {
        conn.send(piece);
    }
    conn.head().status
}

const LIVE: &str = "POST /chat/live HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

fn live(fields: &str, body: &str) -> Vec<u8> {
    format!("{LIVE}{fields}\r\n{body}").into_bytes()
}

#[test]
fn heads_that_two_parsers_could_read_differently_are_refused() {
    let served = serve(&[]);
    let get = |rest: &str| format!("GET /healthz HTTP/1.1\r\n{rest}\r\n").into_bytes();
    let refused: Vec<(Vec<u8>, u16)> = vec![
        (live("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "{}"), 400),
        (live("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", "{}"), 400),
        (live("Content-Length: 2\r\nContent-Length: 3\r\n", "{}x"), 400),
        (live("Content-Length: -1\r\n", ""), 400),
        (live("Content-Length: +45\r\n", ""), 400),
        (live("Content-Length: 0x2d\r\n", ""), 400),
        (live("Content-Length: \r\n", ""), 400),
        (live("Transfer-Encoding: gzip, chunked\r\n", ""), 501),
        (live("Transfer-Encoding: chunked, chunked\r\n", ""), 400),
        (live("Transfer-Encoding: xyz\r\n", ""), 501),
        (b"POST /chat/live HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec(), 400),
        (get("Host : localhost\r\n"), 400),
        (get("Host: localhost\r\nX: a\r\n b\r\n"), 400),
        (get("Host: localhost\r\nX: a\rb\r\n"), 400),
        (get("Host: localhost\r\nX: a\0b\r\n"), 400),
        (get("Host: localhost\r\n: x\r\n"), 400),
        (b"GET /healthz HTTP/1.1\nHost: localhost\n\n".to_vec(), 400),
        (get(""), 400),
        (get("Host: localhost\r\nHost: localhost\r\n"), 400),
        (b"BREW /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), 501),
        (b"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), 400),
        (b"GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), 400),
        ("GET /ä HTTP/1.1\r\nHost: localhost\r\n\r\n".as_bytes().to_vec(), 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), 505),
    ];
    for (bytes, status) in &refused {
        check(&served, bytes, *status, true);
    }
}

#[test]
fn bytes_that_are_no_http_are_refused_at_once() {
    let served = serve(&[]);
    for bytes in [&b"\x16\x03\x01\x02\x00\x01"[..], b"\0\0\0\0", b"GET /healthz\r\n\r\n"] {
        let mut conn = served.connect();
        conn.send(bytes);
        assert!(conn.head().status >= 400, "{bytes:?}");
    }
}

#[test]
fn sizes_have_limits_and_each_its_status() {
    let served = serve(&[]);
    let long = |bytes: usize| "x".repeat(bytes);
    let many: String = (0..200).map(|field| format!("X-{field}: 1\r\n")).collect();
    check(&served, format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", long(9_000)).as_bytes(), 414, true);
    let head = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", long(20_000));
    check(&served, head.as_bytes(), 431, true);
    check(&served, format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{many}\r\n").as_bytes(), 431, true);
    check(&served, &live("Content-Length: 10000000000\r\n", "{}"), 413, true);
    check(&served, &live("Content-Length: 18446744073709551616\r\n", "{}"), 413, true);
    let chunk = format!("{:x}\r\n{}\r\n", 70_000, long(70_000));
    check(&served, &live("Transfer-Encoding: chunked\r\n", &chunk), 413, true);
}

#[test]
fn chunks_are_read_strictly() {
    let served = serve(&[]);
    let chunked = |body: &str| live("Transfer-Encoding: chunked\r\n", body);
    let whole = r#"{"chat_id":"c"}"#;
    let size = whole.len();
    check(
        &served,
        &chunked(&format!("{size:x};ext=\"1\"\r\n{whole}\r\n0\r\nX-Trailer: 1\r\n\r\n")),
        204,
        false,
    );
    for bad in [
        "-1\r\n",
        "5 5\r\n",
        "g\r\n",
        "00000000000000001\r\n",
        "ffffffffffffffff\r\n",
        "2\r\n{}x\r\n",
        "2\n{}\r\n",
    ] {
        let mut conn = served.connect();
        conn.send(&chunked(bad));
        let head = conn.head();
        assert!([400, 413].contains(&head.status), "{bad:?} got {}", head.status);
        assert_eq!(head.field("Connection"), Some("close"), "{bad:?}");
    }
    check(&served, &chunked(&format!("2;{}\r\n{{}}\r\n0\r\n\r\n", "x".repeat(65_536))), 400, true);
    let trailers = "X: 1\r\n".repeat(10_000);
    check(&served, &chunked(&format!("{size:x}\r\n{whole}\r\n0\r\n{trailers}\r\n")), 431, true);
}

#[test]
fn a_request_cut_at_every_byte_is_the_same_request() {
    let served = serve(&[]);
    let request = live("Transfer-Encoding: chunked\r\n", "8\r\n{\"chat_i\r\n7\r\nd\":\"c\"}\r\n0\r\n\r\n");
    for at in 1..request.len() {
        let (first, second) = request.split_at(at);
        assert_eq!(pieces(&served, &[first, second]), 204, "cut at {at}");
    }
    let bytes: Vec<&[u8]> = request.chunks(1).collect();
    assert_eq!(pieces(&served, &bytes), 204);
}

#[test]
fn what_is_right_is_taken() {
    let served = serve(&[]);
    for host in ["localhost", "LOCALHOST:1234", "127.0.0.1:8787", "[::1]:8787"] {
        check(&served, format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes(), 200, false);
    }
    check(&served, b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, false);
    check(&served, b"GET /healthz HTTP/1.0\r\n\r\n", 200, true);
    check(&served, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 200, true);
    check(&served, b"OPTIONS /chat/live HTTP/1.1\r\nHost: localhost\r\n\r\n", 204, false);
    check(&served, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody", 200, false);
    check(&served, &live("Content-Length: 15\r\n", r#"{"chat_id":"c"}"#), 204, false);
}

#[test]
fn a_host_that_nobody_configured_is_misdirected() {
    let served = serve(&["--host", "chat.example"]);
    for path in ["/healthz", "/chat/live?chat_id=c", "/chats"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\n\r\n");
        check(&served, request.as_bytes(), 421, false);
    }
    check(&served, b"GET /healthz HTTP/1.1\r\nHost: chat.example:443\r\n\r\n", 200, false);
}

#[test]
fn routes_have_their_methods_and_bodies_their_types() {
    let served = serve(&[]);
    check(&served, b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, false);
    check(&served, b"GET /chats/../healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, true);
    let mut conn = served.connect();
    conn.send(b"DELETE /chat/live HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let head = conn.head();
    assert_eq!((head.status, head.field("Allow")), (405, Some("GET, POST, OPTIONS")));
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        let request = format!(
            "POST /chat/live HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        check(&served, request.as_bytes(), 415, true);
    }
    check(&served, &live("Expect: the-unexpected\r\nContent-Length: 2\r\n", "{}"), 417, true);
    let mut conn = served.connect();
    conn.send(
        b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    );
    let head = conn.head();
    assert_eq!((head.status, head.field("Content-Length")), (200, Some("15")));
    assert_eq!(conn.head().status, 200, "an answer to HEAD has no body");
}

#[test]
fn continue_is_said_before_the_body_or_the_final_status_at_once() {
    let served = serve(&[]);
    let mut conn = served.connect();
    conn.send(&live("Expect: 100-continue\r\nContent-Length: 15\r\n", ""));
    assert_eq!(conn.head().status, 100);
    conn.send(br#"{"chat_id":"c"}"#);
    assert_eq!(conn.head().status, 204);
    let mut conn = served.connect();
    conn.send(&live("Expect: 100-continue\r\nContent-Length: 99999999\r\n", ""));
    assert_eq!(conn.head().status, 413);
}

#[test]
fn pipelined_requests_are_answered_in_order_also_after_a_half_close() {
    let served = serve(&[]);
    let run = served.start("c", "{}");
    let mut conn = served.connect();
    let probe = r#"{"chat_id":"none"}"#;
    let requests = [
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        live(&format!("Content-Length: {}\r\n", probe.len()), probe),
        format!("GET /runs/{run} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes(),
        b"GET /chats HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
    ];
    conn.send(&requests.concat());
    conn.half_close();
    let next = |conn: &mut Conn| {
        let head = conn.head();
        (head.status, conn.json(&head))
    };
    assert_eq!(next(&mut conn).1["status"], "ok");
    assert_eq!(next(&mut conn).0, 204);
    assert_eq!(next(&mut conn).1["run_id"], run.as_str());
    assert!(next(&mut conn).1["chats"].is_array());
    assert!(conn.is_closed());
}

#[test]
fn an_observer_that_half_closes_still_reads() {
    let served = serve(&[]);
    let run = served.start("c", "{}");
    let mut stream = served.live("c", "");
    stream.conn.half_close();
    assert_eq!(stream.short(), "S0");
    served.append_numbers(&run, 1, 1);
    assert!(served.finish(&run));
    assert_eq!(stream.shorts(3), "E1 X1p -");
}

#[test]
fn json_that_is_odd_is_refused_or_passed_on_as_it_is() {
    let served = serve(&[]);
    let run = served.start("c", "{}");
    let deep = format!(r#"{{"type":"X","a":{}{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
    let mut conn = served.connect();
    conn.send(&server::request(&format!("POST /runs/{run}/events"), "application/x-ndjson", &deep));
    assert_eq!(conn.head().status, 400, "200,000 levels");
    let kept = [
        r#"{"type":"X","n":123456789012345678901234567890.5e-3}"#,
        r#"{"type":"X","half":"\ud83d"}"#,
        "{\"type\":\"X\",\"text\":\"\\n\\ndata: x\u{2028}\u{7f}\"}",
        r#"{"type":"X","a":1,"a":2}"#,
    ];
    served.append(&run, &kept);
    let mut stream = Stream::from({
        let mut conn = served.connect();
        conn.send(
            format!("GET /chat/live?chat_id=c&run_id={run}&after_seq=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .as_bytes(),
        );
        conn
    });
    for event in kept {
        let line = stream.message().unwrap().pop().unwrap();
        assert!(line.ends_with(&format!("\"event\":{event}}}")), "{line}");
    }
}

#[test]
fn a_fault_on_one_connection_disturbs_no_other() {
    let served = serve(&[]);
    let run = served.start("c", "{}");
    let mut steady = served.live("c", "");
    assert_eq!(steady.short(), "S0");
    for seq in 1..=50 {
        let mut conn = served.connect();
        conn.send(&live("Transfer-Encoding: chunked\r\n", "zz\r\n"));
        drop(conn);
        served.append(&run, &[&number(seq)]);
        assert_eq!(steady.short(), format!("E{seq}"));
    }
}
