//! Agents that fail: the run ends cleanly, and its RUN_ERROR says what a person can understand.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::oracle::Oracle;
use crate::scripted::Scripted;
use crate::server::{serve, serve_with_db};
use crate::{ask, fake_agent, follow, history, sdk_agent, send, sse, taken};

/// A turn with this agent ends with this error; the last event.
fn fails(spec: &str, arguments: &[&str], words: &str, code: &str, said: &str) {
    let mut all = vec!["--agent", spec];
    all.extend(arguments);
    let served = serve(&all);
    send(&served, "c", words);
    let (events, end) = follow(&served, "c", 2);
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("RUN_ERROR"), &json!(code)), "{words}: {events:?}");
    let message = last["message"].as_str().unwrap();
    assert!(message.contains(said), "{words}: {message}");
    assert_eq!(end["persisted"], true, "{words}: what there is, is saved");
    if events[0]["type"] == "RUN_STARTED" {
        let verdict = Oracle::start().verify(&serde_json::to_vec(&events).unwrap());
        assert!(verdict.accepted, "{words}: {verdict:?}");
    }
    assert_eq!(history(&served, "c")["turns"][0]["persisted"], true);
}

#[test]
fn failures_of_an_ag_ui_agent_are_explained() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    fails(&format!("http://{closed}/"), &[], "x", "agent_error", "refused");
    let cases: [(&'static str, bool, &str, &str); 6] = [
        ("HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nboom", false, "agent_error", "500"),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi",
            false,
            "agent_error",
            "text/html",
        ),
        (
            sse!(r#"{"type":"RUN_STARTED","threadId":"c","runId":"r"}"#, "nonsense"),
            false,
            "agent_error",
            "JSON",
        ),
        (sse!(r#"{"type":"RUN_STARTED","threadId":"c","runId":"r"}"#), true, "timeout", "1 s"),
        (
            sse!(r#"{"type":"RUN_STARTED","threadId":"c","runId":"r"}"#),
            false,
            "agent_error",
            "without finishing",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n: x\r\n",
            false,
            "agent_error",
            "",
        ),
    ];
    for (answer, hangs, code, said) in cases {
        let agent = Scripted::start(answer, hangs);
        fails(&agent.url, &["--agent-timeout", "1"], "x", code, said);
    }
}

#[test]
fn an_agent_that_reports_its_own_failure_is_passed_on() {
    let agent = Agent::start();
    let served = serve(&["--agent", agent.url()]);
    send(&served, "c", "boom");
    let (events, end) = follow(&served, "c", 1);
    assert_eq!((&events.last().unwrap()["type"], &end["persisted"]), (&json!("RUN_ERROR"), &json!(true)));
    assert!(
        events
            .iter()
            .any(|event| event["delta"].as_str().is_some_and(|text| text.contains("so far so good")))
    );
}

#[test]
fn failures_of_an_acp_agent_are_explained() {
    fails("acp:no-such-program-anywhere", &[], "x", "agent_error", "no-such-program-anywhere");
    fails(&sdk_agent(), &[], "boom", "agent_error", "");
    fails(&fake_agent(""), &[], "die", "agent_error", "");
    fails(&fake_agent("version"), &[], "text", "agent_error", "version");
    fails(&fake_agent("auth"), &[], "text", "agent_error", "log");
    fails(&fake_agent(""), &["--agent-timeout", "1"], "hang", "timeout", "1 s");
}

#[test]
fn a_session_that_is_lost_is_said_to_be() {
    let served = serve(&["--agent", &fake_agent("")]);
    for (words, resets) in [("text", 0), ("thought", 0), ("die", 0), ("text", 1), ("text", 0)] {
        send(&served, "c", words);
        let (events, _) = follow(&served, "c", 3);
        let seen = events.iter().filter(|event| event["name"] == "acp.session_reset").count();
        assert_eq!(seen, resets, "{words}: {events:?}");
    }
}

#[test]
fn a_message_that_cannot_be_stored_starts_no_agent() {
    let agent = Scripted::start(sse!(r#"{"type":"RUN_STARTED","threadId":"c","runId":"r"}"#), false);
    let served = serve_with_db("chats.db", &["--agent", &agent.url]);
    let lock = rusqlite::Connection::open(served.dir.join("chats.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waits = served.live("c", "");
    assert_eq!(waits.head.status, 204);
    let (status, body) = ask(&served, "/chat/send", "c", ",\"message\":\"x\"");
    assert_eq!((status, &body["error"]["code"]), (503, &json!("store_failed")), "{body}");
    waits = served.live("c", "");
    let frames = waits.all();
    let error =
        frames.iter().flat_map(|frame| frame["events"].as_array().cloned().unwrap_or_default()).next_back();
    assert_eq!(error.map(|error| error["code"].clone()), Some(Value::from("store_failed")), "{frames:?}");
    assert_eq!(frames.last().unwrap()["persisted"], false);
    lock.execute_batch("ROLLBACK").unwrap();
    taken(ask(&served, "/chat/send", "c", ",\"message\":\"second\""));
    let input = agent.asked();
    assert_eq!(input["messages"].as_array().unwrap().len(), 1, "the agent was asked once: {input}");
    assert_eq!(input["messages"][0]["content"], "second");
}
