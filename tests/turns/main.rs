//! Turns over real sockets, with real agents: AG-UI over HTTP (pydantic-ai with a scripted model) and ACP over stdio (an
//! agent on the official SDK, and a scripted one for what no good agent does).
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "../support/agent.rs"]
mod agent;
#[path = "../support/oracle.rs"]
mod oracle;
#[path = "../support/server.rs"]
mod server;

mod agui;
mod approvals;
mod failures;
mod history;
mod kinds;
mod lasting;
mod queue;
mod refusals;
mod scripted;

use std::path::Path;

use serde_json::{Value, json};
use server::{Conn, Served, Stream, request};

/// How to start the agent on ACP's official SDK.
fn sdk_agent() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acp/agent.mjs");
    let installed = script.with_file_name("node_modules").exists();
    assert!(installed, "the ACP agent's packages are not installed: run tests/run.sh");
    format!("acp:node '{}'", script.display())
}

/// How to start the scripted ACP agent with these arguments.
fn fake_agent(arguments: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/fake_acp.py");
    format!("acp:python3 '{}' {arguments}", script.display())
}

/// A turn request with these members beside the chat; the answer.
fn ask(served: &Served, path: &str, chat: &str, members: &str) -> (u16, Value) {
    served.ask(&format!("POST {path}"), &format!("{{\"chat_id\":{}{members}}}", json!(chat)))
}

/// Sends a message; the run's id.
fn send(served: &Served, chat: &str, message: &str) -> String {
    taken(ask(served, "/chat/send", chat, &format!(",\"message\":{}", json!(message))))
}

/// The run of a turn that was taken.
fn taken((status, answer): (u16, Value)) -> String {
    assert_eq!(status, 202, "{answer}");
    answer["run_id"].as_str().unwrap().to_owned()
}

/// Follows a chat to the end, cut off after every few frames, also if it has ended; the events, and the end.
fn follow(served: &Served, chat: &str, frames_per_connection: usize) -> (Vec<Value>, Value) {
    let foreign = ",\"wait_ms\":20000,\"run_id\":\"-\",\"after_seq\":0";
    follow_from(served, chat, served.live(chat, foreign), frames_per_connection)
}

fn follow_from(served: &Served, chat: &str, mut stream: Stream, frames: usize) -> (Vec<Value>, Value) {
    let mut events: Vec<Value> = Vec::new();
    loop {
        let mut cursor = String::new();
        for _ in 0..frames {
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

/// Waits until an observer sees an event for which this holds; the stream goes on from there.
fn until(stream: &mut Stream, what: impl Fn(&Value) -> bool) -> Value {
    loop {
        let frame = stream.data().expect("the stream goes on");
        let event = &frame["event"];
        if what(event) {
            return event.clone();
        }
        let snapshot = frame["events"].as_array().and_then(|events| events.iter().find(|event| what(event)));
        if let Some(event) = snapshot {
            return event.clone();
        }
    }
}

fn is_type(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |event| event["type"] == kind
}

fn is_custom(name: &'static str) -> impl Fn(&Value) -> bool {
    move |event| event["name"] == name
}

/// The history of a chat.
fn history(served: &Served, chat: &str) -> Value {
    let (status, body) = served.ask(&format!("GET /chats/{chat}"), "");
    assert_eq!(status, 200, "{body}");
    body
}

/// The messages of a chat in short: role and text.
fn messages(served: &Served, chat: &str) -> Vec<(String, String)> {
    let history = history(served, chat);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    history["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| (text(&message["role"]), text(&message["content"])))
        .collect()
}

/// All text of these events.
fn said(events: &[Value]) -> String {
    let deltas = events.iter().filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT");
    deltas.map(|event| event["delta"].as_str().unwrap()).collect()
}

/// A stream that is the answer to a request for a turn.
fn stream(served: &Served, path: &str, body: &str) -> Stream {
    let mut conn = served.connect();
    conn.send(&request(&format!("POST {path}"), "application/json", body));
    Stream::from(conn)
}
