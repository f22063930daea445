//! Every kind of turn with every kind of agent: an observer that is cut off again and again while the agent goes on has
//! all of it, what it has is what AG-UI accepts, and the history holds it.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::oracle::Oracle;
use crate::server::{Served, serve};
use crate::{ask, follow, follow_from, history, messages, said, sdk_agent, send, stream, taken};

/// How a turn is asked for.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Send,
    Steer,
    Retry,
    Edit,
    EditFrom,
    Direct,
    Heartbeat,
    Canvas,
    Schedule,
}

const KINDS: [Kind; 9] = [
    Kind::Send,
    Kind::Steer,
    Kind::Retry,
    Kind::Edit,
    Kind::EditFrom,
    Kind::Direct,
    Kind::Heartbeat,
    Kind::Canvas,
    Kind::Schedule,
];

/// Carries out a turn of this kind; what an observer has of it, and its end.
fn turn(served: &Served, kind: Kind, chat: &str, words: &str) -> (Vec<Value>, Value) {
    let message = format!(",\"message\":{}", json!(words));
    let body = |more: &str| format!("{message}{more}");
    let run = match kind {
        Kind::Send => taken(ask(served, "/chat/send", chat, &message)),
        Kind::Steer => taken(ask(served, "/chat/steer-send", chat, &message)),
        Kind::Retry => {
            send(served, chat, words);
            follow(served, chat, 50);
            taken(ask(served, "/chat/retry", chat, ""))
        }
        Kind::Edit => {
            send(served, chat, "something else");
            follow(served, chat, 50);
            taken(ask(served, "/chat/retry", chat, &message))
        }
        Kind::EditFrom => {
            for earlier in ["first", "second"] {
                send(served, chat, earlier);
                follow(served, chat, 50);
            }
            taken(ask(served, "/chat/retry", chat, &body(",\"message_index\":0")))
        }
        Kind::Direct => {
            let request = format!("{{\"chat_id\":{}{}}}", json!(chat), body(",\"protocol\":1"));
            return follow_from(served, chat, stream(served, "/chat", &request), 2);
        }
        Kind::Heartbeat => taken(ask(served, "/chat/send", chat, &body(",\"trigger\":\"heartbeat\""))),
        Kind::Canvas => {
            taken(ask(served, "/chat/send", chat, &body(",\"trigger\":\"canvas\",\"payload\":{\"a\":1}")))
        }
        Kind::Schedule => taken(ask(served, "/chat/send", chat, &body(",\"trigger\":\"schedule\""))),
    };
    let (events, end) = follow(served, chat, 2);
    assert_eq!(end["run_id"], json!(run), "{kind:?}");
    (events, end)
}

fn every_kind(served: &Served, words: &str, answer: &str) {
    let mut oracle = Oracle::start();
    for (number, kind) in KINDS.into_iter().enumerate() {
        let chat = format!("chat-{number}");
        let (events, end) = turn(served, kind, &chat, words);
        assert_eq!((&end["persisted"], &end["superseded"]), (&json!(true), &json!(false)), "{kind:?}");
        assert!(said(&events).contains(answer), "{kind:?}: {events:?}");
        let verdict = oracle.verify(&serde_json::to_vec(&events).unwrap());
        assert!(verdict.accepted && !verdict.open.run, "{kind:?}: {verdict:?}");

        let stored = history(served, &chat);
        let turns = stored["turns"].as_array().unwrap();
        let last = turns.last().unwrap();
        assert_eq!((turns.len(), &last["run_id"]), (1, &end["run_id"]), "{kind:?}");
        let trigger = match kind {
            Kind::Heartbeat => "heartbeat",
            Kind::Canvas => "canvas",
            Kind::Schedule => "schedule",
            _ => "user",
        };
        assert_eq!((&last["trigger"], &last["persisted"]), (&json!(trigger), &json!(true)), "{kind:?}");
        let held = serde_json::to_vec(&last["events"]).unwrap();
        let lost = oracle.compare(&serde_json::to_vec(&events).unwrap(), &held).lost();
        assert_eq!(lost, None, "{kind:?}: the history has what the observer has");
        let spoken = messages(served, &chat);
        assert_eq!(spoken[0], ("user".to_owned(), words.to_owned()), "{kind:?}");
        assert!(spoken.iter().any(|(role, text)| role == "assistant" && text.contains(answer)), "{kind:?}");
    }
}

#[test]
fn every_kind_of_turn_with_an_ag_ui_agent() {
    let agent = Agent::start();
    let served = serve(&["--agent", agent.url()]);
    every_kind(&served, "hello", "Hello from a real AG-UI agent.");
}

#[test]
fn every_kind_of_turn_with_an_acp_agent() {
    let served = serve(&["--agent", &sdk_agent()]);
    every_kind(&served, "hello", "Hello, wörld 🎈");
}

#[test]
fn tools_and_thoughts_of_an_acp_agent_are_ag_ui() {
    let served = serve(&["--agent", &sdk_agent()]);
    send(&served, "c", "tools");
    let (events, end) = follow(&served, "c", 1);
    assert_eq!(end["persisted"], true);
    let verdict = Oracle::start().verify(&serde_json::to_vec(&events).unwrap());
    assert!(verdict.accepted, "{verdict:?}");
    let roles: Vec<String> = messages(&served, "c").into_iter().map(|(role, _)| role).collect();
    for role in ["user", "reasoning", "assistant", "tool"] {
        assert!(roles.iter().any(|known| known == role), "{role} in {roles:?}");
    }
}

#[test]
fn a_turn_in_the_legacy_format_is_bare_events() {
    let agent = Agent::start();
    let served = serve(&["--agent", agent.url()]);
    let mut bare = stream(&served, "/chat", r#"{"chat_id":"c","message":"hello"}"#);
    let events = bare.all();
    assert!(bare.complete, "an answer that is whole looks whole");
    assert_eq!(
        (&events[0]["type"], said(&events)),
        (&json!("RUN_STARTED"), "Hello from a real AG-UI agent.".to_owned())
    );
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED");
}
