//! Everything that goes wrong, and what a person is told.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use ureq::tls::RootCerts;

use super::agent::{Agent, LAST, SSE, chunk, closed, say};
use super::{Turn, order};
use crate::limits::{AGENT_HEAD_BYTES_MAX, EVENT_BYTES_MAX};
use crate::turns::AgentKind;

const SILENCE_MS: u64 = 20_000;

/// Gives this answer and closes; compares what the turn tells last.
fn check(answer: &str, code: &str, message: &str) {
    let sent = answer.as_bytes().to_vec();
    let agent = Agent::asked(move |mut stream| say(&mut stream, &[&sent]));
    let told = Turn::begin(order(&agent.url(), SILENCE_MS), RootCerts::PlatformVerifier).rest(&agent.host);
    agent.join();
    let expected = format!("{code}: The agent helper at HOST {message}");
    assert_eq!(told.last(), Some(&expected), "{:?}", answer.chars().take(300).collect::<String>());
}

fn stream(body: &str) -> String {
    SSE.to_owned() + &chunk(body) + LAST
}

#[test]
fn agents_that_refuse() {
    let error = r#"{"error": {"message":"no such
        model"}}"#;
    check(
        &format!("HTTP/1.1 422 Unprocessable Entity\r\nContent-Length: {}\r\n\r\n{error}", error.len()),
        "agent_error",
        r#"answered 422 Unprocessable Entity: {"error": {"message":"no such model"}}"#,
    );
    let long = "日".repeat(1000);
    check(
        &format!("HTTP/1.1 500 Oops\r\nContent-Length: 3000\r\n\r\n{long}"),
        "agent_error",
        &format!("answered 500 Internal Server Error: {}", "日".repeat(200)),
    );
    check(
        "HTTP/1.1 503 \r\nContent-Length: 9\r\n\r\ncut",
        "agent_error",
        "answered 503 Service Unavailable: cut",
    );
    check("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "agent_error", "answered 401 Unauthorized");
}

#[test]
fn redirects_are_not_followed() {
    for status in ["301 Moved Permanently", "303 See Other", "307 Temporary Redirect"] {
        check(
            &format!("HTTP/1.1 {status}\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
            "agent_error",
            &format!("answered {status}; redirects are not followed: configure the url it leads to"),
        );
    }
}

#[test]
fn answers_that_hold_no_events() {
    let behind = "an AG-UI agent answers text/event-stream";
    check(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 2\r\n\r\nhi",
        "agent_error",
        &format!("answered text/html; charset=utf-8; {behind}"),
    );
    check("HTTP/1.1 204 None\r\n\r\n", "agent_error", &format!("answered without a content type; {behind}"));
    check(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n\x1f",
        "agent_error",
        "compressed its answer (gzip), which was not asked for: switch that off",
    );
}

#[test]
fn events_that_are_none() {
    let good = "data: {\"type\":\"A\"}\n\n";
    let check = |body: &str, message: &str| {
        check(&stream(body), "agent_error", &format!("sent something that is no event: {message}"));
    };
    check("data: hello\n\n", "event 1: not JSON: unexpected byte or end at offset 0");
    check(&format!("{good}{good}data: {{}}\n\n"), "event 3: an event needs a string member \"type\"");
    check(&format!("{good}data: []\n\n{good}"), "event 2: an event must be a JSON object");
    check(
        &format!("{good}data: {}", "x".repeat(EVENT_BYTES_MAX + 1)),
        "event 2: line 3: the event is longer than 1048576 bytes: split it up",
    );
}

#[test]
fn bodies_that_end_too_early() {
    let cut = "broke off in the middle of its answer";
    let good = "data: {\"type\":\"A\"}\n\n";
    check(&(SSE.to_owned() + &chunk(good)), "agent_error", cut);
    check(&(SSE.to_owned() + "ff\r\n" + good), "agent_error", cut);
    check(SSE, "agent_error", cut);
    check(
        &format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99\r\n\r\n{good}"),
        "agent_error",
        cut,
    );
    check(
        &stream(&format!("{good}data: {{\"type\":")),
        "agent_error",
        "ended its answer in the middle of event 2",
    );
    check(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[{\"type\":\"A\"}",
        "agent_error",
        "sent something that is no event: event 2: line 1: the body ends before its JSON value does: send it whole",
    );
}

#[test]
fn answers_that_are_not_http() {
    let not_http = "does not answer in HTTP that can be read";
    check("", "agent_error", "closed the connection without an answer");
    check("HTTP/1.1 200 OK\r\nContent-", "agent_error", "closed the connection without an answer");
    check(
        "SSH-2.0-x\r\n",
        "agent_error",
        &format!("{not_http}: protocol: http parse fail: invalid HTTP version"),
    );
    check(
        &(SSE.to_owned() + "zz\r\n"),
        "agent_error",
        &format!("{not_http}: protocol: chunk length cannot be read as a number"),
    );
    let long = "x".repeat(AGENT_HEAD_BYTES_MAX);
    let agent = Agent::asked(move |mut stream| {
        say(&mut stream, &[format!("HTTP/1.1 200 OK\r\nX: {long}\r\n\r\n").as_bytes()]);
    });
    let told = Turn::begin(order(&agent.url(), SILENCE_MS), RootCerts::PlatformVerifier).rest(&agent.host);
    assert!(told[0].contains("response header is too big"), "{told:?}");
    agent.join();
}

#[test]
fn a_connection_that_is_reset_is_a_cut() {
    let agent = Agent::asked(|mut stream| {
        say(&mut stream, &[(SSE.to_owned() + &chunk("data: {\"type\":\"A\"}\n\n")).as_bytes()]);
        thread::sleep(Duration::from_millis(50));
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    });
    let told = Turn::begin(order(&agent.url(), SILENCE_MS), RootCerts::PlatformVerifier).rest(&agent.host);
    agent.join();
    let cut = "agent_error: The agent helper at HOST broke off in the middle of its answer";
    assert_eq!(told, [r#"{"type":"A"}"#, cut]);
}

#[test]
fn agents_that_cannot_be_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    drop(listener);
    let told = |url: &str| {
        let turn = Turn::begin(order(url, SILENCE_MS), RootCerts::PlatformVerifier);
        turn.rest(&host).concat()
    };
    let refused = "agent_error: The agent helper at HOST refused the connection: is it running?";
    assert_eq!(told(&format!("http://user:s3cret@{host}/")), refused);
    let lookup = told("http://no-such-host.invalid:81/");
    assert!(
        lookup.starts_with("agent_error: The agent helper at no-such-host.invalid:81 can't be reached: ")
    );
    assert!(lookup.contains("lookup"), "{lookup}");
    let no_url = "has no url that can be asked: it must be http://… or https://…";
    assert_eq!(told("ftp://host/"), format!("agent_error: The agent helper at host {no_url}"));
    assert_eq!(told("/agent"), format!("agent_error: The agent helper {no_url}"));
    assert_eq!(told("no url"), format!("agent_error: The agent helper {no_url}"));
}

#[test]
fn a_header_that_is_none_is_not_shown() {
    let mut order = order("http://127.0.0.1:1/", SILENCE_MS);
    let agent = std::sync::Arc::make_mut(&mut order.agent);
    let headers = vec![("X-Key".to_owned(), "s3cret\n".to_owned())];
    agent.kind = AgentKind::Native { url: "http://127.0.0.1:1/".to_owned(), headers };
    let told = Turn::begin(order, RootCerts::PlatformVerifier).rest("127.0.0.1:1");
    let expected = "can't be asked: a configured header is none that HTTP allows";
    assert_eq!(told, [format!("agent_error: The agent helper at HOST {expected}")]);
}

/// An agent that says these pieces, 100 ms apart, and then nothing: it is given up after 500 ms.
fn check_silent(pieces: &'static [&'static str], events: usize) {
    let agent = Agent::accepting(move |mut stream| {
        for piece in pieces {
            thread::sleep(Duration::from_millis(100));
            say(&mut stream, &[piece.as_bytes()]);
        }
        super::agent::request(&stream);
        closed(&stream);
    });
    let told = Turn::begin(order(&agent.url(), 500), RootCerts::PlatformVerifier).rest(&agent.host);
    agent.join();
    let silent = "timeout: The agent helper at HOST said nothing for 0.5 s and was given up";
    assert_eq!((told.len(), told.last().map(String::as_str)), (events + 1, Some(silent)), "{pieces:?}");
}

#[test]
fn silence_is_counted_from_the_last_byte() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    const COMMENT: &str = ": wait\n";
    const EVENT: &str = "data: {\"type\":\"A\"}\n\n";
    check_silent(&[], 0);
    check_silent(&[HEAD], 0);
    check_silent(&[HEAD, EVENT], 1);
    const ALIVE: &[&str] = &[HEAD, COMMENT, COMMENT, COMMENT, COMMENT, COMMENT, COMMENT, COMMENT, EVENT];
    check_silent(ALIVE, 1);
}
