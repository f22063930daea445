//! What an AG-UI agent is told, and rejoin in the place of an AG-UI agent.

use std::process::Command;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::scripted::Scripted;
use crate::server::serve;
use crate::{ask, follow, history, messages, said, send, sse, stream, taken};

const ANSWER: &str = sse!(
    r#"{"type":"RUN_STARTED","threadId":"c","runId":"r"}"#,
    r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"assistant","delta":"ok"}"#,
    r#"{"type":"RUN_FINISHED","threadId":"c","runId":"r"}"#
);

#[test]
fn the_agent_gets_the_conversation_and_everything_that_was_passed() {
    let agent = Scripted::start(ANSWER, false);
    let served = serve(&["--agent", &agent.url]);
    let run = send(&served, "c", "first");
    let first = agent.asked();
    assert_eq!((&first["threadId"], &first["messages"][0]["content"]), (&json!("c"), &json!("first")));
    assert_ne!(first["runId"], json!(run), "the transport's id is not AG-UI's");
    follow(&served, "c", 5);

    let members = ",\"trigger\":\"canvas\",\"payload\":{\"button\":7},\"config\":{\"state\":{\"s\":1},\
                   \"tools\":[{\"name\":\"t\"}],\"context\":[{\"description\":\"d\",\"value\":\"v\"}],\
                   \"forwardedProps\":{\"f\":true}},\"resume\":[{\"interruptId\":\"i\",\"status\":\"resolved\"}]";
    taken(ask(&served, "/chat/send", "c", members));
    let second = agent.asked();
    let roles: Vec<&Value> =
        second["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant"], "a canvas action needs no words");
    assert_eq!(second["forwardedProps"], json!({"f": true, "trigger": "canvas", "payload": {"button": 7}}));
    assert_eq!((&second["state"], &second["tools"][0]["name"]), (&json!({"s": 1}), &json!("t")));
    assert_eq!(
        (&second["context"][0]["value"], &second["resume"][0]["interruptId"]),
        (&json!("v"), &json!("i"))
    );
    follow(&served, "c", 5);

    taken(ask(&served, "/chat/send", "c", ",\"trigger\":\"heartbeat\""));
    assert_eq!(agent.asked()["forwardedProps"], json!({"trigger": "heartbeat"}));
}

#[test]
fn an_interrupt_is_answered_by_the_next_send() {
    let agent = Scripted::start(
        sse!(
            r#"{"type":"RUN_STARTED","threadId":"c","runId":"r"}"#,
            r#"{"type":"RUN_FINISHED","threadId":"c","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"ask"}]}}"#
        ),
        false,
    );
    let served = serve(&["--agent", &agent.url]);
    send(&served, "c", "x");
    let (events, end) = follow(&served, "c", 1);
    assert_eq!((&events[1]["outcome"]["type"], &end["persisted"]), (&json!("interrupt"), &json!(true)));
    agent.asked();
    let resume = ",\"resume\":[{\"interruptId\":\"i\",\"status\":\"resolved\",\"payload\":{\"yes\":true}}]";
    taken(ask(&served, "/chat/send", "c", resume));
    assert_eq!(agent.asked()["resume"][0]["payload"], json!({"yes": true}));
}

#[test]
fn a_run_agent_input_goes_to_the_agent_as_it_is() {
    let agent = Scripted::start(ANSWER, false);
    let served = serve(&["--agent", &agent.url]);
    let input = json!({"threadId": "c", "runId": "mine", "state": {"n": 1e2}, "messages": [
        {"id": "1", "role": "user", "content": "hi"}], "tools": [], "context": [], "forwardedProps": {"x": [1]}});
    let mut answer = stream(&served, "/agui", &input.to_string());
    let events = answer.all();
    assert!(answer.complete);
    assert_eq!((events.len(), &events[1]["delta"], agent.asked()), (3, &json!("ok"), input.clone()));
    // The client sends everything again, and more.
    let mut more = input;
    let known = messages(&served, "c");
    assert_eq!(known, [("user".to_owned(), "hi".to_owned()), ("assistant".to_owned(), "ok".to_owned())]);
    let stored = history(&served, "c")["messages"].as_array().unwrap().clone();
    more["messages"] = Value::from(stored);
    more["messages"].as_array_mut().unwrap().push(json!({"id": "2", "role": "user", "content": "again"}));
    stream(&served, "/agui", &more.to_string()).all();
    let roles: Vec<String> = messages(&served, "c").into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"], "what is repeated is not stored again");
}

/// AG-UI's own client, which knows nothing of this server.
#[test]
fn a_stock_ag_ui_client_works_by_changing_one_url() {
    let agent = Agent::start();
    let served = serve(&["--agent", agent.url()]);
    let output = Command::new("node")
        .args([
            "http_agent.mjs",
            &format!("http://{}/agui", served.address),
            "hello",
            "utf8",
            "tools",
            "boom",
        ])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let turns: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(turns.len(), 4, "{text}");
    assert_eq!(turns[0]["answer"], "Hello from a real AG-UI agent.");
    assert!(turns[1]["answer"].as_str().unwrap().contains("日本語 👩‍👩‍👧"));
    assert_eq!((&turns[2]["failed"], &turns[3]["failed"]), (&Value::Null, &json!(true)), "{text}");
    assert_eq!(messages(&served, "stock").iter().filter(|(role, _)| role == "user").count(), 4);
    let live = served.live("stock", ",\"run_id\":\"none\",\"after_seq\":0").data().unwrap();
    assert!(said(live["events"].as_array().unwrap()).contains("so far so good"));
}
