//! `rejoin demo-agent`: the scripted agent that answers in `rejoin demo`. It speaks ACP on standard input and output like
//! any other, so what one sees is what a real agent's turn is like: thoughts, a plan, a tool call, text at reading pace;
//! with "permission" or "form" in the message it asks first.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use crossbeam_channel::{Receiver, RecvTimeoutError, unbounded};
use serde_json::{Value, json};

/// How it is started.
#[derive(Args, Debug)]
pub(crate) struct DemoAgentArgs {
    /// Milliseconds between two words; the default is a quick reader's pace
    #[arg(long, default_value_t = 70, value_name = "MS")]
    word_ms: u64,
}

/// Where the server's answers to questions are awaited; it gives up before that.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Speaks until standard input ends.
pub(crate) fn demo_agent(args: &DemoAgentArgs) -> ExitCode {
    let lines = read_lines(std::io::BufReader::new(std::io::stdin()));
    match serve(&lines, std::io::stdout(), Duration::from_millis(args.word_ms)) {
        Ok(()) | Err(Stop::Gone) => ExitCode::SUCCESS,
        Err(Stop::Cancelled) => ExitCode::FAILURE,
    }
}

/// Why an answer is not written to its end.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    /// Nobody listens any more.
    Gone,
    /// The turn is cancelled.
    Cancelled,
}

fn read_lines(input: impl BufRead + Send + 'static) -> Receiver<Value> {
    let (sender, lines) = unbounded();
    std::thread::spawn(move || {
        for line in input.lines().map_while(Result::ok) {
            let Ok(message) = serde_json::from_str(&line) else { continue };
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    lines
}

fn serve(lines: &Receiver<Value>, out: impl Write, pace: Duration) -> Result<(), Stop> {
    let mut agent = Agent { lines, out, pace, session: String::new(), sessions: 0, asked: 0 };
    while let Ok(message) = agent.lines.recv() {
        agent.take(&message)?;
    }
    Ok(())
}

struct Agent<'a, W> {
    lines: &'a Receiver<Value>,
    out: W,
    pace: Duration,
    session: String,
    sessions: u64,
    asked: u64,
}

impl<W: Write> Agent<'_, W> {
    fn take(&mut self, message: &Value) -> Result<(), Stop> {
        let id = &message["id"];
        let result = match message["method"].as_str() {
            Some("initialize") => json!({"protocolVersion": 1, "agentCapabilities": {}}),
            Some("session/new") => {
                self.sessions += 1;
                json!({"sessionId": format!("demo-{}", self.sessions)})
            }
            Some("session/prompt") => {
                self.session = message["params"]["sessionId"].as_str().unwrap_or("").to_owned();
                let reason = match self.answer(&prompt_text(&message["params"]["prompt"])) {
                    Ok(()) => "end_turn",
                    Err(Stop::Cancelled) => "cancelled",
                    Err(Stop::Gone) => return Err(Stop::Gone),
                };
                json!({"stopReason": reason})
            }
            // A cancel that came too late, or an answer to what is not asked any more.
            _ if id.is_null() || message["method"].is_null() => return Ok(()),
            _ => {
                let error = json!({"code": -32601, "message": "the demo's agent does not know this method"});
                return self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn answer(&mut self, prompt: &str) -> Result<(), Stop> {
        let words = prompt.to_lowercase();
        self.write(
            "agent_thought_chunk",
            "Whoever asked may reload at any word. That must not matter here.",
        )?;
        if words.contains("permission") {
            return self.ask_permission();
        }
        if words.contains("form") {
            return self.ask_form();
        }
        self.use_tool(prompt)?;
        self.write("agent_message_chunk", &explanation(prompt))
    }

    fn use_tool(&mut self, prompt: &str) -> Result<(), Stop> {
        self.asked += 1;
        let call = format!("count-{}", self.asked);
        let plan = |status: &str| {
            json!({"sessionUpdate": "plan", "entries": [
                {"content": "Count the words", "priority": "medium", "status": status},
                {"content": "Write an answer", "priority": "high", "status": "pending"},
            ]})
        };
        self.update(&plan("in_progress"))?;
        self.update(&json!({"sessionUpdate": "tool_call", "toolCallId": call, "title": "count words",
            "kind": "other", "status": "pending", "rawInput": {"text": prompt}}))?;
        self.pause(self.pace * 8)?;
        let counted = format!("{} words", prompt.split_whitespace().count());
        self.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": counted}}]}))
    }

    fn ask_permission(&mut self) -> Result<(), Stop> {
        let params = json!({
            "sessionId": self.session,
            "toolCall": {"toolCallId": "delete-1", "title": "Delete all drafts", "kind": "delete",
                "status": "pending", "rawInput": {"path": "drafts/"}},
            "options": [
                {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
                {"optionId": "no", "name": "Reject", "kind": "reject_once"},
            ],
        });
        let answer = self.ask("session/request_permission", &params)?;
        let text = match answer["outcome"]["optionId"].as_str() {
            Some("yes") => "Allowed. *Nothing was deleted, this is a demo.*",
            Some(_) => "Rejected. The drafts stay.",
            None => "Nobody answered. The drafts stay.",
        };
        self.write("agent_message_chunk", text)
    }

    fn ask_form(&mut self) -> Result<(), Stop> {
        let params = json!({
            "sessionId": self.session,
            "mode": "form",
            "message": "Where shall it be sent?",
            "requestedSchema": {"type": "object", "required": ["name", "speed"], "properties": {
                "name": {"type": "string", "title": "Name", "minLength": 1},
                "speed": {"type": "string", "title": "Speed", "oneOf": [
                    {"const": "slow", "title": "By ship"}, {"const": "fast", "title": "By air"}]},
                "copies": {"type": "integer", "title": "Copies", "minimum": 1, "maximum": 9, "default": 1},
                "gift": {"type": "boolean", "title": "It is a gift"},
            }},
        });
        let answer = self.ask("elicitation/create", &params)?;
        let text = match answer["action"].as_str() {
            Some("accept") => {
                let content = serde_json::to_string_pretty(&answer["content"]).unwrap_or_default();
                format!("This was filled in:\n\n```json\n{content}\n```\n")
            }
            _ => "The form was not filled in.".to_owned(),
        };
        self.write("agent_message_chunk", &text)
    }

    /// Asks the client, and waits for its answer.
    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Stop> {
        self.asked += 1;
        let id = format!("ask-{}", self.asked);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let message = self.next(PATIENCE)?.ok_or(Stop::Gone)?;
            if message["id"] == id.as_str() {
                return Ok(message["result"].clone());
            }
        }
    }

    /// Writes a text word by word.
    fn write(&mut self, kind: &str, text: &str) -> Result<(), Stop> {
        for word in text.split_inclusive(' ') {
            self.update(&json!({"sessionUpdate": kind, "content": {"type": "text", "text": word}}))?;
            self.pause(self.pace)?;
        }
        Ok(())
    }

    fn update(&mut self, update: &Value) -> Result<(), Stop> {
        let params = json!({"sessionId": self.session, "update": update});
        self.send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
    }

    fn send(&mut self, message: &Value) -> Result<(), Stop> {
        writeln!(self.out, "{message}").and_then(|()| self.out.flush()).map_err(|_| Stop::Gone)
    }

    #[expect(clippy::disallowed_methods, reason = "a program of its own, with its own clock")]
    fn pause(&mut self, time: Duration) -> Result<(), Stop> {
        let until = Instant::now() + time;
        while let left = until.saturating_duration_since(Instant::now())
            && !left.is_zero()
        {
            self.next(left)?;
        }
        Ok(())
    }

    /// The next message, if one comes in time.
    fn next(&mut self, time: Duration) -> Result<Option<Value>, Stop> {
        match self.lines.recv_timeout(time) {
            Ok(message) if message["method"] == "session/cancel" => Err(Stop::Cancelled),
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Stop::Gone),
        }
    }
}

fn prompt_text(parts: &Value) -> String {
    let texts = parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join(" ")
}

fn explanation(prompt: &str) -> String {
    let quoted = prompt.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n");
    format!(
        "You wrote:\n\n{quoted}\n\nI am a scripted agent, so I can't say much about it. But look how this text comes to \
         you:\n\n\
         1. **Reload the page now.** What was written is there at once, and the text goes on.\n\
         2. **Open a second tab.** It shows the same words at the same time.\n\
         3. **Cut the connection** with the button above, or stop the network of this machine for a minute.\n\
         4. **Send something else** while I write: it takes my place, and what I wrote stays.\n\n\
         Each piece has a number. A reader who comes back says how far it came, and gets the rest:\n\n\
         ```http\nGET /chat/live?chat_id=demo\nLast-Event-ID: the-run:42\n```\n\n\
         Write *permission* and I will ask before I act; write *form* and I will have you fill one in. When the page \
         says **Saved**, this answer is in the history: not before, and not if the disk is full.\n"
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    /// What the agent says to these messages, one JSON value a line.
    fn said(messages: &[Value]) -> Vec<Value> {
        let (sender, lines) = unbounded();
        messages.iter().for_each(|message| sender.send(message.clone()).unwrap());
        drop(sender);
        let mut out = Vec::new();
        let end = serve(&lines, &mut out, Duration::ZERO);
        assert!(matches!(end, Ok(()) | Err(Stop::Gone)), "{end:?}");
        String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn prompt(text: &str) -> Value {
        let params = json!({"sessionId": "demo-1", "prompt": [{"type": "text", "text": text}]});
        json!({"jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": params})
    }

    fn text_of(messages: &[Value], kind: &str) -> String {
        let updates = messages.iter().map(|message| &message["params"]["update"]);
        let chunks = updates.filter(|update| update["sessionUpdate"] == kind);
        chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    #[test]
    fn a_prompt_is_answered_with_thoughts_a_tool_call_and_text() {
        let messages = said(&[prompt("Grüße aus\nWien")]);
        assert_eq!(messages.last().unwrap()["result"], json!({"stopReason": "end_turn"}));
        assert!(text_of(&messages, "agent_thought_chunk").starts_with("Whoever asked"));
        assert!(text_of(&messages, "agent_message_chunk").contains("> Grüße aus\n> Wien\n"));
        let kinds: Vec<_> =
            messages.iter().map(|message| message["params"]["update"]["sessionUpdate"].as_str()).collect();
        assert!(kinds.contains(&Some("tool_call")) && kinds.contains(&Some("tool_call_update")));
    }

    #[test]
    fn a_question_waits_for_its_answer() {
        let answer = |option: &str| json!({"jsonrpc": "2.0", "id": "ask-1", "result": {"outcome": {"outcome": "selected", "optionId": option}}});
        for (option, says) in [("yes", "Allowed."), ("no", "Rejected.")] {
            let messages = said(&[prompt("permission, please"), answer(option)]);
            assert!(messages.iter().any(|message| message["method"] == "session/request_permission"));
            assert!(text_of(&messages, "agent_message_chunk").starts_with(says));
        }
        let form = json!({"jsonrpc": "2.0", "id": "ask-1", "result": {"action": "accept", "content": {"name": "Eva"}}});
        let messages = said(&[prompt("a form"), form]);
        assert!(text_of(&messages, "agent_message_chunk").contains("\"name\": \"Eva\""));
    }

    #[test]
    fn a_cancel_ends_the_turn_and_not_the_agent() {
        let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "demo-1"}});
        let start = json!({"jsonrpc": "2.0", "id": 8, "method": "session/new", "params": {}});
        let messages = said(&[prompt("permission"), cancel, start]);
        let results: Vec<_> = messages.iter().filter_map(|message| message.get("result")).collect();
        assert_eq!(results, [&json!({"stopReason": "cancelled"}), &json!({"sessionId": "demo-1"})]);
    }

    #[test]
    fn what_it_does_not_know_is_refused() {
        let messages = said(&[json!({"jsonrpc": "2.0", "id": 1, "method": "session/load", "params": {}})]);
        assert_eq!(messages[0]["error"]["code"], -32601);
    }
}
