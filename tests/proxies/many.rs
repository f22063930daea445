//! Several processes behind one proxy: all requests about a chat reach the same one, however its name is spelled.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::server::{Served, number, request, serve};
use crate::ways::Way;

fn status(front: &Served, line: &str, body: &str) -> (u16, Value) {
    let mut conn = front.connect();
    conn.send(&request(line, "application/json", body));
    let head = conn.head();
    (head.status, conn.json(&head))
}

/// A character beyond letters and digits is spelled as few clients have to spell it, and as all may.
fn spellings(chat: &str) -> [String; 2] {
    let all: String = chat.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let needed = chat.chars().map(|c| if " ü/".contains(c) { percent(c) } else { c.to_string() });
    [needed.collect(), all]
}

fn percent(c: char) -> String {
    c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn all_requests_about_a_chat_reach_the_same_process() {
    let processes = [serve(&[]), serve(&[])];
    let proxy = Way::Haproxy.with("haproxy-many.cfg", &[&processes[0], &processes[1]]);
    let front = &proxy.front;
    let chats: Vec<String> = (0..40).map(|n| format!("a chat/{n} (ü)!'*~")).collect();
    for chat in &chats {
        let [path, encoded] = spellings(chat);
        let (code, started) = status(front, &format!("POST /chats/{path}/runs"), "{}");
        assert_eq!(code, 201, "{started}");
        let run = started["run_id"].as_str().unwrap();
        for name in [&path, &encoded] {
            let (code, state) = status(front, &format!("GET /runs/{run}?chat_id={name}"), "");
            assert_eq!((code, &state["chat_id"]), (200, &Value::from(chat.as_str())), "{name}");
        }
        let mut conn = front.connect();
        let line = format!("POST /runs/{run}/events?chat_id={encoded}");
        conn.send(&request(&line, "application/x-ndjson", &(number(1) + "\n")));
        assert_eq!(conn.head().status, 200);
        let body = format!(r#"{{"chat_id":{},"protocol":1}}"#, Value::from(chat.as_str()));
        let mut conn = front.connect();
        conn.send(&request(&format!("POST /chat/live?chat_id={encoded}"), "application/json", &body));
        assert_eq!(crate::server::Stream::from(conn).short(), "S1", "{chat}");
        assert_eq!(front.live_get(&format!("chat_id={path}"), None).short(), "S1", "{chat}");
        let (code, _) = status(front, &format!("POST /runs/{run}/finish?chat_id={path}"), "");
        assert_eq!(code, 200);
        let (code, history) = status(front, &format!("GET /chats/{encoded}"), "");
        assert_eq!((code, history["turns"].as_array().unwrap().len()), (200, 1));
    }
    let counts =
        processes.each_ref().map(|served| served.ask("GET /chats", "").1["chats"].as_array().unwrap().len());
    assert_eq!(counts[0] + counts[1], chats.len());
    assert!(counts.iter().all(|count| *count >= 5), "both have some: {counts:?}");
}

#[test]
fn the_clients_name_the_chat_of_each_request() {
    let processes = [serve(&[]), serve(&[])];
    let proxy = Way::Haproxy.with("haproxy-many.cfg", &[&processes[0], &processes[1]]);
    let url = format!("http://{}", proxy.front.address);
    for chat in ["one", "two", "three", "four (ü)"] {
        let rejoin = |command: &str| {
            let mut rejoin = Command::new(env!("CARGO_BIN_EXE_rejoin"));
            rejoin.args([command, chat, "--url", &url]).stdin(Stdio::piped()).stdout(Stdio::piped());
            rejoin.spawn().unwrap()
        };
        let observer = rejoin("observe");
        let mut producer = rejoin("push");
        let text = r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"assistant","delta":"met again"}"#;
        let ends = [
            r#"{"type":"RUN_STARTED","threadId":"c","runId":"r"}"#,
            text,
            r#"{"type":"RUN_FINISHED","threadId":"c","runId":"r"}"#,
        ];
        producer.stdin.take().unwrap().write_all((ends.join("\n") + "\n").as_bytes()).unwrap();
        assert!(producer.wait().unwrap().success(), "{chat}");
        let read = observer.wait_with_output().unwrap();
        assert!(read.status.success(), "{chat}: {read:?}");
        assert!(String::from_utf8_lossy(&read.stdout).contains("met again"), "{chat}: {read:?}");
    }
}

#[test]
fn what_names_no_chat_is_refused_rather_than_answered_wrongly() {
    let processes = [serve(&[]), serve(&[])];
    let proxy = Way::Haproxy.with("haproxy-many.cfg", &[&processes[0], &processes[1]]);
    for (line, body) in [
        ("POST /chat/live", r#"{"chat_id":"c"}"#),
        ("POST /chat/live?chat_id=", r#"{"chat_id":"c"}"#),
        ("GET /chats", ""),
        ("GET /events/stream", ""),
        ("GET /status", ""),
    ] {
        let (code, answer) = status(&proxy.front, line, body);
        assert_eq!((code, &answer["error"]["code"]), (421, &"misdirected_request".into()), "{line}");
    }
    assert_eq!(status(&proxy.front, "GET /", "").0, 200);
}
