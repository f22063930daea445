//! Tokens, route by route: who is let in, and that who is not learns nothing.

use rejoin::access::{Access, Claims, Right};
use serde_json::Value;

use crate::server::{Conn, Head, Served, serve_as};

pub(crate) const ADMIN: &str = "admin-0123456789abcdef";
pub(crate) const PRODUCER: &str = "producer-0123456789abcdef";
pub(crate) const FILE: &str = "admin admin-0123456789abcdef\nproducer producer-0123456789abcdef\n\
                               hs256 0123456789abcdef0123456789abcdef\n";

/// All routes that need something, each for chat `mine`; `{run}` is one of its runs.
const ROUTES: [(&str, &str, &[Right]); 17] = [
    ("POST /chat/live", r#"{"chat_id":"mine"}"#, &[Right::Observe]),
    ("GET /chat/live?chat_id=mine", "", &[Right::Observe]),
    ("POST /chat/send", r#"{"chat_id":"mine","message":"m"}"#, &[Right::Send]),
    ("POST /chat/steer-send", r#"{"chat_id":"mine","message":"m"}"#, &[Right::Send]),
    ("POST /chat/retry", r#"{"chat_id":"mine"}"#, &[Right::Send]),
    ("POST /chat", r#"{"chat_id":"mine","message":"m"}"#, &[Right::Send, Right::Observe]),
    ("POST /agui", r#"{"threadId":"mine","runId":"r","messages":[]}"#, &[Right::Send, Right::Observe]),
    ("POST /chat/stop", r#"{"chat_id":"mine"}"#, &[Right::Send]),
    ("POST /chat/respond", r#"{"chat_id":"mine","request_id":"x","option_id":"y"}"#, &[Right::Respond]),
    ("POST /chats/mine/runs", "{}", &[Right::Produce]),
    ("POST /chats/mine/runs?stream=1", "{\"type\":\"CUSTOM\"}", &[Right::Produce]),
    ("GET /runs/{run}", "", &[Right::Produce]),
    ("POST /runs/{run}/events", "{\"type\":\"CUSTOM\"}", &[Right::Produce]),
    ("GET /runs/{run}/control", "", &[Right::Produce]),
    ("POST /runs/{run}/finish", "", &[Right::Produce]),
    ("GET /chats/mine", "", &[Right::History]),
    ("HEAD /chats/mine", "", &[Right::History]),
];

/// Routes about all chats, with the right that they need in all of them; the others need an administrator.
const WIDE: [(&str, Option<Right>); 5] = [
    ("GET /events/stream", Some(Right::Observe)),
    ("GET /chats", Some(Right::History)),
    ("GET /status", None),
    ("GET /metrics", None),
    ("DELETE /chats/mine", None),
];

/// A server that asks for tokens.
fn guarded(args: &[&str]) -> Served {
    serve_as(":memory:", args, |command| {
        let dir = command.get_current_dir().unwrap().to_owned();
        std::fs::write(dir.join("tokens"), FILE).unwrap();
        command.args(["--token-file", "tokens"]);
    })
}

/// A JWT for these chats, valid for an hour.
pub(crate) fn jwt(chats: &[&str], prefixes: &[&str], rights: &[Right]) -> String {
    jwt_for(3_600.0, chats, prefixes, rights)
}

fn jwt_for(seconds: f64, chats: &[&str], prefixes: &[&str], rights: &[Right]) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let claims = Claims {
        exp: now.as_secs_f64() + seconds,
        chats: owned(chats),
        chat_prefixes: owned(prefixes),
        rights: rights.to_vec(),
        ..Claims::default()
    };
    Access::parse(FILE).unwrap().mint(&claims).unwrap()
}

fn bytes(line: &str, token: Option<&str>, body: &str) -> Vec<u8> {
    let kind = match line {
        _ if body.is_empty() => "",
        _ if line.contains("/events") || line.contains("stream=1") => {
            "Content-Type: application/x-ndjson\r\n"
        }
        _ => "Content-Type: application/json\r\n",
    };
    let token = token.map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
    let length = body.len();
    format!("{line} HTTP/1.1\r\nHost: localhost\r\n{token}{kind}Content-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn begin(served: &Served, line: &str, token: Option<&str>, body: &str) -> (Conn, Head) {
    let mut conn = served.connect();
    conn.send(&bytes(line, token, body));
    let head = conn.head();
    (conn, head)
}

/// The whole answer but for its date: what somebody who may not sees of it.
fn answer(served: &Served, line: &str, token: &str, body: &str) -> (String, Vec<u8>) {
    let (mut conn, head) = begin(served, line, Some(token), body);
    let rest = if line.starts_with("HEAD") { Vec::new() } else { conn.body(&head) };
    let lines = head.text.lines().filter(|line| !line.starts_with("Date:"));
    (lines.collect::<Vec<_>>().join("\n"), rest)
}

fn start(served: &Served, chat: &str) -> String {
    let (mut conn, head) = begin(served, &format!("POST /chats/{chat}/runs"), Some(PRODUCER), "{}");
    assert_eq!(head.status, 201);
    conn.json(&head)["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn without_a_good_token_nothing_is_told_and_nothing_is_done() {
    let served = guarded(&[]);
    let run = start(&served, "mine");
    let expired = jwt_for(-1.0, &[], &[""], &Right::ALL);
    let prefix = &ADMIN[..ADMIN.len() - 1];
    let longer = format!("{ADMIN}0");
    let rows = [
        ("none", None, "unauthorized"),
        ("wrong", Some("wrong-0123456789abcdef"), "invalid_token"),
        ("the beginning of one", Some(prefix), "invalid_token"),
        ("one with more behind it", Some(longer.as_str()), "invalid_token"),
        ("expired", Some(expired.as_str()), "invalid_token"),
    ];
    let routes = ROUTES.iter().map(|(line, body, _)| (*line, *body));
    for (line, body) in routes.chain(WIDE.iter().map(|(line, _)| (*line, ""))) {
        let line = line.replace("{run}", &run);
        for (name, token, code) in rows {
            let (mut conn, head) = begin(&served, &line, token, body);
            assert_eq!(head.status, 401, "{name}: {line}");
            let challenge = head.field("WWW-Authenticate").unwrap();
            assert!(challenge.starts_with("Bearer realm=\"rejoin\""), "{challenge}");
            assert_eq!(challenge.contains("invalid_token"), token.is_some(), "{name}: {challenge}");
            if !line.starts_with("HEAD") {
                assert_eq!(conn.json(&head)["error"]["code"], code, "{name}: {line}");
            }
        }
    }
    let (mut conn, head) = begin(&served, &format!("GET /runs/{run}"), Some(ADMIN), "");
    assert_eq!(conn.json(&head)["next"], 1, "nothing was appended");
}

#[test]
fn what_tells_nothing_needs_no_token() {
    let served = guarded(&[]);
    for line in ["GET /healthz", "GET /readyz", "GET /", "GET /inspect", "OPTIONS /chats", "OPTIONS *"] {
        let (_, head) = begin(&served, line, None, "");
        assert!(matches!(head.status, 200 | 204), "{line}: {}", head.text);
    }
    assert_eq!(begin(&served, "GET /nowhere", None, "").1.status, 404);
}

#[test]
fn each_route_needs_its_right_in_its_chat() {
    let served = guarded(&[]);
    let run = start(&served, "mine");
    for (line, body, needed) in ROUTES {
        let line = line.replace("{run}", &run);
        let status = |token: &str| begin(&served, &line, Some(token), body).1.status;
        for right in needed {
            let others: Vec<Right> = Right::ALL.into_iter().filter(|other| other != right).collect();
            assert_eq!(status(&jwt(&["mine"], &[""], &others)), 403, "{line} without {right:?}");
        }
        assert!(!matches!(status(&jwt(&["mine"], &[], needed)), 401 | 403), "{line} with its right");
        assert!(!matches!(status(&jwt(&[], &["mi"], needed)), 401 | 403), "{line} by prefix");
        assert!(!matches!(status(ADMIN), 401 | 403), "{line}");
        assert_eq!(matches!(status(PRODUCER), 401 | 403), needed != [Right::Produce], "{line}");
    }
}

#[test]
fn who_may_not_can_not_tell_what_there_is() {
    let served = guarded(&[]);
    let run = start(&served, "mine");
    let strange = "f".repeat(run.len());
    for (line, body, needed) in ROUTES {
        let foreign = jwt(&["other", "mine2"], &["min/", "minee"], needed);
        let there = answer(&served, &line.replace("{run}", &run), &foreign, body);
        let not_there = if line.contains("{run}") {
            answer(&served, &line.replace("{run}", &strange), &foreign, body)
        } else {
            let (line, body) = (line.replace("mine", "nope"), body.replace("mine", "nope"));
            answer(&served, &line, &foreign, &body)
        };
        assert_eq!(there, not_there, "{line}");
        assert!(there.0.contains(" 403 ") || there.0.contains(" 404 "), "{line}: {}", there.0);
    }
    let (mut conn, head) = begin(&served, &format!("GET /runs/{run}"), Some(ADMIN), "");
    assert_eq!(conn.json(&head)["next"], 1, "nothing was appended");
}

#[test]
fn a_run_that_is_long_over_is_no_more_visible_than_one_that_never_was() {
    let served = guarded(&["--retention", "0"]);
    let run = start(&served, "mine");
    let (_, head) = begin(&served, &format!("POST /runs/{run}/finish"), Some(PRODUCER), "");
    assert_eq!(head.status, 200);
    let (mut conn, head) = begin(&served, &format!("GET /runs/{run}"), Some(PRODUCER), "");
    assert_eq!(
        (head.status, &conn.json(&head)["state"]),
        (200, &Value::from("ended")),
        "its producer still learns"
    );
    let foreign = jwt(&["other"], &[], &[Right::Produce]);
    let strange = format!("GET /runs/{}", "f".repeat(run.len()));
    assert_eq!(
        answer(&served, &format!("GET /runs/{run}"), &foreign, ""),
        answer(&served, &strange, &foreign, "")
    );
}

#[test]
fn what_is_about_all_chats_needs_the_right_in_all() {
    let served = guarded(&[]);
    for (line, right) in WIDE {
        let status = |token: &str| begin(&served, line, Some(token), "").1.status;
        assert_eq!(status(&jwt(&["mine"], &["m"], &Right::ALL)), 403, "{line}");
        assert_eq!(status(PRODUCER), 403, "{line}");
        assert_eq!(status(&jwt(&[], &[""], &Right::ALL)) == 403, right.is_none(), "{line}");
        assert!(status(ADMIN) < 300, "{line}");
    }
}

#[test]
fn an_event_source_sends_a_short_lived_token_in_its_query() {
    let served = guarded(&[]);
    start(&served, "mine");
    let ask = |line: &str| {
        let (_, head) = begin(&served, line, None, "");
        head.status
    };
    let token = jwt_for(3_000.0, &["mine"], &[""], &[Right::Observe, Right::History]);
    let long = jwt_for(3_700.0, &["mine"], &[""], &[Right::Observe]);
    assert_eq!(ask(&format!("GET /chat/live?chat_id=mine&token={token}")), 200);
    assert_eq!(ask(&format!("GET /events/stream?token={token}")), 200);
    assert_eq!(ask(&format!("GET /chat/live?chat_id=mine&token={long}")), 401, "it would be good too long");
    assert_eq!(ask(&format!("GET /chat/live?chat_id=mine&token={ADMIN}")), 401, "a secret is for ever");
    assert_eq!(ask(&format!("GET /chats/mine?token={token}")), 401, "who can set headers does");
    let header = format!("Authorization: Bearer {}\r\n", jwt(&["other"], &[], &[Right::Observe]));
    let mut conn = served.connect();
    conn.send(
        format!("GET /chat/live?chat_id=mine&token={token} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n")
            .as_bytes(),
    );
    assert_eq!(conn.head().status, 403, "the header counts");
}

#[test]
fn no_token_gets_into_the_log() {
    let served = serve_as(":memory:", &[], |command| {
        let dir = command.get_current_dir().unwrap().to_owned();
        std::fs::write(dir.join("tokens"), FILE).unwrap();
        let log = std::fs::File::create(dir.join("log")).unwrap();
        command.args(["--token-file", "tokens"]).env("RUST_LOG", "trace").stderr(log);
    });
    let token = jwt(&["mine"], &[], &[Right::Observe]);
    let run = start(&served, "mine");
    for (line, token) in [
        ("GET /chats", Some(ADMIN)),
        ("GET /chats", Some("wrong-0123456789abcdef")),
        ("POST /chats/mine/runs", Some(token.as_str())),
        (&format!("GET /chat/live?chat_id=mine&token={token}"), None),
        (&format!("GET /nowhere?token={token}"), None),
    ] {
        begin(&served, line, token, "");
    }
    assert_eq!(begin(&served, &format!("POST /runs/{run}/finish"), Some(PRODUCER), "").1.status, 200);
    let log = std::fs::read_to_string(served.dir.join("log")).unwrap();
    assert!(log.contains(&run), "it is the log: {log}");
    for secret in [ADMIN, PRODUCER, "wrong-0123456789abcdef", &token, "hs256 ", "0123456789abcdef0123"] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

#[test]
fn the_scheme_is_bearer_in_any_case() {
    let served = guarded(&[]);
    for (value, status) in [
        (format!("Bearer {ADMIN}"), 200),
        (format!("bearer {ADMIN}"), 200),
        (format!("BEARER  {ADMIN}"), 200),
        (format!("Basic {ADMIN}"), 401),
        (ADMIN.to_owned(), 401),
        ("Bearer".to_owned(), 401),
        ("Bearer ".to_owned(), 401),
        (format!("Bearer {ADMIN} {ADMIN}"), 401),
        (format!("Bearer \"{ADMIN}\""), 401),
    ] {
        let mut conn = served.connect();
        conn.send(
            format!("GET /chats HTTP/1.1\r\nHost: localhost\r\nAuthorization: {value}\r\n\r\n").as_bytes(),
        );
        assert_eq!(conn.head().status, status, "{value}");
    }
    let mut conn = served.connect();
    let twice = format!("Authorization: Bearer {ADMIN}\r\n").repeat(2);
    conn.send(format!("GET /chats HTTP/1.1\r\nHost: localhost\r\n{twice}\r\n").as_bytes());
    assert_eq!(conn.head().status, 400);
}

#[test]
fn each_request_on_a_connection_is_let_in_for_itself() {
    let served = guarded(&[]);
    let mut conn = served.connect();
    for (token, status) in [(Some(ADMIN), 200), (None, 401), (Some(PRODUCER), 403), (Some(ADMIN), 200)] {
        conn.send(&bytes("GET /chats", token, ""));
        let head = conn.head();
        conn.body(&head);
        assert_eq!(head.status, status, "{token:?}");
    }
}

#[test]
fn a_large_body_is_refused_before_it_is_read() {
    let served = guarded(&[]);
    let mut conn = served.connect();
    conn.send(
        b"POST /chat/send HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
          Content-Length: 30000000\r\nExpect: 100-continue\r\n\r\n",
    );
    let head = conn.head();
    assert_eq!((head.status, head.field("Connection")), (401, Some("close")));
}

#[test]
fn a_token_has_so_many_streams_and_gives_them_back() {
    let served = guarded(&["--observers-per-token", "2"]);
    start(&served, "mine");
    let (first, second) =
        (jwt(&["mine", "idle"], &[], &[Right::Observe]), jwt(&["mine"], &[], &[Right::Observe]));
    let live = r#"{"chat_id":"mine","protocol":1}"#;
    let follow = |token: &str| begin(&served, "POST /chat/live", Some(token), live);
    let (_one, head) = follow(&first);
    assert_eq!(head.status, 200);
    let mut waiting = served.connect();
    waiting.send(&bytes("POST /chat/live", Some(&first), r#"{"chat_id":"idle","wait_ms":25000}"#));
    // Requests are read in the order in which they come; these came later.
    for _ in 0..2 {
        assert_eq!(begin(&served, "GET /status", Some(ADMIN), "").1.status, 200);
    }
    let (mut refused, head) = follow(&first);
    assert_eq!(head.status, 503, "one follows, one waits");
    assert!(head.field("Retry-After").is_some());
    assert_eq!(refused.json(&head)["error"]["code"], "too_many_with_token");
    assert_eq!(follow(&second).1.status, 200, "another token is another person");
    assert_eq!(follow(ADMIN).1.status, 200, "a secret is a program");
    let run = start(&served, "idle");
    let idle = waiting.head();
    assert_eq!(idle.status, 200, "who waited follows now, and counts once");
    let (_, head) = begin(&served, &format!("POST /runs/{run}/finish"), Some(PRODUCER), "");
    assert_eq!(head.status, 200);
    while waiting.chunk().unwrap().is_some() {}
    assert_eq!(follow(&first).1.status, 200, "its place is free again");
}
