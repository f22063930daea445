//! Cancelled turns and slow readers.

use std::io::Write;
use std::time::Duration;

use crossbeam_channel::{bounded, never};
use ureq::tls::RootCerts;

use super::agent::{Agent, LAST, SSE, chunk, closed, say};
use super::{PATIENCE, PROMPT, Turn, order};
use crate::turns::{Decision, TurnControl};

const SILENCE_MS: u64 = 60_000;

/// Cancels a turn when the agent has said this and goes on to wait: the turn and its reading thread end, and the agent
/// sees the connection close, all at once.
fn check(said: &'static str, events: usize, cancel: impl FnOnce(Turn) -> Turn) {
    let (say_ready, ready) = bounded(1);
    let (say_closed, is_closed) = bounded(1);
    let agent = Agent::asked(move |mut stream| {
        say(&mut stream, &[said.as_bytes()]);
        say_ready.send(()).unwrap();
        closed(&stream);
        say_closed.send(()).unwrap();
    });
    let turn = Turn::begin(order(&agent.url(), SILENCE_MS), RootCerts::PlatformVerifier);
    ready.recv_timeout(PATIENCE).unwrap();
    for _ in 0..events {
        turn.next().expect("the event is told");
    }
    let turn = cancel(turn);
    is_closed.recv_timeout(PROMPT).expect("the agent sees the connection close");
    turn.assert_over();
    assert_eq!(turn.messages.iter().count(), 0, "nothing is told after a cancel");
    agent.join();
}

fn cancel(turn: Turn) -> Turn {
    turn.control.send(TurnControl::Cancel).unwrap();
    turn
}

#[test]
fn before_the_head() {
    check("", 0, cancel);
    check("HTTP/1.1 200 OK\r\nContent-Ty", 0, cancel);
}

#[test]
fn in_the_middle_of_the_body() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    check(HEAD, 0, cancel);
    check(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"type\":\"A\"}\n\ndata:",
        1,
        cancel,
    );
    check("HTTP/1.1 500 Oops\r\nContent-Length: 9\r\n\r\n", 0, cancel);
}

#[test]
fn a_server_that_is_gone_is_a_cancel() {
    check("", 0, |mut turn| {
        turn.control = bounded(0).0;
        turn
    });
}

#[test]
fn a_fault_closes_the_connection_too() {
    let agent = Agent::asked(|mut stream| {
        say(&mut stream, &[(SSE.to_owned() + &chunk("data: no\n\n")).as_bytes()]);
        closed(&stream);
    });
    let turn = Turn::begin(order(&agent.url(), SILENCE_MS), RootCerts::PlatformVerifier);
    assert!(turn.next().is_some_and(|told| told.starts_with("agent_error")));
    turn.assert_over();
    agent.join();
}

#[test]
#[cfg(target_os = "linux")]
fn before_the_connection_is_there() {
    use std::net::{SocketAddr, TcpListener, TcpStream};

    // With its backlog full a listener answers no further connection: the turn waits for one.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    socket.listen(0).unwrap();
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().unwrap();
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok();
    let waiting: Vec<_> = (0..4).map_while(|_| connect()).collect();
    assert!(waiting.len() < 4, "the backlog is full");
    let turn = Turn::begin(order(&format!("http://{address}/"), SILENCE_MS), RootCerts::PlatformVerifier);
    std::thread::sleep(Duration::from_millis(50));
    let turn = cancel(turn);
    let over = turn.running.recv_timeout(PROMPT);
    assert!(over.is_err_and(|error| error.is_disconnected()), "nobody waits for the connection");
    // There is room now, and the connection comes after all: nothing is asked any more.
    for _ in &waiting {
        listener.accept().unwrap();
    }
    closed(&listener.accept().unwrap().0);
    turn.assert_over();
}

#[test]
fn an_answer_to_no_question_changes_nothing() {
    let (go, may_go) = bounded::<()>(1);
    let agent = Agent::asked(move |mut stream| {
        may_go.recv_timeout(PATIENCE).unwrap();
        say(&mut stream, &[(SSE.to_owned() + LAST).as_bytes()]);
    });
    let turn = Turn::begin(order(&agent.url(), SILENCE_MS), RootCerts::PlatformVerifier);
    let answer = TurnControl::Answer { request: "q".to_owned(), answer: Decision::Cancelled };
    turn.control.send(answer).unwrap();
    go.send(()).unwrap();
    assert_eq!(turn.rest(&agent.host), ["done"]);
    agent.join();
}

#[test]
fn a_fast_agent_is_held_back() {
    /// More than systems buffer at the two ends of a loopback connection.
    const BYTES: usize = 64 << 20;
    let agent = Agent::asked(|mut stream| {
        stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").unwrap();
        let events = "data: {\"type\":\"A\"}\n\n".repeat(1000);
        let mut written = 0;
        while written < BYTES {
            match stream.write(events.as_bytes()) {
                Ok(count) => written += count,
                Err(_) => break,
            }
        }
        written
    });
    let (let_go, may_go) = bounded::<()>(0);
    let deliver = move |_| {
        let _ = may_go.recv();
        false
    };
    let turn =
        Turn::with_sink(order(&agent.url(), SILENCE_MS), RootCerts::PlatformVerifier, never(), deliver);
    let written = agent.join();
    assert!(written < BYTES, "the agent's writes block");
    drop(let_go);
    turn.assert_over();
}
