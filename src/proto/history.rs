//! What the engine asks of the store and what the store answers: plain values, so that the real store (a SQLite
//! thread) and the simulator's model are interchangeable.

use crate::proto::id::{ChatId, RunId, Seq, Ticket};
use crate::rope::Rope;

/// What started a turn; it labels the run and its history row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    /// A person wrote something.
    #[default]
    User,
    /// A timer asked the agent to look around.
    Heartbeat,
    /// An action on a canvas.
    Canvas,
    /// A planned turn.
    Schedule,
}

impl Trigger {
    /// The trigger's name on the wire and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Trigger::User => "user",
            Trigger::Heartbeat => "heartbeat",
            Trigger::Canvas => "canvas",
            Trigger::Schedule => "schedule",
        }
    }

    /// The trigger of that name.
    pub fn parse(name: &str) -> Option<Trigger> {
        [Trigger::User, Trigger::Heartbeat, Trigger::Canvas, Trigger::Schedule]
            .into_iter()
            .find(|trigger| trigger.name() == name)
    }
}

/// How the commit of a turn came out. Exactly one is recorded per run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The turn is in the history.
    Committed,
    /// The chat moved on meanwhile (stale revision), was deleted, or the commit was withdrawn: not in the history.
    Skipped,
    /// The store could not write: not in the history.
    Failed,
}

impl Outcome {
    /// The outcome's name on the wire and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Committed => "committed",
            Outcome::Skipped => "skipped",
            Outcome::Failed => "failed",
        }
    }
}

/// One turn as it goes into the history.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The run whose output this is: the key that makes a commit happen at most once.
    pub run: RunId,
    /// The conversation it belongs to.
    pub chat: ChatId,
    /// What started it.
    pub trigger: Trigger,
    /// Number of events of the run.
    pub seq: Seq,
    /// Wall clock of the run's start, in milliseconds since 1970.
    pub started_wall_ms: u64,
    /// Wall clock of the producer's end, in milliseconds since 1970.
    pub ended_wall_ms: u64,
    /// The compacted events: JSON objects joined by commas, without the enclosing brackets.
    pub events: Rope,
    /// The code of the RUN_ERROR that the engine closed the run with (`stopped`, `producer_lost`, …), or none if
    /// the producer ended it itself.
    pub closed: Option<&'static str>,
    /// A newer run took its place: this is the partial answer.
    pub superseded: bool,
}

/// The beginning of a turn with an agent: what has to be in the history before the agent is asked.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The run of the turn.
    pub run: RunId,
    /// The conversation.
    pub chat: ChatId,
    /// What started it.
    pub trigger: Trigger,
    /// Wall clock, in milliseconds since 1970.
    pub wall_ms: u64,
    /// The agent that was asked for by name, if one was.
    pub runtime: Option<String>,
    /// The agent of a conversation that has none yet.
    pub runtime_default: String,
    /// The partial answer of the run whose place this one takes: saved in the same transaction.
    pub replaced: Option<Turn>,
    /// Forget this turn and all behind it first.
    pub drop_from_turn: Option<u64>,
    /// AG-UI messages that the turn begins with, in order; those that the conversation has already are left out.
    pub messages: Vec<OpeningMessage>,
}

/// A message that a turn begins with.
#[derive(Clone, Debug)]
pub struct OpeningMessage {
    /// Its id, decoded.
    pub id: Vec<u8>,
    /// The AG-UI message, as JSON.
    pub json: Vec<u8>,
}

/// A turn that is in the history with its first messages.
#[derive(Clone, Debug)]
pub struct Opened {
    /// All messages of the conversation, joined by commas.
    pub messages: Vec<u8>,
    /// The agent that the conversation is held with.
    pub runtime: String,
    /// Whether it had turns before this one.
    pub has_history: bool,
}

/// Where a conversation can be taken up again.
#[derive(Clone, Debug)]
pub enum RetryPoint {
    /// At this turn, which began with this user message (JSON).
    Turn(u64, Vec<u8>),
    /// Nowhere: there is no turn that began with a user message.
    Nothing,
    /// The message of that index is not a user message that begins a turn, or there is none.
    NoUserMessage,
    /// The store could not read.
    Failed,
}

/// A job for the store. Jobs are carried out in the order they were given.
#[derive(Debug)]
pub enum Job {
    /// Remember the chat's revision as the one at this run's start.
    Begin {
        /// The run that starts.
        run: RunId,
        /// Its chat.
        chat: ChatId,
    },
    /// Begin a turn with an agent: `Begin`, together with what has to be in the history first.
    Open(Box<Opening>),
    /// Find where a conversation can be taken up again: at its last turn, or at a message.
    FindRetry {
        /// Names the question.
        ticket: Ticket,
        /// The conversation.
        chat: ChatId,
        /// The message's place in the conversation, counted from 0.
        message_index: Option<u64>,
    },
    /// Store a turn if the chat's revision is still the one at the run's start; record the outcome in any case.
    Commit(Turn),
    /// Forget a conversation with all that is stored of it. Runs that began before it are stale from then on.
    Delete {
        /// Names the question.
        ticket: Ticket,
        /// The conversation.
        chat: ChatId,
        /// The chat's run that was cut off by the deletion: recorded as skipped.
        cut: Option<RunId>,
        /// Wall clock, in milliseconds since 1970.
        wall_ms: u64,
    },
    /// List conversations, newest change first.
    Chats {
        /// Names the question.
        ticket: Ticket,
        /// Rows wanted, at most.
        rows_max: u32,
        /// Continue behind this page mark, as given by the page before.
        after: Option<PageMark>,
    },
    /// Read one conversation, oldest turn first.
    Chat {
        /// Names the question.
        ticket: Ticket,
        /// The conversation.
        chat: ChatId,
        /// Turns wanted, at most.
        turns_max: u32,
        /// Skip turns up to this turn number (they are counted from 1).
        after_turn: u64,
    },
}

/// Where a page of chats ended: change time (milliseconds since 1970) and chat id of its last row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMark {
    /// Time of the last row's last change.
    pub changed_wall_ms: u64,
    /// The last row's chat.
    pub chat: ChatId,
}

/// The store's answer to a job.
#[derive(Debug)]
pub enum Answer {
    /// To `Commit`.
    Finalized {
        /// The run.
        run: RunId,
        /// How it came out.
        outcome: Outcome,
    },
    /// To `Open`.
    Opened {
        /// The run.
        run: RunId,
        /// The conversation; none if the store could not write.
        opened: Option<Opened>,
    },
    /// To `FindRetry`.
    RetryPoint {
        /// Names the question.
        ticket: Ticket,
        /// Where.
        point: RetryPoint,
    },
    /// To `Delete`.
    Deleted {
        /// Names the question.
        ticket: Ticket,
        /// Whether the conversation is gone; if not, the store could not write.
        done: bool,
    },
    /// To `Chats` and `Chat`.
    Page {
        /// Names the question.
        ticket: Ticket,
        /// The answer, ready to send.
        page: Page,
    },
}

/// A page of history, ready to send.
#[derive(Debug)]
pub enum Page {
    /// The JSON body.
    Found(Vec<u8>),
    /// There is no such conversation.
    Missing,
    /// The store could not read.
    Failed,
}
