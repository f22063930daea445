//! Answers as JSON bodies, and the messages of the event bus and the control stream.

use serde::Serialize;

use crate::proto::history::Trigger;
use crate::proto::id::{ChatId, RunId, Seq};
use crate::proto::run::{Run, State};

/// `{"error":{"code","message"}}`, the body of every refusal.
pub fn error(code: &str, message: &str) -> Vec<u8> {
    json(&Refusal { error: Fault { code, message, line: None, next: None, state: None } })
}

/// A refusal of a producer, with what it needs to go on: the faulty line, the number of its next event, or the
/// state of a run that is over.
pub fn producer_error(
    code: &str,
    message: &str,
    line: Option<u64>,
    next: Option<u64>,
    state: Option<State>,
) -> Vec<u8> {
    json(&Refusal { error: Fault { code, message, line, next, state: state.map(State::name) } })
}

#[derive(Serialize)]
struct Refusal<'a> {
    error: Fault<'a>,
}

#[derive(Serialize)]
struct Fault<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

/// The answer to a start: `{"run_id"}`.
pub fn started(run: RunId) -> Vec<u8> {
    #[derive(Serialize)]
    struct Started<'a> {
        run_id: &'a str,
    }
    json(&Started { run_id: run.as_str() })
}

/// The answer to a turn that was taken: `{"chat_id","run_id"}`.
pub fn accepted(chat: &ChatId, run: RunId) -> Vec<u8> {
    #[derive(Serialize)]
    struct Accepted<'a> {
        chat_id: &'a str,
        run_id: &'a str,
    }
    json(&Accepted { chat_id: chat.as_str(), run_id: run.as_str() })
}

/// The answer to a response that counts; `decided` are the members that say what was decided.
pub fn answered(request: &str, decided: &str) -> Vec<u8> {
    [b"{\"request_id\":", json(&request).as_slice(), b",", decided.as_bytes(), b"}"].concat()
}

/// The answer to a response that came too late, with what was decided.
pub fn already_answered(decided: &str) -> Vec<u8> {
    let message = "this question was answered before, or is closed; the first answer counts";
    format!("{{\"error\":{{\"code\":\"already_answered\",\"message\":\"{message}\",{decided}}}}}")
        .into_bytes()
}

/// The answer to a body of events: `{"seq","next"}`.
pub fn appended(seq: Seq, produced: u64) -> Vec<u8> {
    #[derive(Serialize)]
    struct Appended {
        seq: u64,
        next: u64,
    }
    json(&Appended { seq: seq.0, next: produced + 1 })
}

/// The answer to a finish: `{"run_id","seq","persisted"}`.
pub fn finished(run: RunId, seq: Seq, persisted: bool) -> Vec<u8> {
    #[derive(Serialize)]
    struct Finished<'a> {
        run_id: &'a str,
        seq: u64,
        persisted: bool,
    }
    json(&Finished { run_id: run.as_str(), seq: seq.0, persisted })
}

/// The answer to `GET /runs/{run_id}`.
pub fn run_state(run: RunId, chat: &ChatId, state: State, seq: Seq, produced: u64) -> Vec<u8> {
    #[derive(Serialize)]
    struct RunState<'a> {
        run_id: &'a str,
        chat_id: &'a str,
        state: &'static str,
        seq: u64,
        next: u64,
    }
    json(&RunState {
        run_id: run.as_str(),
        chat_id: chat.as_str(),
        state: state.name(),
        seq: seq.0,
        next: produced + 1,
    })
}

/// The answer to `GET /healthz`.
pub fn health() -> Vec<u8> {
    b"{\"status\":\"ok\"}".to_vec()
}

/// The answer to `GET /readyz` of a server that takes new work.
pub fn ready() -> Vec<u8> {
    b"{\"status\":\"ready\"}".to_vec()
}

/// The first message of the event bus: the runs that are not over.
pub fn bus_snapshot<'a, S: 'a>(runs: impl Iterator<Item = &'a Run<S>>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Snapshot<'a> {
        event: &'static str,
        streams: Vec<Stream<'a>>,
    }
    #[derive(Serialize)]
    struct Stream<'a> {
        chat_id: &'a str,
        run_id: &'a str,
        trigger: &'static str,
        state: &'static str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        queued: bool,
    }
    let streams = runs
        .map(|run| Stream {
            chat_id: run.chat.as_str(),
            run_id: run.id.as_str(),
            trigger: run.trigger.name(),
            state: run.state.name(),
            queued: run.queued,
        })
        .collect();
    sse(&json(&Snapshot { event: "snapshot", streams }))
}

/// The event bus tells that a run was registered, or that its turn no longer waits for a thread.
pub fn bus_started(chat: &ChatId, run: RunId, trigger: Trigger, queued: bool) -> Vec<u8> {
    #[derive(Serialize)]
    struct Started<'a> {
        event: &'static str,
        chat_id: &'a str,
        run_id: &'a str,
        trigger: &'static str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        queued: bool,
    }
    sse(&json(&Started {
        event: "stream_started",
        chat_id: chat.as_str(),
        run_id: run.as_str(),
        trigger: trigger.name(),
        queued,
    }))
}

/// The event bus tells that a run's end can be had.
pub fn bus_ended(chat: &ChatId, run: RunId, persisted: bool, superseded: bool) -> Vec<u8> {
    #[derive(Serialize)]
    struct Ended<'a> {
        event: &'static str,
        chat_id: &'a str,
        run_id: &'a str,
        persisted: bool,
        superseded: bool,
    }
    sse(&json(&Ended {
        event: "stream_ended",
        chat_id: chat.as_str(),
        run_id: run.as_str(),
        persisted,
        superseded,
    }))
}

/// The event bus passes an event on, as it is.
pub fn bus_chunk(chat: &ChatId, run: RunId, seq: Seq, event: &[u8]) -> Vec<u8> {
    let chat = json(&chat.as_str());
    let mut out = b"data: {\"event\":\"chunk\",\"chat_id\":".to_vec();
    out.extend_from_slice(&chat);
    out.extend_from_slice(format!(",\"run_id\":\"{run}\",\"seq\":{seq},\"data\":").as_bytes());
    out.extend_from_slice(event);
    out.extend_from_slice(b"}\n\n");
    out
}

/// The control stream tells the producer to stop, and why.
pub fn control_cancel(reason: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Cancel<'a> {
        event: &'static str,
        reason: &'a str,
    }
    sse(&json(&Cancel { event: "cancel", reason }))
}

fn sse(line: &[u8]) -> Vec<u8> {
    [b"data: ", line, b"\n\n"].concat()
}

pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    // Serialising fails for maps without string keys and for failing writers; there is neither here.
    serde_json::to_vec(value).unwrap_or_default()
}
