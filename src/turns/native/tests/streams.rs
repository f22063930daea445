//! Answers that are right.

use crossbeam_channel::bounded;
use ureq::tls::RootCerts;

use super::agent::{Agent, LAST, SSE, chunk, request, say};
use super::{PATIENCE, Turn, order};

const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const TEXT: &str = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"日\n"}"#;
const FINISHED: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;

/// Gives this answer in such pieces and compares what the turn tells.
fn check_pieces(pieces: &[&[u8]], expected: &[&str]) {
    let sent: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
    let agent = Agent::asked(move |mut stream| {
        let pieces: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
        say(&mut stream, &pieces);
    });
    let turn = Turn::begin(order(&agent.url(), 20_000), RootCerts::PlatformVerifier);
    let told = turn.rest(&agent.host);
    agent.join();
    assert_eq!(told, expected, "{:?}", pieces.concat().escape_ascii().to_string());
}

fn check(answer: &str, expected: &[&str]) {
    check_pieces(&[answer.as_bytes()], expected);
}

#[test]
fn the_agent_gets_the_input_and_the_headers() {
    let agent = Agent::accepting(|mut stream| {
        let request = request(&stream);
        say(&mut stream, &[(SSE.to_owned() + LAST).as_bytes()]);
        request
    });
    let order = order(&agent.url(), 20_000);
    let host = agent.host.clone();
    assert_eq!(Turn::begin(order.clone(), RootCerts::PlatformVerifier).rest(&host), ["done"]);
    let request = agent.join();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(body.as_bytes(), order.input);
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("POST /agent?key=s3cret HTTP/1.1"));
    let mut fields: Vec<String> = lines.map(str::to_lowercase).collect();
    fields.sort();
    let version = env!("CARGO_PKG_VERSION");
    let expected = [
        "accept: text/event-stream".to_owned(),
        "authorization: bearer s3cret".to_owned(),
        format!("content-length: {}", order.input.len()),
        "content-type: application/json".to_owned(),
        format!("host: {host}"),
        format!("user-agent: rejoin/{version}"),
    ];
    assert_eq!(fields, expected);
}

#[test]
fn a_stream_may_be_cut_anywhere() {
    let body = format!(": hi\r\n\r\ndata: {STARTED}\r\n\r\nid: 1\r\ndata: {TEXT}\r\n\r\n: there\r\n\r\n");
    let end = format!("data: {FINISHED}\n\ndata: [DONE]\n\n");
    let answer = SSE.to_owned() + &chunk(&body) + &chunk(&end) + LAST;
    let expected = [STARTED, TEXT, FINISHED, "done"];
    for cut in 1..answer.len() {
        let (left, right) = answer.as_bytes().split_at(cut);
        check_pieces(&[left, right], &expected);
    }
    let bytes: Vec<&[u8]> = answer.as_bytes().chunks(1).collect();
    check_pieces(&bytes, &expected);
    let small: String = body.chars().map(|c| chunk(&c.to_string())).collect();
    check(&(SSE.to_owned() + &small + &chunk(&end) + LAST), &expected);
}

#[test]
fn bodies_end_in_three_ways_and_come_in_three_formats() {
    let ok = |content_type: &str, more: &str| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n{more}\r\n")
    };
    let sse = format!("data: {STARTED}\n\ndata: {FINISHED}\n\n");
    let length = format!("Content-Length: {}\r\n", sse.len());
    let both = [STARTED, FINISHED, "done"];
    check(&(ok("text/event-stream; charset=utf-8", &length) + &sse), &both);
    check(&(ok("Text/Event-Stream", "Connection: close\r\n") + &sse), &both);
    check(&(ok("application/x-ndjson", "") + &format!("{STARTED}\n{FINISHED}\n")), &both);
    check(&(ok("application/json", "") + &format!("[{STARTED},\n{FINISHED}]")), &both);
    check(&(ok("application/json", "") + STARTED), &[STARTED, "done"]);
    check(&("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n".to_owned() + &sse), &both);
}

#[test]
fn a_body_may_hold_several_runs_or_none_that_finishes() {
    let body = format!("data: {STARTED}\n\ndata: {FINISHED}\n\n");
    let twice = SSE.to_owned() + &chunk(&body) + &chunk(&body) + LAST;
    check(&twice, &[STARTED, FINISHED, STARTED, FINISHED, "done"]);
    check(&(SSE.to_owned() + &chunk(&format!("data: {STARTED}\n\n")) + LAST), &[STARTED, "done"]);
    check(&(SSE.to_owned() + &chunk(&format!("data: {STARTED}")) + LAST), &[STARTED, "done"]);
    check(&(SSE.to_owned() + LAST), &["done"]);
}

#[test]
fn an_event_on_several_lines_becomes_one() {
    let body = "data: {\"type\":\ndata:  \"RUN_STARTED\"}\n\n";
    check(&(SSE.to_owned() + &chunk(body) + LAST), &[r#"{"type": "RUN_STARTED"}"#, "done"]);
}

#[test]
fn an_event_is_told_as_soon_as_it_is_there() {
    let (go, may_go) = bounded::<()>(0);
    let agent = Agent::asked(move |mut stream| {
        say(&mut stream, &[SSE.as_bytes()]);
        for event in [STARTED, TEXT, FINISHED] {
            say(&mut stream, &[chunk(&format!("data: {event}\n\n")).as_bytes()]);
            may_go.recv_timeout(PATIENCE).expect("the event was told");
        }
        say(&mut stream, &[LAST.as_bytes()]);
    });
    let turn = Turn::begin(order(&agent.url(), 20_000), RootCerts::PlatformVerifier);
    for event in [STARTED, TEXT, FINISHED] {
        assert_eq!(turn.next().as_deref(), Some(event));
        go.send(()).unwrap();
    }
    assert_eq!(turn.rest(&agent.host), ["done"]);
    agent.join();
}
