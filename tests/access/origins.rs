//! Pages of other origins: which may use the server, and what browsers are told about it.

use crate::server::{Head, Served, serve};

const ALLOWED: &str = "https://chat.example.org";

/// A request with these further lines in its head; the head of its answer, and its body.
fn ask(served: &Served, line: &str, fields: &str, body: &str) -> (Head, serde_json::Value) {
    let mut conn = served.connect();
    let length = body.len();
    conn.send(
        format!("{line} HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: {length}\r\n\r\n{body}")
            .as_bytes(),
    );
    let head = conn.head();
    let body = if head.status == 204 { serde_json::Value::Null } else { conn.json(&head) };
    (head, body)
}

fn from(origin: &str) -> String {
    format!("Origin: {origin}\r\n")
}

#[test]
fn only_pages_that_the_operator_names_may_use_the_server() {
    let served = serve(&["--allow-origin", ALLOWED, "--allow-origin", "HTTP://Localhost:5173"]);
    let own = format!("http://localhost:{}", served.address.port());
    let rows = [
        ("one that is named", ALLOWED, true),
        ("the other that is named", "http://localhost:5173", true),
        ("no page of another origin at all", &own, false),
        ("another scheme", "http://chat.example.org", false),
        ("another port", "https://chat.example.org:8443", false),
        ("a name that begins alike", "https://chat.example.org.evil.example", false),
        ("a name that ends alike", "https://evilchat.example.org", false),
        ("a part of the name", "https://example.org", false),
        ("a sandboxed page", "null", false),
        ("a wildcard", "*", false),
        ("no origin", "chat.example.org", false),
        ("two", "https://chat.example.org https://evil.example", false),
        ("a path", "https://chat.example.org/", false),
        ("nothing", "", false),
    ];
    for (name, origin, allowed) in rows {
        let host = format!("Host: localhost:{}\r\n", served.address.port());
        let mut conn = served.connect();
        conn.send(format!("GET /chats HTTP/1.1\r\n{host}Origin: {origin}\r\n\r\n").as_bytes());
        let head = conn.head();
        let is_own = origin == own;
        assert_eq!(head.status, if allowed || is_own { 200 } else { 403 }, "{name}");
        let told = head.field("Access-Control-Allow-Origin");
        assert_eq!(told, allowed.then_some(origin), "{name}: never a wildcard, never another's");
        assert_eq!(head.field("Access-Control-Allow-Credentials"), None, "{name}");
        assert_eq!(head.field("Vary"), Some("Origin"), "{name}");
        let body = conn.json(&head);
        if head.status == 403 {
            assert_eq!(body["error"]["code"], "cross_origin", "{name}");
            assert!(body["error"]["message"].as_str().unwrap().contains("--allow-origin"), "{body}");
        }
    }
}

#[test]
fn what_is_no_page_sends_no_origin_and_needs_none() {
    let served = serve(&[]);
    let (head, _) = ask(&served, "GET /chats", "", "");
    assert_eq!((head.status, head.field("Access-Control-Allow-Origin")), (200, None));
    assert_eq!(head.field("Vary"), Some("Origin"), "a cache must not give it to a page");
}

#[test]
fn a_foreign_page_changes_nothing() {
    let served = serve(&[]);
    let run = served.start("kept", "{}");
    let json = "Content-Type: application/json\r\n";
    let form = "Content-Type: multipart/form-data; boundary=b\r\n";
    let rows = [
        ("POST /chats/other/runs", json, "{}"),
        ("POST /chats/other/runs", "", ""),
        ("POST /chat/live", json, r#"{"chat_id":"kept"}"#),
        ("POST /chat/send", json, r#"{"chat_id":"kept","message":"m"}"#),
        ("POST /chat/send", form, "--b--\r\n"),
        ("POST /chat/stop", json, r#"{"chat_id":"kept"}"#),
        ("GET /chat/live?chat_id=kept", "", ""),
        ("GET /events/stream", "", ""),
        ("GET /status", "", ""),
        ("DELETE /chats/kept", "", ""),
        ("OPTIONS /chats/kept", "Access-Control-Request-Method: DELETE\r\n", ""),
        ("POST /nowhere", "", ""),
    ];
    for (line, kind, body) in rows {
        let fields = from("https://evil.example") + kind;
        let (head, answer) = ask(&served, line, &fields, body);
        assert_eq!((head.status, &answer["error"]["code"]), (403, &"cross_origin".into()), "{line}");
        assert!(!head.text.to_ascii_lowercase().contains("access-control"), "{line}: {}", head.text);
    }
    let events = format!("POST /runs/{run}/events");
    let fields = from("https://evil.example") + "Content-Type: application/x-ndjson\r\n";
    assert_eq!(ask(&served, &events, &fields, "{\"type\":\"CUSTOM\"}\n").0.status, 403);
    let (status, state) = served.ask(&format!("GET /runs/{run}"), "");
    assert_eq!((status, &state["state"], &state["next"]), (200, &"registered".into(), &1.into()));
    assert_eq!(served.ask("GET /chats", "").1["chats"].as_array().unwrap().len(), 0);
}

#[test]
fn a_preflight_says_what_the_page_may_send() {
    let served = serve(&["--allow-origin", ALLOWED]);
    let preflight = from(ALLOWED)
        + "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization,content-type\r\n";
    let (head, _) = ask(&served, "OPTIONS /chat/live", &preflight, "");
    assert_eq!(head.status, 204);
    for (field, value) in [
        ("Access-Control-Allow-Origin", ALLOWED),
        ("Access-Control-Allow-Methods", "GET, POST, OPTIONS"),
        ("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID"),
        ("Access-Control-Max-Age", "7200"),
        ("Allow", "GET, POST, OPTIONS"),
    ] {
        assert_eq!(head.field(field), Some(value), "{}", head.text);
    }
    assert!(head.text.contains("Vary: Access-Control-Request-Method, Access-Control-Request-Headers\r\n"));
    let (head, _) = ask(&served, "OPTIONS /chat/live", &from(ALLOWED), "");
    assert_eq!((head.status, head.field("Access-Control-Allow-Methods")), (204, None), "no preflight");
}

#[test]
fn a_page_that_may_reads_streams_and_refusals_too() {
    let served = serve(&["--allow-origin", ALLOWED]);
    let run = served.start("c", "{}");
    let body = r#"{"chat_id":"c","protocol":1}"#;
    let stream = served.stream(&format!(
        "POST /chat/live HTTP/1.1\r\nHost: localhost\r\nOrigin: {ALLOWED}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    assert_eq!((stream.head.status, stream.head.field("Access-Control-Allow-Origin")), (200, Some(ALLOWED)));
    for (line, status) in
        [(format!("GET /runs/{run}"), 200), ("GET /runs/x".into(), 404), ("PUT /chats".into(), 405)]
    {
        let (head, _) = ask(&served, &line, &from(ALLOWED), "");
        assert_eq!(head.status, status, "{line}");
        assert_eq!(head.field("Access-Control-Allow-Origin"), Some(ALLOWED), "{line}");
        assert_eq!(
            head.field("Access-Control-Expose-Headers"),
            Some("Retry-After, WWW-Authenticate"),
            "{line}"
        );
    }
}

#[test]
fn what_one_request_may_the_next_on_its_connection_may_not() {
    let served = serve(&["--allow-origin", ALLOWED]);
    let mut conn = served.connect();
    let mut ask = |fields: &str| {
        conn.send(format!("GET /chats HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").as_bytes());
        let head = conn.head();
        conn.body(&head);
        (head.status, head.field("Access-Control-Allow-Origin").map(str::to_owned))
    };
    assert_eq!(ask(&from(ALLOWED)), (200, Some(ALLOWED.to_owned())));
    assert_eq!(ask(""), (200, None));
    assert_eq!(ask(&from("https://evil.example")), (403, None));
    assert_eq!(ask(&from(ALLOWED)), (200, Some(ALLOWED.to_owned())));
}
