//! Whole turns with a scripted agent (`tests/agents/fake_acp.py`) and with a real one on ACP's official SDK
//! (`tests/acp/agent.mjs`).

use std::io::{ErrorKind, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, after, select, unbounded};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use super::*;
use crate::proto::id::{ChatId, LocalId, RunId};
use crate::turns::{Agent, AgentKind, Decision, PromptPart, QuestionKind, TurnControl};

#[path = "../../../tests/support/oracle.rs"]
mod oracle;

/// Longer than anything takes that goes well.
const PATIENCE: Duration = Duration::from_secs(20);

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn agent(command: &[&str], silence_ms: u64) -> Arc<Agent> {
    let command = command.iter().map(|&word| word.to_owned()).collect();
    let kind = AgentKind::Acp { command, folder: Some(repository("tests")) };
    Arc::new(Agent { name: "fake".to_owned(), kind, silence_ms })
}

/// The scripted agent with these arguments.
fn fake(arguments: &str) -> Arc<Agent> {
    let mut command = vec!["python3", "agents/fake_acp.py"];
    command.extend(arguments.split_whitespace());
    agent(&command, 20_000)
}

fn order(agent: &Arc<Agent>, prompt: &str) -> TurnOrder {
    TurnOrder {
        turn: LocalId(1),
        run: RunId::from_bits(1),
        chat: ChatId::parse("c").unwrap(),
        agent_run: "r".to_owned(),
        agent: agent.clone(),
        input: Vec::new(),
        prompt: vec![PromptPart::Text(prompt.to_owned())],
        has_history: false,
    }
}

/// A turn on a thread of its own.
struct Running {
    control: Sender<TurnControl>,
    messages: Receiver<TurnMessage>,
    thread: JoinHandle<TurnEnd>,
    /// What it said so far, in short.
    said: Vec<String>,
}

impl Running {
    fn start(order: TurnOrder, before: Option<TurnEnd>) -> Running {
        let (deliver, messages) = unbounded();
        let (control, told) = unbounded();
        let TurnEnd { session, remembered } = before.unwrap_or(TurnEnd { session: None, remembered: None });
        let thread = thread::spawn(move || {
            let mut sink = TurnSink::new(move |message| deliver.send(message).is_ok(), told);
            run_turn(&order, session, remembered, &mut sink)
        });
        Running { control, messages, thread, said: Vec::new() }
    }

    /// Reads on until something is said that starts like this.
    fn until(&mut self, start: &str) {
        while !self.said.last().is_some_and(|last| last.starts_with(start)) {
            let message = self.messages.recv_timeout(PATIENCE);
            let message = message.unwrap_or_else(|_| panic!("no {start:?} after {:#?}", self.said));
            self.said.extend(outline(&message));
        }
    }

    fn tell(&self, control: TurnControl) {
        self.control.send(control).unwrap();
    }

    fn answer(&self, request: &str, answer: Decision) {
        self.tell(TurnControl::Answer { request: request.to_owned(), answer });
    }

    /// Everything that it said, and what it left.
    fn end(mut self) -> (Vec<String>, TurnEnd) {
        loop {
            select! {
                recv(self.messages) -> message => match message {
                    Ok(message) => self.said.extend(outline(&message)),
                    Err(_) => return (self.said, self.thread.join().unwrap()),
                },
                recv(after(PATIENCE)) -> _ => panic!("the turn does not end after {:#?}", self.said),
            }
        }
    }
}

/// A message in short; starts and ends of messages are left out.
fn outline(message: &TurnMessage) -> Option<String> {
    let event = match message {
        TurnMessage::Event(event) => event,
        TurnMessage::Ask(question) => return Some(format!("ask {}", question.request)),
        TurnMessage::Done => return Some("done".to_owned()),
        TurnMessage::Failed { code, message } => return Some(format!("{code}: {message}")),
    };
    let Ok(event) = serde_json::from_slice::<Value>(event) else {
        return Some(String::from_utf8(event.clone()).unwrap());
    };
    let get = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (call, delta) = (get("/toolCallId"), get("/delta"));
    Some(match get("/type") {
        "RUN_STARTED" => format!("started {} {}", get("/threadId"), get("/runId")),
        "RUN_FINISHED" => format!("finished {}", get("/result/stopReason")),
        "TEXT_MESSAGE_CONTENT" => format!("says {delta}"),
        "REASONING_MESSAGE_CONTENT" => format!("thinks {delta}"),
        "TOOL_CALL_START" => format!("calls {call} {}", get("/toolCallName")),
        "TOOL_CALL_ARGS" => format!("with {call} {delta}"),
        "TOOL_CALL_RESULT" => format!("gives {call} {}", get("/content")),
        "CUSTOM" => format!("{} {}", get("/name"), get("/value/sessionUpdate")).trim_end().to_owned(),
        _ => return None,
    })
}

/// A turn that nobody steers.
fn turn(order: TurnOrder, before: Option<TurnEnd>) -> (Vec<String>, TurnEnd) {
    let running = Running::start(order, before);
    let _control = running.control.clone();
    running.end()
}

/// What a fresh agent makes of a prompt, between RUN_STARTED and the end; the session is over afterwards.
fn check(arguments: &str, prompt: &str, expected: &[&str]) {
    let (said, _) = turn(order(&fake(arguments), prompt), None);
    assert_eq!(said[0], "started c r");
    assert_eq!(said[1..], *expected, "{arguments} {prompt}");
}

/// What a turn says when it goes wrong; the process is over afterwards.
fn check_failure(agent: &Arc<Agent>, prompt: &str, code: &str, words: &[&str]) {
    let running = Running::start(order(agent, prompt), None);
    let _control = running.control.clone();
    let (said, end) = running.end();
    let last = said.last().unwrap();
    assert!(last.starts_with(&format!("{code}: The ")), "{last}");
    for word in words {
        assert!(last.contains(word), "{word:?} is missing in {last:?}");
    }
    assert!(end.session.is_none(), "{last}");
}

/// Whether it happens at last.
fn eventually(mut happened: impl FnMut() -> bool) -> bool {
    (0..2000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        happened()
    })
}

fn is_running(pid: u32) -> bool {
    test_kill_process(Pid::from_raw(pid.cast_signed()).unwrap()).is_ok()
}

#[test]
fn what_the_agent_says_becomes_events() {
    check("", "text", &["says Hel", "says lo", "finished end_turn", "done"]);
    check("greet", "text", &["says Hel", "says lo", "finished end_turn", "done"]);
    check("", "thought", &["thinks Hm", "says Yes", "finished end_turn", "done"]);
    check(
        "",
        "tools",
        &[
            "acp.session_update plan",
            "calls t1 Read",
            "with t1 {\"path\": \"/a\"}",
            "calls t2 List",
            "acp.session_update tool_call_update",
            "says Both run.",
            "gives t1 42",
            "calls t3 tool",
            "acp.session_update tool_call_update",
            "gives t3 {\"no\": 1}",
            "with t2 {}",
            "finished end_turn",
            "done",
        ],
    );
    for reason in ["refusal", "max_tokens", "max_turn_requests", "cancelled", "new_reason"] {
        check("", &format!("stop {reason}"), &[&format!("finished {reason}"), "done"]);
    }
}

#[test]
fn what_is_no_message_is_skipped() {
    check(
        "",
        "badjson",
        &[
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"r-1","delta":"half \ud83d"}"#,
            "finished end_turn",
            "done",
        ],
    );
}

#[test]
fn requests_that_are_not_served_are_refused() {
    check("", "other", &["says -32601", "finished end_turn", "done"]);
}

#[test]
fn the_answer_begins_with_the_prompt() {
    check(
        "late",
        "text",
        &["acp.session_update available_commands_update", "says Hel", "says lo", "finished end_turn", "done"],
    );
}

#[test]
fn files_go_as_the_agent_takes_them() {
    for (arguments, kind) in [("files", "\"type\": \"image\""), ("", "The file cat.png (image/png)")] {
        let mut order = order(&fake(arguments), "show");
        order.prompt.push(PromptPart::File {
            name: "cat.png".to_owned(),
            media_type: "image/png".to_owned(),
            base64: "cA==".to_owned(),
        });
        let (said, _) = turn(order, None);
        assert!(said[1].contains(kind), "{said:#?}");
    }
}

#[test]
fn a_chat_keeps_its_process() {
    let agent = fake("");
    let (_, end) = turn(order(&agent, "text"), None);
    let pid = end.session.as_ref().unwrap().pid();
    assert_eq!(end.remembered.as_deref(), Some("new"));
    let (said, end) = turn(TurnOrder { has_history: true, ..order(&agent, "thought") }, Some(end));
    assert_eq!(said, ["started c r", "thinks Hm", "says Yes", "finished end_turn", "done"]);
    let session = end.session.unwrap();
    assert_eq!((session.pid(), session.is_alive(), session.last_session_id()), (pid, true, Some("new")));
}

#[test]
fn what_is_said_between_turns_is_no_answer() {
    let agent = fake("");
    let (_, end) = turn(order(&agent, "past"), None);
    let session = end.session.as_ref().unwrap();
    assert!(eventually(|| session.output().len() == 2), "the agent did not talk on");
    let (said, _) = turn(order(&agent, "text"), Some(end));
    assert_eq!(said[1..4], ["acp.session_update usage_update", "says Hel", "says lo"]);
}

#[test]
fn a_process_that_died_between_turns_is_replaced_and_the_loss_is_told() {
    let agent = fake("");
    let (_, end) = turn(order(&agent, "text"), None);
    let session = end.session.as_ref().unwrap();
    kill_process(Pid::from_raw(session.pid().cast_signed()).unwrap(), Signal::KILL).unwrap();
    assert!(eventually(|| !session.is_alive()));
    let (said, end) = turn(order(&agent, "text"), Some(end));
    assert_eq!(said[1..], ["acp.session_reset", "says Hel", "says lo", "finished end_turn", "done"]);
    assert!(end.session.unwrap().is_alive());
}

#[test]
fn another_agent_gets_another_process() {
    let (_, end) = turn(order(&fake("load"), "text"), None);
    let pid = end.session.as_ref().unwrap().pid();
    let (said, end) = turn(order(&fake("load greet"), "text"), Some(end));
    assert_eq!(said[1], "acp.session_reset");
    assert_ne!(end.session.unwrap().pid(), pid);
    assert!(!is_running(pid));
}

#[test]
fn a_remembered_conversation_is_loaded_if_it_can_be() {
    let loaded = ["acp.session_update available_commands_update", "says Hel"];
    let reset = ["acp.session_reset", "says Hel"];
    for (arguments, remembered, says, is_now) in [
        ("load", Some("known"), loaded, "known"),
        ("load", Some("forgotten"), reset, "new"),
        ("", Some("known"), reset, "new"),
        ("load", None, reset, "new"),
    ] {
        let order = TurnOrder { has_history: true, ..order(&fake(arguments), "text") };
        let before = TurnEnd { session: None, remembered: remembered.map(str::to_owned) };
        let (said, end) = turn(order, Some(before));
        assert_eq!(said[1..3], says, "{arguments} {remembered:?}");
        assert_eq!(end.remembered.as_deref(), Some(is_now));
    }
}

#[test]
fn a_permission_waits_for_its_answer() {
    for (answer, says) in [
        (
            Decision::Selected("yes".to_owned()),
            r#"says {"outcome": {"outcome": "selected", "optionId": "yes"}}"#,
        ),
        (Decision::Cancelled, r#"says {"outcome": {"outcome": "cancelled"}}"#),
    ] {
        let mut running = Running::start(order(&fake(""), "permission"), None);
        running.until("ask perm-1");
        running.answer("perm-7", Decision::Selected("no".to_owned()));
        running.answer("perm-1", answer);
        running.until("done");
        assert_eq!(running.said[1..], ["says May I?", "ask perm-1", says, "finished end_turn", "done"]);
    }
}

#[test]
fn a_question_shows_what_is_asked() {
    let running = Running::start(order(&fake(""), "permission"), None);
    let question = running.messages.iter().find_map(|message| match message {
        TurnMessage::Ask(question) => Some(question),
        _ => None,
    });
    let question = question.unwrap();
    assert_eq!(question.kind, QuestionKind::Permission(vec!["yes".to_owned()]));
    let expected = concat!(
        r#"{"type":"CUSTOM","name":"acp.permission_request","value":{"request_id":"perm-1","session_id":"new","#,
        r#""tool_call":{"toolCallId": "t1", "title": "Write"},"#,
        r#""options":[{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]}}"#
    );
    assert_eq!(String::from_utf8(question.event).unwrap(), expected);
    running.answer("perm-1", Decision::Cancelled);

    let running = Running::start(order(&fake(""), "form"), None);
    let question = running.messages.iter().find_map(|message| match message {
        TurnMessage::Ask(question) => Some(question),
        _ => None,
    });
    let question = question.unwrap();
    assert_eq!(question.kind, QuestionKind::Form);
    let expected = concat!(
        r#"{"type":"CUSTOM","name":"acp.elicitation_request","value":{"request_id":"form-1","session_id":"new","#,
        r#""message":"Who?","requestedSchema":{"type": "object", "properties": {"name": {"type": "string"}}}}}"#
    );
    assert_eq!(String::from_utf8(question.event).unwrap(), expected);
    running.answer("form-1", Decision::Declined);
}

#[test]
fn a_form_waits_for_its_answer() {
    for (answer, says) in [
        (
            Decision::Accepted("{\n\"name\": \"M\u{fc}ller\"}".to_owned()),
            r#"says {"action": "accept", "content": {"name": "M\u00fcller"}}"#,
        ),
        (Decision::Declined, r#"says {"action": "decline"}"#),
        (Decision::Cancelled, r#"says {"action": "cancel"}"#),
    ] {
        let mut running = Running::start(order(&fake(""), "form"), None);
        running.until("ask form-1");
        running.answer("form-1", answer);
        running.until("done");
        // A web page to go to was not offered, and is refused.
        assert_eq!(running.said[1..], ["ask form-1", says, "says -32602", "finished end_turn", "done"]);
    }
}

#[test]
fn waiting_for_a_person_is_no_silence() {
    let agent = agent(&["python3", "agents/fake_acp.py"], 3_000);
    let mut running = Running::start(order(&agent, "permission"), None);
    running.until("ask perm-1");
    thread::sleep(Duration::from_millis(3_500));
    running.answer("perm-1", Decision::Cancelled);
    running.until("done");
}

#[test]
fn a_cancelled_agent_that_ends_its_turn_is_kept() {
    for (prompt, until) in [("slow", "says Wait"), ("permission", "ask perm-1")] {
        let agent = fake("");
        let mut running = Running::start(order(&agent, prompt), None);
        running.until(until);
        running.tell(TurnControl::Cancel);
        let (said, end) = running.end();
        assert_eq!(said.last().unwrap(), until);
        assert!(end.session.as_ref().unwrap().is_alive());
        let (said, _) = turn(order(&agent, "text"), Some(end));
        assert_eq!(said[1..3], ["says Hel", "says lo"]);
    }
}

#[test]
fn a_turn_that_nobody_can_steer_any_more_is_cancelled() {
    let mut running = Running::start(order(&fake(""), "slow"), None);
    running.until("says Wait");
    let Running { control, thread, messages: _messages, .. } = running;
    drop(control);
    assert!(thread.join().unwrap().session.unwrap().is_alive());
}

#[test]
fn a_turn_that_nobody_hears_any_more_is_cancelled() {
    let (control, told) = unbounded();
    let mut wanted = 2;
    let deliver = move |_| {
        wanted -= 1;
        wanted > 0
    };
    let end = run_turn(&order(&fake(""), "slow"), None, None, &mut TurnSink::new(deliver, told));
    assert!(end.session.unwrap().is_alive());
    drop(control);
}

#[test]
fn a_cancelled_agent_that_goes_on_is_killed() {
    let mut running = Running::start(order(&fake(""), "hang"), None);
    running.until("says One moment");
    running.tell(TurnControl::Cancel);
    let (said, end) = running.end();
    assert_eq!(said.last().unwrap(), "says One moment");
    assert!(end.session.is_none());
    assert_eq!(end.remembered.as_deref(), Some("new"));
}

#[test]
fn an_agent_is_cancelled_while_it_starts() {
    let mut running = Running::start(order(&fake("mute"), "text"), None);
    running.until("started");
    running.tell(TurnControl::Cancel);
    let (said, end) = running.end();
    assert_eq!(said, ["started c r"]);
    assert!(end.session.is_none());
}

#[test]
fn failures_say_what_happened_and_what_to_do() {
    check_failure(&agent(&[], 1), "text", "agent_error", &["no command", "settings"]);
    check_failure(
        &agent(&["no-such-agent"], 1),
        "text",
        "agent_error",
        &["no-such-agent", "not found", "install"],
    );
    check_failure(&agent(&["./acp/package.json"], 1), "text", "agent_error", &["package.json", "executable"]);
    check_failure(&fake("version"), "text", "agent_error", &["version 2", "version 1"]);
    check_failure(&fake("refuse"), "text", "agent_error", &["initialize", "not today"]);
    check_failure(&fake("auth"), "text", "agent_error", &["log it in", "Authentication required"]);
    check_failure(&fake("gone"), "text", "agent_error", &["session/prompt", "Resource not found"]);
    check_failure(&fake(""), "die", "agent_error", &["exit status: 3", "words: out of cheese"]);
    check_failure(&fake(""), "close", "agent_error", &["closed its output", "without a word"]);
    check_failure(&fake(""), "long", "agent_error", &["16 MiB"]);
    let slow = |arguments| agent(&["python3", "agents/fake_acp.py", arguments], 2_000);
    check_failure(&slow(""), "hang", "timeout", &["2 s"]);
    check_failure(&slow("mute"), "text", "timeout", &["2 s"]);
}

#[test]
fn a_folder_that_is_missing_is_named() {
    let folder = Some(repository("tests/no-such-folder"));
    let kind = AgentKind::Acp { command: vec!["python3".to_owned()], folder };
    let agent = Arc::new(Agent { name: "lost".to_owned(), kind, silence_ms: 1 });
    check_failure(&agent, "text", "agent_error", &["tests/no-such-folder", "create it"]);
}

#[test]
fn an_error_or_an_odd_answer_ends_the_turn_and_not_the_session() {
    let agent = fake("");
    let (said, end) = turn(order(&agent, "error"), None);
    let expected = "agent_error: The agent fake answered session/prompt with an error: Internal error: no cheese \
                    (code -32603). Its log may tell more.";
    assert_eq!(said[1..], ["says Hm", expected]);
    let (said, end) = turn(order(&agent, "odd"), Some(end));
    assert!(said[1].contains("answered session/prompt with something that is not ACP"), "{said:#?}");
    let (said, _) = turn(order(&agent, "text"), Some(end));
    assert_eq!(said[1..3], ["says Hel", "says lo"]);
}

#[test]
fn no_process_is_left_when_a_session_is_dropped() {
    let (_, end) = turn(order(&fake(""), "text"), None);
    let session = end.session.unwrap();
    let pid = session.pid();
    assert!(is_running(pid));
    drop(session);
    assert!(!is_running(pid));
}

/// What an agent has started holds a connection to here: it is cut when that process ends, whoever reaps it.
#[test]
fn nothing_that_the_agent_started_is_left() {
    let agent = fake("");
    for dies_before in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (said, end) = turn(order(&agent, &format!("child {port}")), None);
        assert_eq!(said[1], "says started");
        let (mut child, _) = listener.accept().unwrap();
        child.set_read_timeout(Some(PATIENCE)).unwrap();
        child.read_exact(&mut [0]).unwrap();
        if dies_before {
            let (said, end) = turn(order(&agent, "die"), Some(end));
            assert!(said.last().unwrap().contains("exit status: 3"), "{said:#?}");
            assert!(end.session.is_none());
        } else {
            drop(end);
        }
        // End of file, or a reset; not the time-out.
        let cut = child.read(&mut [0]).map_err(|error| error.kind());
        assert!(
            matches!(cut, Ok(0) | Err(ErrorKind::ConnectionReset)),
            "the child outlived its agent: {cut:?}"
        );
    }
}

#[test]
fn a_clients_checks_accept_what_a_turn_says() {
    let mut oracle = oracle::Oracle::start();
    for prompt in ["text", "thought", "tools", "badjson", "stop refusal", "other"] {
        let running = Running::start(order(&fake(""), prompt), None);
        let _control = running.control.clone();
        let events: Vec<Vec<u8>> = running
            .messages
            .iter()
            .filter_map(|message| match message {
                TurnMessage::Event(event) => Some(event),
                _ => None,
            })
            .collect();
        let verification = oracle.verify(&[b"[", &*events.join(&b','), b"]"].concat());
        assert!(verification.accepted, "{prompt}: {:?}", verification.error);
        assert_eq!(verification.open, oracle::Open::default(), "{prompt}");
    }
}

/// The agent on ACP's official SDK, which checks every message that it gets.
fn real() -> Arc<Agent> {
    let installed = repository("tests/acp/node_modules/@agentclientprotocol/sdk").exists();
    assert!(installed, "the ACP agent's packages are not installed: run tests/run.sh");
    agent(&["node", "acp/agent.mjs"], 20_000)
}

#[test]
fn a_real_agent_goes_through_a_whole_chat() {
    let agent = real();
    let (said, end) = turn(order(&agent, "hello"), None);
    assert_eq!(
        said,
        ["started c r", "says Hello", "says , ", "says wörld", "says  🎈", "finished end_turn", "done"]
    );
    let (said, end) = turn(order(&agent, "tools"), Some(end));
    assert_eq!(
        said[1..],
        [
            "thinks I need the file.",
            "acp.session_update plan",
            "calls read-1 Read a.txt",
            "with read-1 {\"path\":\"/tmp/a.txt\"}",
            "acp.session_update tool_call",
            "acp.session_update tool_call_update",
            "gives read-1 42",
            "says It says 42.",
            "finished end_turn",
            "done",
        ]
    );
    let mut running = Running::start(order(&agent, "permission"), Some(end));
    running.until("ask perm-1");
    running.answer("perm-1", Decision::Selected("no".to_owned()));
    let _control = running.control.clone();
    let (said, end) = running.end();
    assert_eq!(said[1..], ["ask perm-1", "says You chose no.", "finished end_turn", "done"]);
    let mut running = Running::start(order(&agent, "slow"), Some(end));
    running.until("says Wait");
    running.tell(TurnControl::Cancel);
    let _control = running.control.clone();
    let (said, end) = running.end();
    assert_eq!(said[1..], ["says Wait"]);
    let (said, end) = turn(order(&agent, "boom"), Some(end));
    assert!(said[2].contains("the fuse blew"), "{said:#?}");
    let pid = end.session.as_ref().unwrap().pid();
    drop(end);
    assert!(!is_running(pid));
}
