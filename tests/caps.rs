//! Caps, against the real binary: at a cap the newcomer is told when to come back, and nobody who is there notices.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "support/server.rs"]
mod server;

use std::collections::BTreeSet;
use std::time::Duration;

use rejoin::limits::{RETRY_AFTER_S_MAX, RETRY_AFTER_S_MIN};
use server::{Conn, Served, request, serve};

/// That this is the answer of a cap; the seconds until the newcomer may come again.
fn check(conn: &mut Conn, code: &str, closes: bool) -> u64 {
    let head = conn.head();
    assert_eq!(head.status, 503, "{}", head.text);
    let after = head.field("Retry-After").expect("it says when to come back").parse().unwrap();
    assert!((RETRY_AFTER_S_MIN..=RETRY_AFTER_S_MAX).contains(&after), "{after}");
    let error = conn.json(&head);
    assert_eq!(error["error"]["code"], code);
    assert_eq!(head.field("Connection") == Some("close"), closes);
    assert!(!closes || conn.is_closed());
    after
}

fn live(served: &Served, body: &str) -> Conn {
    let mut conn = served.connect();
    conn.send(&request("POST /chat/live", "application/json", body));
    conn
}

#[test]
fn beyond_the_connections_a_newcomer_is_told_so_and_nobody_has_to_go() {
    let served = serve(&["--connections-max", "3"]);
    let run = served.start("c", "{}");
    let mut stream = served.live("c", "");
    assert_eq!(stream.short(), "S0");
    let mut idle = served.connect();
    let mut producer = served.connect();
    let size = 1_000;
    producer.send(
        format!(
            "POST /runs/{run}/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n\
             Content-Length: {size}\r\n\r\n{}\n",
            server::number(1)
        )
        .as_bytes(),
    );
    assert_eq!(stream.short(), "E1");
    let mut delays = BTreeSet::new();
    for _ in 0..30 {
        let mut conn = live(&served, r#"{"chat_id":"c","protocol":1}"#);
        delays.insert(check(&mut conn, "too_many_connections", true));
    }
    assert!(delays.len() > 3, "equal delays make herds return together: {delays:?}");
    // A request with a body that is never sent, and an operator's question.
    let mut large = served.connect();
    large.send(&request("POST /chat/send", "application/json", "")[..60]);
    large.send(b"\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n");
    let mut health = served.connect();
    health.send(&request("GET /healthz", "", ""));
    let head = health.head();
    assert_eq!((head.status, head.field("Connection")), (200, Some("close")));
    // Those who were there go on.
    producer.send(format!("{}\n", server::number(2)).as_bytes());
    assert_eq!(stream.short(), "E2");
    idle.send(&request("GET /healthz", "", ""));
    assert_eq!(idle.head().status, 200);
    // A place that is free again is given to the next.
    drop(idle);
    let again = (0..200).find_map(|_| {
        let mut conn = live(&served, r#"{"chat_id":"c","protocol":1}"#);
        let status = conn.head().status;
        std::thread::sleep(Duration::from_millis(5));
        (status == 200).then_some(conn)
    });
    assert!(again.is_some());
}

#[test]
fn who_says_nothing_at_the_cap_is_told_too() {
    let served = serve(&["--connections-max", "1"]);
    let mut first = served.connect();
    first.send(&request("GET /healthz", "", ""));
    assert_eq!(first.head().status, 200);
    let (mut silent, mut half) = (served.connect(), served.connect());
    half.send(b"GET /healthz HT");
    check(&mut silent, "too_many_connections", true);
    check(&mut half, "too_many_connections", true);
}

#[test]
fn a_chat_has_so_many_observers_and_no_more() {
    let served = serve(&["--observers-per-chat", "3"]);
    let mut waiting = served.probe("c", r#","wait_ms":20000"#);
    served.start("other", "{}");
    let run = served.start("c", "{}");
    let head = waiting.head();
    assert_eq!(head.status, 200);
    let mut second = served.live("c", "");
    let mut third = served.live_get(&format!("chat_id=c&run_id={run}&after_seq=0"), None);
    let mut newcomer = live(&served, r#"{"chat_id":"c","protocol":1}"#);
    check(&mut newcomer, "too_many_observers", false);
    assert_eq!(served.live("other", "").short(), "S0", "another chat is not concerned");
    served.append_numbers(&run, 1, 1);
    assert_eq!(second.shorts(2), "S0 E1");
    assert_eq!(third.short(), "E1");
    drop(third);
    // Who closes may still read: that it is gone shows when it is written to.
    let again = (2..200).find_map(|seq| {
        served.append_numbers(&run, seq, 1);
        newcomer.send(&request("POST /chat/live", "application/json", r#"{"chat_id":"c","protocol":1}"#));
        let head = newcomer.head();
        newcomer.body(&head);
        std::thread::sleep(Duration::from_millis(5));
        (head.status == 200).then_some(())
    });
    assert!(again.is_some(), "the connection of a refusal can be used again");
}

#[test]
fn so_many_requests_wait_and_no_more() {
    let served = serve(&["--waiting-max", "2", "--observers-per-chat", "1"]);
    let wait = |chat: &str| live(&served, &format!(r#"{{"chat_id":"{chat}","protocol":1,"wait_ms":20000}}"#));
    let mut first = served.probe("a", r#","wait_ms":20000"#);
    check(&mut wait("a"), "too_many_observers", false);
    let mut second = served.probe("b", r#","wait_ms":20000"#);
    check(&mut wait("d"), "too_many_waiting", false);
    let (status, _) = served.ask("POST /chat/live", r#"{"chat_id":"d","protocol":1}"#);
    assert_eq!(status, 204, "who does not wait takes no place");
    served.start("a", "{}");
    assert_eq!(first.head().status, 200);
    let third = served.probe("d", r#","wait_ms":20000"#);
    check(&mut wait("e"), "too_many_waiting", false);
    drop(third);
    served.start("b", "{}");
    assert_eq!(second.head().status, 200);
}

#[test]
fn every_503_says_when_to_come_back() {
    let served = serve(&["--memory-max", "0"]);
    let mut conn = served.connect();
    conn.send(&request("POST /chats/c/runs", "application/json", "{}"));
    check(&mut conn, "out_of_memory", false);
    conn.send(&request("POST /chats/c/runs?stream=1", "application/x-ndjson", "{\"type\":\"X\"}\n"));
    check(&mut conn, "out_of_memory", true);
    let mut conn = served.connect();
    conn.send(&request("POST /chat/send", "application/json", r#"{"chat_id":"c","message":"x"}"#));
    check(&mut conn, "no_agent", false);
}
