//! The queue of turns: threads are bounded, and who waits says so.

use serde_json::{Value, json};

use crate::scripted::Scripted;
use crate::server::{Served, serve};
use crate::{ask, fake_agent, follow, is_type, send, sse, until};

const STARTED: &str = sse!(r#"{"type":"RUN_STARTED","threadId":"c","runId":"r"}"#);

#[test]
fn a_turn_that_waits_for_a_thread_says_so_and_starts_in_order() {
    let served = serve(&["--turns-max", "1", "--agent", &fake_agent("")]);
    send(&served, "first", "slow");
    until(&mut served.live("first", ",\"wait_ms\":20000"), is_type("TEXT_MESSAGE_CONTENT"));
    let mut bus = served.stream("GET /events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    bus.data();
    send(&served, "second", "text");
    send(&served, "third", "text");
    let event = |bus: &mut crate::Stream| {
        let event = bus.data().unwrap();
        let text = |name: &str| event[name].as_str().unwrap_or("").to_owned();
        (text("event"), text("chat_id"), event["queued"] == true)
    };
    let started = |chat: &str, queued| ("stream_started".to_owned(), chat.to_owned(), queued);
    assert_eq!(event(&mut bus), started("second", true));
    assert_eq!(event(&mut bus), started("third", true));
    let snapshot = served.stream("GET /events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n").data().unwrap();
    let queued = snapshot["streams"].as_array().unwrap().iter().filter(|stream| stream["queued"] == true);
    assert_eq!(queued.count(), 2, "{snapshot}");
    assert_eq!(ask(&served, "/chat/stop", "first", "").0, 200);
    for chat in ["second", "third"] {
        assert_eq!(follow(&served, chat, 3).1["persisted"], true);
    }
    let rest: Vec<_> = (0..5).map(|_| event(&mut bus)).collect();
    let position = |wanted: &(String, String, bool)| rest.iter().position(|event| event == wanted).unwrap();
    assert!(position(&started("second", false)) < position(&started("third", false)), "{rest:?}");
}

/// A number from the server's status.
fn status(served: &Served, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", served.pid())).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_thousand_turns_that_wait_cost_no_threads() {
    let agent = Scripted::start(STARTED, true);
    let served = serve(&["--turns-max", "4", "--agent", &agent.url]);
    for number in 0..4 {
        send(&served, &format!("running-{number}"), "x");
        agent.asked();
    }
    let before = status(&served, "Threads:");
    let mut conn = served.connect();
    for number in 0..1_000 {
        let body = format!("{{\"chat_id\":\"waiting-{number}\",\"message\":\"x\"}}");
        conn.send(&crate::request("POST /chat/send", "application/json", &body));
        let head = conn.head();
        assert_eq!(
            (head.status, conn.json(&head)["chat_id"].clone()),
            (202, json!(format!("waiting-{number}")))
        );
    }
    assert_eq!(status(&served, "Threads:"), before);
    // Whoever waits can be stopped, and is gone from the queue.
    let (status, body) = ask(&served, "/chat/stop", "waiting-0", "");
    assert_eq!((status, &body["persisted"]), (200, &Value::Bool(true)), "{body}");
    assert_eq!(ask(&served, "/chat/stop", "running-0", "").0, 200);
    assert_eq!(agent.asked()["threadId"], "waiting-1");
}
