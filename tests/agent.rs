//! A real AG-UI agent (pydantic-ai, with a scripted model) piped into the real binary, event by event, while observers
//! come, are cut off and come again.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "support/agent.rs"]
mod agent;
#[path = "support/oracle.rs"]
mod oracle;
#[path = "support/server.rs"]
mod server;

use std::net::TcpStream;

use serde_json::{Value, json};
use server::{Conn, Served, Stream, request, serve};

/// Asks the agent something; its answer as a stream of SSE messages.
fn ask(agent: &agent::Agent, prompt: &str) -> Stream {
    let address = agent.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut conn = Conn::new(TcpStream::connect(address).unwrap());
    let input = json!({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": prompt}],
        "tools": [], "context": [], "state": {}, "forwardedProps": {}});
    conn.send(&request("POST /", "application/json", &input.to_string()));
    let stream = Stream::from(conn);
    assert_eq!(stream.head.status, 200, "{}", stream.head.text);
    stream
}

/// Pipes the agent's answer into a chat; each message is passed on as it comes. What was sent, and the answer.
fn pipe(served: &Served, chat: &str, mut answer: Stream) -> (Vec<Value>, Value) {
    let mut conn = served.connect();
    conn.send(
        format!(
            "POST /chats/{chat}/runs?stream=1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/event-stream\r\n\
             Transfer-Encoding: chunked\r\n\r\n"
        )
        .as_bytes(),
    );
    let mut sent = Vec::new();
    while let Some(event) = answer.data() {
        let message = format!("data: {event}\n\n");
        conn.send(format!("{:x}\r\n{message}\r\n", message.len()).as_bytes());
        sent.push(event);
    }
    conn.send(b"0\r\n\r\n");
    let head = conn.head();
    (sent, conn.json(&head))
}

/// Follows a chat from a probe on, cut off after every few frames; the events that the observer holds at the end, and
/// the last frame.
fn follow_with_cuts(
    served: &Served,
    chat: &str,
    probe: Conn,
    frames_per_connection: usize,
) -> (Vec<Value>, Value) {
    let mut events: Vec<Value> = Vec::new();
    let mut stream = Stream::from(probe);
    loop {
        let mut cursor = String::new();
        for _ in 0..frames_per_connection {
            let Some(frame) = stream.data() else { break };
            match frame["type"].as_str().unwrap() {
                "STREAM_SNAPSHOT" => events = frame["events"].as_array().unwrap().clone(),
                "STREAM_EVENT" => events.push(frame["event"].clone()),
                _ => return (events, frame),
            }
            cursor = format!(",\"run_id\":{},\"after_seq\":{}", frame["run_id"], frame["seq"]);
        }
        stream = served.live(chat, &cursor);
    }
}

const WAIT: &str = ",\"wait_ms\":20000";

#[test]
fn an_observer_that_is_cut_again_and_again_has_what_the_agent_said() {
    let agent = agent::Agent::start();
    let served = serve(&["--window-events", "64"]);
    let mut oracle = oracle::Oracle::start();
    for (prompt, cut_after) in [("hello", 1), ("tools", 3), ("utf8", 2), ("long 300", 7), ("boom", 2)] {
        let chat = prompt.replace(' ', "-");
        // Both wait before the run begins: none can miss it.
        let probes = [served.probe(&chat, WAIT), served.probe(&chat, WAIT)];
        std::thread::scope(|scope| {
            let [follower, steady] = probes;
            let follower = scope.spawn(|| follow_with_cuts(&served, &chat, follower, cut_after));
            let steady = scope.spawn(|| follow_with_cuts(&served, &chat, steady, usize::MAX));
            let (sent, answer) = pipe(&served, &chat, ask(&agent, prompt));
            assert_eq!(answer["persisted"], true, "{prompt}: {answer}");
            let original = serde_json::to_vec(&sent).unwrap();
            for (events, end) in [follower.join().unwrap(), steady.join().unwrap()] {
                assert_eq!((&end["persisted"], &end["seq"]), (&json!(true), &json!(sent.len())), "{prompt}");
                let held = serde_json::to_vec(&events).unwrap();
                assert_eq!(oracle.compare(&original, &held).lost(), None, "{prompt}");
            }
            let (_, history) = served.ask(&format!("GET /chats/{chat}"), "");
            let stored = serde_json::to_vec(&history["turns"][0]["events"]).unwrap();
            assert_eq!(oracle.compare(&original, &stored).lost(), None, "{prompt}");
        });
    }
}
