//! Requests that can't be carried out, and what is said.

use serde_json::json;

use crate::server::{request, serve};
use crate::{ask, fake_agent, follow, is_custom, is_type, send, until};

#[test]
fn a_turn_that_cannot_be_is_refused_with_a_reason() {
    let served = serve(&["--agent", &fake_agent("")]);
    send(&served, "busy", "slow");
    until(&mut served.live("busy", ",\"wait_ms\":20000"), is_type("TEXT_MESSAGE_CONTENT"));
    send(&served, "past", "text");
    follow(&served, "past", 50);
    let cases = [
        ("/chat/send", "new", "", 400, "empty_message"),
        ("/chat/send", "new", ",\"message\":\"  \"", 400, "empty_message"),
        ("/chat/send", "new", ",\"message\":5", 400, "bad_request"),
        ("/chat/send", "new", ",\"trigger\":\"canvas\"", 400, "empty_message"),
        ("/chat/send", "new", ",\"message\":\"x\",\"runtime\":\"nobody\"", 400, "bad_request"),
        ("/chat/send", "busy", ",\"message\":\"x\"", 409, "already_streaming"),
        ("/chat/send", "busy", ",\"trigger\":\"heartbeat\"", 409, "already_streaming"),
        (
            "/chat/steer-send",
            "busy",
            ",\"message\":\"x\",\"trigger\":\"heartbeat\"",
            409,
            "already_streaming",
        ),
        ("/chat", "busy", ",\"message\":\"x\",\"protocol\":1", 409, "already_streaming"),
        ("/chat", "busy", ",\"message\":\"x\"", 409, "already_streaming"),
        ("/chat/steer-send", "new", "", 400, "empty_message"),
        ("/chat/retry", "new", "", 409, "nothing_to_retry"),
        ("/chat/retry", "past", ",\"message_index\":1", 400, "bad_message_index"),
        ("/chat/retry", "past", ",\"message_index\":7", 400, "bad_message_index"),
        ("/chat/retry", "past", ",\"message_index\":-1", 400, "bad_request"),
        ("/chat/stop", "new", "", 404, "no_active_run"),
        ("/chat/stop", "past", "", 404, "no_active_run"),
        ("/chat/respond", "new", ",\"request_id\":\"x\",\"option_id\":\"y\"", 404, "unknown_request"),
        ("/chat/respond", "busy", ",\"request_id\":\"x\",\"option_id\":\"y\"", 404, "unknown_request"),
        ("/chat/respond", "busy", ",\"option_id\":\"y\"", 400, "bad_request"),
    ];
    for (path, chat, members, status, code) in cases {
        let (given, body) = ask(&served, path, chat, members);
        assert_eq!(
            (given, &body["error"]["code"]),
            (status, &json!(code)),
            "{path} {chat} {members}: {body}"
        );
        assert!(body["error"]["message"].as_str().unwrap().len() > 20, "{body}");
    }
    assert_eq!(ask(&served, "/chat/stop", "busy", "").0, 200, "the busy chat was not disturbed");
}

#[test]
fn without_an_agent_nothing_can_be_asked() {
    let served = serve(&[]);
    let (status, body) = ask(&served, "/chat/send", "c", ",\"message\":\"x\"");
    assert_eq!((status, &body["error"]["code"]), (503, &json!("no_agent")));
    assert!(body["error"]["message"].as_str().unwrap().contains("--agent"));
}

#[test]
fn other_methods_and_kinds_of_body_are_refused() {
    let served = serve(&["--agent", &fake_agent("")]);
    for path in
        ["/chat", "/chat/send", "/chat/steer-send", "/chat/retry", "/chat/stop", "/chat/respond", "/agui"]
    {
        let (status, body) = served.ask(&format!("GET {path}"), "");
        assert_eq!((status, &body["error"]["code"]), (405, &json!("method_not_allowed")), "{path}");
        let mut conn = served.connect();
        conn.send(&request(&format!("POST {path}"), "text/plain", "{}"));
        assert_eq!(conn.head().status, 415, "{path}");
    }
}

/// A form with these fields and one file.
fn form(served: &crate::Served, path: &str, origin: &str) -> crate::Conn {
    let body = "--b\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\nc\r\n\
                --b\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\ntext please\r\n\
                --b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a.txt\"\r\n\
                Content-Type: text/plain\r\n\r\n42\r\n--b--\r\n";
    let mut conn = served.connect();
    conn.send(
        format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{origin}Content-Type: multipart/form-data; boundary=b\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .as_bytes(),
    );
    conn
}

#[test]
fn a_form_may_carry_files_but_not_from_a_foreign_page() {
    let served = serve(&["--agent", &fake_agent("")]);
    let mut foreign = form(&served, "/chat/send", "Origin: http://evil.example\r\n");
    let head = foreign.head();
    assert_eq!((head.status, &foreign.json(&head)["error"]["code"]), (403, &json!("cross_origin")));
    let mut own = form(&served, "/chat/send", "Origin: http://localhost\r\n");
    let head = own.head();
    assert_eq!(head.status, 202, "{}", own.json(&head));
    follow(&served, "c", 50);
    let message = &crate::history(&served, "c")["messages"][0];
    assert_eq!(message["content"][0]["text"], "text please");
    assert_eq!(message["content"][1]["source"]["value"], "NDI=");

    let mut legacy = crate::Stream::from(form(&served, "/chat", ""));
    assert_eq!(legacy.head.status, 200);
    let events = legacy.all();
    assert!(legacy.complete && events.last().unwrap()["type"] == "RUN_FINISHED", "{events:?}");
    assert!(!events.iter().any(is_custom("acp.session_reset")), "the second turn found its session");
}
