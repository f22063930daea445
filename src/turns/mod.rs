//! Turns: conversations with agents. A turn thread speaks to one agent (AG-UI over HTTP, or ACP over stdio) and
//! hands on what it says as AG-UI events; it decides nothing about runs and knows no observer.

pub mod acp;
pub mod sink;

use std::path::PathBuf;
use std::sync::Arc;

use crate::proto::id::{ChatId, LocalId, RunId};

/// An agent as an operator names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its name in requests and in the history.
    pub name: String,
    /// How it is spoken to.
    pub kind: AgentKind,
    /// An agent that says nothing for this long, in milliseconds, is given up. Waiting for a person's answer does not
    /// count.
    pub silence_ms: u64,
}

/// How an agent is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentKind {
    /// AG-UI over HTTP or HTTPS: every turn is one POST.
    Native {
        /// Where turns are posted to.
        url: String,
        /// Fields added to each request, such as `Authorization`.
        headers: Vec<(String, String)>,
    },
    /// ACP over stdio: one process per chat.
    Acp {
        /// The program and its arguments.
        command: Vec<String>,
        /// Where it works; by default where the server was started.
        folder: Option<PathBuf>,
    },
}

/// What a turn thread is asked to do.
#[derive(Clone, Debug)]
pub struct TurnOrder {
    /// Names the turn to the reactor.
    pub turn: LocalId,
    /// The run that the turn writes.
    pub run: RunId,
    /// The conversation.
    pub chat: ChatId,
    /// AG-UI's `runId` of this turn: never the transport's.
    pub agent_run: String,
    /// Who is asked.
    pub agent: Arc<Agent>,
    /// The `RunAgentInput` for an AG-UI agent, as JSON.
    pub input: Vec<u8>,
    /// What an ACP agent is asked.
    pub prompt: Vec<PromptPart>,
    /// Whether the conversation had turns before this one: an agent that does not know them has lost its session.
    pub has_history: bool,
}

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptPart {
    /// Plain text.
    Text(String),
    /// A file's content.
    File {
        /// Its name.
        name: String,
        /// Its media type.
        media_type: String,
        /// Its bytes in base64.
        base64: String,
    },
}

/// What a turn thread tells the reactor. After `Done` or `Failed` nothing follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnMessage {
    /// An AG-UI event.
    Event(Vec<u8>),
    /// The agent asks a person, and waits for [`TurnControl::Answer`].
    Ask(Question),
    /// The agent is done.
    Done,
    /// The turn went wrong: the run is closed with this RUN_ERROR, unless the agent already sent one.
    Failed {
        /// `agent_error` or `timeout`.
        code: &'static str,
        /// What a person should read.
        message: String,
    },
}

/// A question that is parked until somebody answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Names it within its run.
    pub request: String,
    /// The event that shows it.
    pub event: Vec<u8>,
    /// What an answer may be.
    pub kind: QuestionKind,
}

/// What an answer may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// One of these options, by id.
    Permission(Vec<String>),
    /// The content of a form.
    Form,
}

/// What a turn thread is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnControl {
    /// Stop: nothing that is said from now on counts.
    Cancel,
    /// The answer to a question.
    Answer {
        /// Which question.
        request: String,
        /// What was decided.
        answer: Decision,
    },
}

/// What was decided on a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A permission's option.
    Selected(String),
    /// A form's content, a JSON object.
    Accepted(String),
    /// The form was declined.
    Declined,
    /// Nobody decided, or the question was closed without an answer.
    Cancelled,
}
