//! What outlives a turn: an agent's process, a chat's choice of agent; and what must not.

use std::process::Command;

use serde_json::json;

use crate::agent::Agent;
use crate::server::{Served, serve};
use crate::{ask, fake_agent, follow, is_type, said, sdk_agent, send, taken, until};

/// The processes that the server has started and that are alive.
fn children(served: &Served) -> Vec<u32> {
    let output =
        Command::new("ps").args(["-o", "pid=,stat=", "--ppid", &served.pid().to_string()]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let alive = text.lines().filter(|line| !line.contains('Z'));
    alive.map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect()
}

fn is_alive(pid: u32) -> bool {
    Command::new("kill").args(["-0", &pid.to_string()]).output().unwrap().status.success()
}

#[test]
fn one_process_serves_all_turns_of_a_chat_and_none_is_left_behind() {
    let mut served = serve(&["--agent", &sdk_agent()]);
    send(&served, "a", "hello");
    follow(&served, "a", 5);
    let first = children(&served);
    assert_eq!(first.len(), 1);
    send(&served, "a", "hello");
    follow(&served, "a", 5);
    assert_eq!(children(&served), first, "the process is used again");
    send(&served, "b", "slow");
    until(&mut served.live("b", ",\"wait_ms\":20000"), is_type("TEXT_MESSAGE_CONTENT"));
    let both = children(&served);
    assert_eq!(both.len(), 2);
    assert!(served.terminate(), "it ends well in mid-turn");
    assert!(!both.iter().any(|pid| is_alive(*pid)), "an agent is left behind");
}

#[test]
fn a_stopped_turn_leaves_a_process_that_can_go_on() {
    let served = serve(&["--agent", &sdk_agent()]);
    send(&served, "c", "slow");
    until(&mut served.live("c", ",\"wait_ms\":20000"), is_type("TEXT_MESSAGE_CONTENT"));
    let before = children(&served);
    assert_eq!(ask(&served, "/chat/stop", "c", "").0, 200);
    send(&served, "c", "hello");
    assert_eq!(said(&follow(&served, "c", 5).0), "Hello, wörld 🎈");
    assert_eq!(children(&served), before);
    assert_eq!(served.ask("DELETE /chats/c", "").0, 204);
    for _ in 0..200 {
        if children(&served).is_empty() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("a deleted chat's agent lives on");
}

#[test]
fn several_agents_have_names_and_a_chat_remembers_its_own() {
    let native = Agent::start();
    let dir = std::env::temp_dir().join(format!("rejoin-agents-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("agents.toml");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/acp/agent.mjs");
    let toml = format!(
        "default = \"web\"\n[agents.web]\nurl = \"{}\"\n[agents.local]\ncommand = [\"node\", \"{script}\"]\n",
        native.url()
    );
    std::fs::write(&file, toml).unwrap();
    let served = serve(&["--config", file.to_str().unwrap()]);
    let turn = |chat: &str, members: &str| {
        taken(ask(&served, "/chat/send", chat, &format!(",\"message\":\"hello\"{members}")));
        said(&follow(&served, chat, 5).0)
    };
    let (web, local) = ("Hello from a real AG-UI agent.", "Hello, wörld 🎈");
    assert_eq!(turn("a", ""), web);
    assert_eq!(turn("b", ",\"runtime\":\"local\""), local);
    assert_eq!(turn("b", ""), local, "the chat remembers its agent");
    assert_eq!(turn("a", ",\"runtime\":\"local\""), local);
    assert_eq!(turn("a", ""), local);
    let (status, body) = ask(&served, "/chat/send", "a", ",\"message\":\"x\",\"runtime\":\"other\"");
    assert_eq!(status, 400);
    assert!(
        body["error"]["message"].as_str().unwrap().contains("local, web")
            || body.to_string().contains("web, local")
    );
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn an_agent_that_is_gone_from_the_configuration_is_named() {
    let served = crate::server::serve_with_db("chats.db", &["--agent", &format!("old={}", fake_agent(""))]);
    send(&served, "c", "text");
    follow(&served, "c", 5);
    let db = served.dir.join("chats.db");
    let again =
        crate::server::serve_with_db(db.to_str().unwrap(), &["--agent", &format!("new={}", fake_agent(""))]);
    send(&again, "c", "text");
    let (events, _) = follow(&again, "c", 5);
    assert_eq!(events[0]["code"], json!("agent_error"));
    assert!(events[0]["message"].as_str().unwrap().contains("\"old\""), "{events:?}");
}
