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
