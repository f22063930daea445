//! What steer, retry and stop do to the history.

use serde_json::json;

use crate::agent::Agent;
use crate::server::{Served, Stream, serve, serve_with_db};
use crate::{ask, follow, history, is_type, messages, sdk_agent, send, stream, taken, until};

/// Sends a message that is answered slowly, and waits for the first words.
fn begin(served: &Served, chat: &str) -> (String, Stream) {
    let run = send(served, chat, "slow");
    let mut observer = served.live(chat, ",\"wait_ms\":20000");
    until(&mut observer, is_type("TEXT_MESSAGE_CONTENT"));
    (run, observer)
}

/// The outcomes that are recorded, by run.
fn finalizations(served: &Served) -> Vec<(String, String)> {
    let db = rusqlite::Connection::open(served.dir.join("chats.db")).unwrap();
    let mut rows = db.prepare("SELECT run_id, outcome FROM finalizations").unwrap();
    rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

fn each_agent(mut test: impl FnMut(&Served)) {
    let agent = Agent::start();
    for spec in [agent.url().to_owned(), sdk_agent()] {
        test(&serve_with_db("chats.db", &["--agent", &spec]));
    }
}

#[test]
fn a_steered_answer_is_kept_with_the_message_that_steered_it() {
    each_agent(|served| {
        let (old, mut observer) = begin(served, "c");
        let new = taken(ask(served, "/chat/steer-send", "c", ",\"message\":\"hello\""));
        let end = observer.all().pop().unwrap();
        assert_eq!((&end["superseded"], &end["persisted"]), (&json!(true), &json!(false)));
        let (_, end) = follow(served, "c", 3);
        assert_eq!((&end["run_id"], &end["persisted"]), (&json!(new), &json!(true)));
        let stored = history(served, "c");
        assert_eq!(stored["turns"][0]["run_id"], json!(old));
        assert_eq!(
            (&stored["turns"][0]["superseded"], &stored["turns"][0]["persisted"]),
            (&json!(true), &json!(true))
        );
        let roles: Vec<String> = messages(served, "c").into_iter().map(|(role, _)| role).collect();
        assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
        let outcomes = finalizations(served);
        assert!(outcomes.contains(&(old, "committed".to_owned())), "{outcomes:?}");
    });
}

#[test]
fn a_retry_takes_back_the_answer_that_is_being_written() {
    each_agent(|served| {
        let (old, mut observer) = begin(served, "c");
        let new = taken(ask(served, "/chat/retry", "c", ",\"message\":\"hello\""));
        assert_eq!(observer.all().pop().unwrap()["superseded"], true);
        let (_, end) = follow(served, "c", 3);
        assert_eq!((&end["run_id"], &end["persisted"]), (&json!(new), &json!(true)));
        assert_eq!(history(served, "c")["turns"].as_array().unwrap().len(), 1);
        assert_eq!(messages(served, "c")[0], ("user".to_owned(), "hello".to_owned()));
        let outcomes = finalizations(served);
        assert!(outcomes.contains(&(old, "skipped".to_owned())), "{outcomes:?}");
    });
}

#[test]
fn a_stop_ends_the_run_for_everyone_and_keeps_what_there_is() {
    each_agent(|served| {
        let (run, mut observer) = begin(served, "c");
        let (status, answer) = ask(served, "/chat/stop", "c", ",\"reason\":\"enough\"");
        assert_eq!(
            (status, &answer["run_id"], &answer["persisted"]),
            (200, &json!(run), &json!(true)),
            "{answer}"
        );
        let error = until(&mut observer, is_type("RUN_ERROR"));
        assert_eq!((&error["code"], &error["message"]), (&json!("stopped"), &json!("enough")));
        let end = observer.all().pop().unwrap();
        assert_eq!((&end["persisted"], &end["superseded"]), (&json!(true), &json!(false)));
        assert_eq!(history(served, "c")["turns"][0]["closed"], "stopped");
        assert_eq!(ask(served, "/chat/stop", "c", "").0, 404);
        // The next turn is not disturbed by what the stopped agent may still say.
        send(served, "c", "hello");
        assert_eq!(follow(served, "c", 2).1["persisted"], true);
    });
}

#[test]
fn closing_the_page_stops_a_legacy_turn_and_no_other() {
    each_agent(|served| {
        let mut legacy = stream(served, "/chat", r#"{"chat_id":"legacy","message":"slow"}"#);
        let mut frames = stream(served, "/chat", r#"{"chat_id":"frames","message":"slow","protocol":1}"#);
        let mut watches = served.live("legacy", "");
        while legacy.data().unwrap()["type"] != "TEXT_MESSAGE_CONTENT" {}
        until(&mut frames, is_type("TEXT_MESSAGE_CONTENT"));
        drop((legacy, frames));
        assert_eq!(until(&mut watches, is_type("RUN_ERROR"))["code"], "stopped");
        assert_eq!(watches.all().pop().unwrap()["persisted"], true);
        let mut again = served.live("frames", "");
        let snapshot = again.data().unwrap();
        assert_eq!(snapshot["type"], "STREAM_SNAPSHOT");
        assert_eq!(ask(served, "/chat/stop", "frames", "").0, 200);
        let end = again.all().pop().unwrap();
        assert_eq!((&end["type"], &end["persisted"]), (&json!("STREAM_END"), &json!(true)));
    });
}

#[test]
fn a_conversation_is_handed_on_and_survives_a_restart() {
    let agent = Agent::start();
    let mut served = serve_with_db("chats.db", &["--agent", agent.url()]);
    send(&served, "c", "hello");
    follow(&served, "c", 5);
    assert!(served.terminate());
    let dir = served.dir.clone();
    let db = dir.join("chats.db");
    let again = serve_with_db(db.to_str().unwrap(), &["--agent", agent.url()]);
    send(&again, "c", "utf8");
    follow(&again, "c", 5);
    let spoken = messages(&again, "c");
    let roles: Vec<&str> = spoken.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    assert!(spoken[3].1.contains("日本語 👩‍👩‍👧"), "{spoken:?}");
}

#[test]
fn a_message_is_in_the_history_before_its_turn_is_taken() {
    let served = serve(&["--agent", &sdk_agent()]);
    send(&served, "c", "slow");
    assert_eq!(messages(&served, "c"), [("user".to_owned(), "slow".to_owned())]);
    let stored = history(&served, "c");
    assert_eq!(
        (&stored["turns"][0]["persisted"], &stored["turns"][0]["events"]),
        (&json!(false), &json!([]))
    );
}
