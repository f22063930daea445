//! `rejoin demo`: a server with a scripted agent inside, which streams at reading pace, so that the first run shows
//! something without key or network.

use std::process::ExitCode;
use std::time::Duration;

use rejoin::Server;
use rejoin::producer::{Handle, Producer, ProducerError, RunOptions};
use rejoin::turns::{Agent, AgentKind};

use super::serve::{ServeArgs, serve};

/// The chat that the agent writes to.
const CHAT: &str = "demo";

/// Between two words: a quick reader's pace.
const WORD: Duration = Duration::from_millis(110);

/// The answering agent is given up after this long without a word, in milliseconds.
const SILENCE_MS: u64 = 60_000;

/// Between two answers.
const PAUSE: Duration = Duration::from_secs(5);

const THOUGHTS: &str =
    "The reader may vanish at any word. Nothing I write may depend on somebody reading it now.";

const ANSWERS: [&str; 3] = [
    "This answer is written word by word, and it does not care who is reading. Cut the connection now, wait as long \
     as you like, and come back: you will get all that you missed in one piece, and then the rest as it is written. \
     The server keeps the run, not the connection. Every observer has a cursor of its own, so a second window shows \
     the same words at the same time, and closing one disturbs nobody. A cursor that is still within the last few \
     thousand events costs only what was missed; an older one costs one compact snapshot, in which thousands of \
     small pieces have been joined into a few.",
    "Here is what happens at the end. When the agent is done, the answer is committed to the history, and only then \
     does the last frame go out, which says whether it was saved. If the disk is full, it says so. If a newer turn \
     took the place of this one, it says that too, and the reader follows the new one. No stream is ever called \
     complete just because a connection ended.",
    "Try the hard cases. Open ten windows. Kill the reader in the middle of a word. Put the laptop to sleep. Ask for \
     the history while the answer is being written: it shows what was committed, never a half-finished guess. Text in \
     any script survives any cut: naïve, Grüße, 日本語, Привет, مرحبا, 👩‍👩‍👧 — bytes are passed on as they came.",
];

/// Serves, with the agent on a thread of its own.
pub(crate) fn demo(args: &ServeArgs) -> ExitCode {
    serve(args, answering_agent(), start_agent)
}

/// Answers what people send: this program itself, which speaks ACP when it is told to.
fn answering_agent() -> Option<Agent> {
    let program = std::env::current_exe().ok()?.into_os_string().into_string().ok()?;
    let kind = AgentKind::Acp { command: vec![program, "demo-agent".to_owned()], folder: None };
    Some(Agent { name: "demo".to_owned(), kind, silence_ms: SILENCE_MS })
}

fn start_agent(server: &Server) {
    let base = format!("http://{}", server.address());
    super::say(&format!(
        "\nOpen {base} in a browser, write something, and reload in the middle of the answer.\n\n\
         An agent is writing into the chat \"{CHAT}\". In a second terminal, read along:\n\n    \
         cargo run --release -- observe {CHAT} --url {base}\n\n\
         Stop it with Ctrl-C in mid-sentence and start it again: the text so far comes at once, then it goes on.\n\
         The bare protocol:\n\n    \
         curl -N '{base}/chat/live?chat_id={CHAT}&wait_ms=20000'\n\n\
         What was saved:\n\n    curl {base}/chats/{CHAT}\n"
    ));
    let handle = server.handle();
    let agent = std::thread::Builder::new().name("demo-agent".to_owned()).spawn(move || {
        for (turn, answer) in ANSWERS.iter().cycle().enumerate() {
            match write_turn(&handle, turn, answer) {
                Ok(()) => std::thread::sleep(PAUSE),
                Err(ProducerError::ServerGone) => return,
                Err(error) => {
                    tracing::info!(%error, "the demo's turn was cut short");
                    std::thread::sleep(PAUSE);
                }
            }
        }
    });
    if let Err(error) = agent {
        tracing::error!(%error, "the demo's agent could not be started");
    }
}

fn write_turn(handle: &Handle, turn: usize, answer: &str) -> Result<(), ProducerError> {
    let mut run = handle.start(CHAT, RunOptions::default())?;
    let ids = format!(r#""threadId":"demo","runId":"turn-{turn}""#);
    run.append(format!(r#"{{"type":"RUN_STARTED",{ids}}}"#).as_bytes())?;
    let thought = format!("thought-{turn}");
    run.append(format!(r#"{{"type":"REASONING_START","messageId":"{thought}"}}"#).as_bytes())?;
    write_text(&mut run, "REASONING_MESSAGE", "reasoning", &thought, THOUGHTS)?;
    run.append(format!(r#"{{"type":"REASONING_END","messageId":"{thought}"}}"#).as_bytes())?;
    write_text(&mut run, "TEXT_MESSAGE", "assistant", &format!("answer-{turn}"), answer)?;
    run.append(format!(r#"{{"type":"RUN_FINISHED",{ids}}}"#).as_bytes())?;
    run.finish().map(|_| ())
}

fn write_text(run: &mut Producer, kind: &str, role: &str, id: &str, text: &str) -> Result<(), ProducerError> {
    run.append(format!(r#"{{"type":"{kind}_START","messageId":"{id}","role":"{role}"}}"#).as_bytes())?;
    for word in text.split_inclusive(' ') {
        run.append(format!(r#"{{"type":"{kind}_CONTENT","messageId":"{id}","delta":"{word}"}}"#).as_bytes())?;
        std::thread::sleep(WORD);
    }
    run.append(format!(r#"{{"type":"{kind}_END","messageId":"{id}"}}"#).as_bytes())
}
