//! `GET /readyz`: whether new work is taken, and if not, why.

use rejoin::engine::{Config, Input};
use rejoin::limits::{Limits, STORE_SILENT_MS};
use rejoin::proto::history::{Answer, Outcome, Page};

use crate::server::serve;
use crate::stage::Stage;

fn check(answer: &str, status: u16, word: &str) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let told = if status == 200 { &body["status"] } else { &body["error"]["code"] };
    assert_eq!(told, word, "{body}");
}

#[test]
fn a_server_that_has_just_begun_is_ready() {
    let served = serve(&[]);
    let (status, body) = served.ask("GET /readyz", "");
    assert_eq!((status, body["status"].as_str()), (200, Some("ready")));
    assert_eq!(served.ask("POST /readyz", "{}").0, 405);
}

#[test]
fn a_server_is_not_ready_while_its_memory_is_used_up() {
    let limits = Limits { memory_bytes_max: 1, ..Limits::default() };
    let mut stage = Stage::new(Config { limits, ..Config::default() });
    check(&stage.ask("GET /readyz", ""), 200, "ready");
    stage.ask("POST /chats/a/runs?stream=1", r#"{"type":"CUSTOM","name":"n","value":1}"#);
    check(&stage.ask("GET /readyz", ""), 503, "out_of_memory");
    check(&stage.ask("GET /healthz", ""), 200, "ok");
    assert_eq!(stage.metric("rejoin_ready"), 0.0);
    stage.ask("DELETE /chats/a", "");
    check(&stage.ask("GET /readyz", ""), 200, "ready");
}

#[test]
fn a_server_is_not_ready_while_its_store_is_silent() {
    let mut stage = Stage::new(Config::default());
    // Silence counts only while something is owed.
    stage.pass(10 * STORE_SILENT_MS);
    check(&stage.ask("GET /readyz", ""), 200, "ready");
    let run = stage.run_to_commit("a");
    stage.ask("GET /chats", "");
    assert_eq!(stage.metric("rejoin_store_queue"), 2.0);
    stage.pass(STORE_SILENT_MS - 1);
    check(&stage.ask("GET /readyz", ""), 200, "ready");
    stage.pass(1);
    check(&stage.ask("GET /readyz", ""), 503, "store_stuck");
    // A store that answers late is slow, not stuck; and nobody forgets what it owes because a run gave it up.
    stage.handle(Input::Stored(Answer::Finalized { run, outcome: Outcome::Committed }));
    check(&stage.ask("GET /readyz", ""), 200, "ready");
    stage.pass(STORE_SILENT_MS);
    check(&stage.ask("GET /readyz", ""), 503, "store_stuck");
    let Some(rejoin::proto::history::Job::Chats { ticket, .. }) = stage.jobs.pop() else { panic!() };
    stage.handle(Input::Stored(Answer::Page { ticket, page: Page::Failed }));
    check(&stage.ask("GET /readyz", ""), 200, "ready");
    assert_eq!(stage.metric("rejoin_store_queue"), 0.0);
}

#[test]
fn a_server_that_is_to_stop_says_so() {
    let mut stage = Stage::new(Config::default());
    // The request is under way when the stop comes.
    let id = stage.open();
    stage.say(id, b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n");
    stage.handle(Input::Shutdown);
    check(&stage.say(id, b"x"), 503, "shutting_down");
}

#[test]
fn a_server_without_room_for_connections_is_not_ready() {
    let limits = Limits { connections_max: 2, ..Limits::default() };
    let mut stage = Stage::new(Config { limits, ..Config::default() });
    check(&stage.ask("GET /readyz", ""), 200, "ready");
    check(&stage.ask("GET /readyz", ""), 503, "too_many_connections");
    check(&stage.ask("GET /readyz", ""), 503, "too_many_connections");
}
