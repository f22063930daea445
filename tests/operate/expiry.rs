//! Tokens that expire while something is going on, on a clock that the test sets.

use rejoin::access::{Access, Claims, Right};
use rejoin::engine::{Config, Input};
use rejoin::proto::id::ConnId;

use crate::stage::Stage;

const FILE: &str = "producer producer-0123456789abcdef\nhs256 0123456789abcdef0123456789abcdef\n";
const PRODUCER: &str = "producer-0123456789abcdef";

/// What the stage's clock begins with.
const BEGIN_S: f64 = 1_700_000_000.0;

fn stage() -> Stage {
    Stage::new(Config { access: Access::parse(FILE).unwrap(), ..Config::default() })
}

/// A token for all chats that ends so many seconds after the beginning.
fn jwt(seconds: f64) -> String {
    let claims = Claims {
        exp: BEGIN_S + seconds,
        chat_prefixes: vec![String::new()],
        rights: Right::ALL.to_vec(),
        ..Claims::default()
    };
    Access::parse(FILE).unwrap().mint(&claims).unwrap()
}

fn ask(stage: &mut Stage, line: &str, token: &str, body: &str) -> (ConnId, String) {
    let id = stage.open();
    let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{kind}Content-Length: {length}\r\n\r\n{body}"
    );
    let answer = stage.say(id, request.as_bytes());
    (id, answer)
}

fn start(stage: &mut Stage, chat: &str) -> String {
    let (_, answer) = ask(stage, &format!("POST /chats/{chat}/runs"), PRODUCER, "{}");
    let at = answer.find("\"run_id\":\"").unwrap() + 10;
    answer[at..].split('"').next().unwrap().to_owned()
}

const LIVE: &str = r#"{"chat_id":"c","protocol":1,"wait_ms":25000}"#;

#[test]
fn an_open_stream_is_cut_when_its_token_expires() {
    let mut stage = stage();
    let run = start(&mut stage, "c");
    let control = format!("GET /runs/{run}/control");
    let streams = [("POST /chat/live", LIVE), ("GET /events/stream", ""), (control.as_str(), "")];
    let open: Vec<ConnId> = streams
        .map(|(line, body)| {
            let (id, answer) = ask(&mut stage, line, &jwt(100.0), body);
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            id
        })
        .into();
    let lasting = ask(&mut stage, "POST /chat/live", &jwt(1_000.0), LIVE).0;
    stage.pass(99_000);
    for id in &open {
        stage.written(*id);
        assert!(!stage.is_closed(*id), "it is good for another second");
    }
    stage.pass(1_000);
    for id in &open {
        let rest = stage.written(*id);
        assert!(
            !rest.contains("STREAM_END") && !rest.ends_with("0\r\n\r\n"),
            "it must not look complete: {rest:?}"
        );
        assert!(stage.is_closed(*id));
    }
    assert!(!stage.is_closed(lasting), "another's stream goes on");
    let (_, again) = ask(&mut stage, "POST /chat/live", &jwt(100.0), LIVE);
    assert!(again.starts_with("HTTP/1.1 401") && again.contains("expired"), "{again}");
    let (_, again) = ask(&mut stage, "POST /chat/live", &jwt(200.0), LIVE);
    assert!(again.contains("STREAM_SNAPSHOT"), "with a new token it goes on: {again}");
}

#[test]
fn who_waits_for_a_run_is_told_that_the_token_has_expired() {
    let mut stage = stage();
    let (id, answer) = ask(&mut stage, "POST /chat/live", &jwt(10.0), LIVE);
    assert_eq!(answer, "");
    stage.pass(10_000);
    let answer = stage.written(id);
    assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("WWW-Authenticate"), "{answer}");
    start(&mut stage, "c");
    assert_eq!(stage.written(id), "", "it waits no longer");
}

#[test]
fn the_time_that_a_machine_slept_counts() {
    let mut stage = stage();
    start(&mut stage, "c");
    let id = ask(&mut stage, "POST /chat/live", &jwt(3_600.0), LIVE).0;
    // The monotonic clock stands still in a suspend; the next keep-alive is 15 s away by it.
    stage.sleep(7_200_000);
    stage.pass(15_000);
    stage.written(id);
    assert!(stage.is_closed(id));
}

#[test]
fn a_body_that_was_let_in_is_read_to_its_end() {
    let mut stage = stage();
    let run = start(&mut stage, "c");
    let id = stage.open();
    let token = jwt(10.0);
    let head = format!(
        "POST /runs/{run}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    stage.say(id, head.as_bytes());
    stage.pass(20_000);
    let answer = stage.say(id, b"12\r\n{\"type\":\"CUSTOM\"}\n\r\n0\r\n\r\n".as_slice());
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"next\":2"), "{answer}");
}

#[test]
fn an_expired_token_stops_no_turn() {
    let mut stage = stage();
    let run = start(&mut stage, "c");
    ask(&mut stage, "POST /chat/live", &jwt(10.0), LIVE);
    stage.pass(20_000);
    stage.handle(Input::Tick);
    let (_, state) = ask(&mut stage, &format!("GET /runs/{run}"), PRODUCER, "");
    assert!(state.contains("\"state\":\"registered\""), "{state}");
}
