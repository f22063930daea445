//! Turns: conversations with agents. A turn thread speaks to one agent (AG-UI over HTTP, or ACP over stdio) and
//! hands on what it says as AG-UI events; it decides nothing about runs and knows no observer.

pub mod acp;
pub mod native;
pub mod sink;

pub use crate::proto::turn::{Agent, AgentKind, Decision, PromptPart, Question, QuestionKind, TurnOrder};

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
