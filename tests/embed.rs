//! Producers in the same process: `rejoin::producer`, as an embedding back end uses it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use rejoin::producer::{Producer, ProducerError, RunOptions};
use rejoin::{Server, ServerConfig};

fn server() -> Server {
    Server::start(ServerConfig::default()).expect("a server starts on loopback")
}

/// One request on a connection of its own; the whole answer as text.
fn ask(address: SocketAddr, request_line: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "{request_line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn live(address: SocketAddr, cursor: &str) -> String {
    ask(address, "POST /chat/live", &format!("{{\"chat_id\":\"c\",\"protocol\":1{cursor}}}"))
}

fn start(server: &Server) -> Producer {
    server.handle().start("c", RunOptions::default()).expect("no run is active")
}

const RUN_STARTED: &[u8] = br#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const RUN_FINISHED: &[u8] = br#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;

#[test]
fn a_run_is_written_observed_and_saved() {
    let server = server();
    let mut run = start(&server);
    let run_id = run.run_id();
    run.append(RUN_STARTED).unwrap();
    run.append(br#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#).unwrap();
    for word in ["so ", "it ", "goes"] {
        let event = format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"{word}"}}"#);
        run.append(event.as_bytes()).unwrap();
    }
    run.append(br#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#).unwrap();
    run.append(RUN_FINISHED).unwrap();
    let end = run.finish().unwrap();
    assert_eq!((end.seq, end.persisted), (7, true));

    let seen = live(server.address(), &format!(",\"run_id\":\"{run_id}\",\"after_seq\":6"));
    assert!(seen.contains(r#""seq":7,"event":{"type":"RUN_FINISHED""#), "{seen}");
    assert!(seen.contains(r#""type":"STREAM_END""#) && seen.contains(r#""persisted":true"#), "{seen}");
    let history = ask(server.address(), "GET /chats/c", "");
    assert!(history.contains(r#""content":"so it goes""#), "{history}");
    server.stop().unwrap();
}

#[test]
fn a_faulty_event_is_refused_where_it_was_made_and_the_run_goes_on() {
    let server = server();
    let mut run = start(&server);
    for bad in [&b"not json"[..], b"[]", b"{}", b"{\"type\":1}", b"{\"type\":\"X\",\"a\":\"\xff\"}"] {
        assert!(
            matches!(run.append(bad), Err(ProducerError::BadEvent(_))),
            "{}",
            String::from_utf8_lossy(bad)
        );
    }
    let large = format!(r#"{{"type":"X","a":"{}"}}"#, "x".repeat(1 << 20));
    assert!(matches!(run.append(large.as_bytes()), Err(ProducerError::BadEvent(_))));
    run.append(RUN_STARTED).unwrap();
    run.append(RUN_FINISHED).unwrap();
    assert_eq!(run.finish().unwrap().seq, 2);
    server.stop().unwrap();
}

#[test]
fn only_one_run_of_a_chat_is_open_unless_it_is_superseded() {
    let server = server();
    let mut old = start(&server);
    old.append(RUN_STARTED).unwrap();
    let refused = server.handle().start("c", RunOptions::default()).unwrap_err();
    assert!(matches!(refused, ProducerError::Refused("already_streaming", _)), "{refused}");
    assert_eq!(server.handle().start("", RunOptions::default()).unwrap_err(), ProducerError::BadChatId);

    let new = server.handle().start("c", RunOptions { supersede: true, ..RunOptions::default() }).unwrap();
    let late = loop {
        // The reply that the run is over may still be on its way.
        if let Err(late) = old.append(RUN_FINISHED) {
            break late;
        }
    };
    assert_eq!(late, ProducerError::Over("superseded"));
    drop(old);
    assert!(new.finish().unwrap().persisted);
    server.stop().unwrap();
}

#[test]
fn a_producer_that_fails_or_vanishes_leaves_a_closed_and_saved_run() {
    let server = server();
    let mut failed = start(&server);
    failed.append(RUN_STARTED).unwrap();
    failed.append(br#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#).unwrap();
    assert_eq!(failed.fail("the model is out of breath").unwrap().seq, 4);

    let mut vanished = start(&server);
    vanished.append(RUN_STARTED).unwrap();
    let run_id = vanished.run_id();
    drop(vanished);

    let seen = live(server.address(), &format!(",\"run_id\":\"{run_id}\",\"after_seq\":1"));
    assert!(seen.contains(r#""code":"producer_lost""#) && seen.contains("STREAM_END"), "{seen}");
    let history = ask(server.address(), "GET /chats/c", "");
    for part in
        [r#""closed":"agent_error""#, r#""closed":"producer_lost""#, "TEXT_MESSAGE_END", "out of breath"]
    {
        assert!(history.contains(part), "{part} in {history}");
    }
    server.stop().unwrap();
}

#[test]
fn many_producers_push_more_than_fits_and_nothing_is_lost() {
    const EVENTS: u64 = 3_000;
    let server = server();
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let handle = server.handle();
            std::thread::spawn(move || {
                let mut run = handle.start(&format!("chat {number}"), RunOptions::default()).unwrap();
                run.append(RUN_STARTED).unwrap();
                for _ in 2..EVENTS {
                    let event = format!(r#"{{"type":"CUSTOM","name":"n","value":"{}"}}"#, "x".repeat(1_000));
                    run.append(event.as_bytes()).unwrap();
                }
                run.append(RUN_FINISHED).unwrap();
                run.finish().unwrap()
            })
        })
        .collect();
    for thread in threads {
        let end = thread.join().unwrap();
        assert_eq!((end.seq, end.persisted), (EVENTS, true));
    }
    server.stop().unwrap();
}

#[test]
fn a_stopped_server_says_so_to_its_producers() {
    let server = server();
    let handle = server.handle();
    let mut run = start(&server);
    run.append(RUN_STARTED).unwrap();
    server.stop().unwrap();
    let error = run.append(RUN_FINISHED).unwrap_err();
    assert!(matches!(error, ProducerError::Over("finalizing") | ProducerError::ServerGone), "{error}");
    assert_eq!(handle.start("d", RunOptions::default()).unwrap_err(), ProducerError::ServerGone);
}

/// A server whose runs hold 4,000 bytes, in events of 300.
fn narrow_server() -> Server {
    let mut config = ServerConfig::default();
    config.engine.limits.run_bytes_max = 4_000;
    config.engine.limits.event_bytes_max = 300;
    Server::start(config).expect("a server starts on loopback")
}

fn custom(bytes: usize) -> Vec<u8> {
    format!(r#"{{"type":"CUSTOM","name":"n","value":"{}"}}"#, "x".repeat(bytes)).into_bytes()
}

/// Appends until the producer is told that it can't.
fn append_until_refused(run: &mut Producer, event: &[u8]) -> ProducerError {
    loop {
        if let Err(error) = run.append(event) {
            return error;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_producer_whose_run_is_over_is_told_so_again_and_again() {
    let server = narrow_server();
    for bytes in [200, 400] {
        let mut run = start(&server);
        run.append(RUN_STARTED).unwrap();
        let error = append_until_refused(&mut run, &custom(bytes));
        assert_eq!(error, ProducerError::Over("finalizing"));
        assert_eq!(run.append(RUN_FINISHED).unwrap_err(), error);
        assert_eq!(run.finish().unwrap_err(), error);
    }
    server.stop().unwrap();
}
