//! Producers in the same process: for people who embed rejoin in a Rust back end.
//!
//! ```
//! use rejoin::{Server, ServerConfig};
//! use rejoin::producer::RunOptions;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::start(ServerConfig::default())?;
//! let mut run = server.handle().start("my-chat", RunOptions::default())?;
//! run.append(br#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#)?;
//! run.append(br#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#)?;
//! let end = run.finish()?;
//! assert!(end.persisted && end.seq == 2);
//! server.stop()?;
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, TryRecvError, unbounded};

use crate::engine::{LocalInput, LocalReply};
use crate::limits::EVENT_BYTES_MAX;
use crate::proto::history::Trigger;
use crate::proto::id::{ChatId, LocalId, RunId};
use crate::reactor::{Allowance, LocalChannel, Mailbox, Message, budget};
use crate::wire::event;
use crate::wire::request::Start;

/// Starts runs from any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    mailbox: Mailbox,
    ids: Arc<AtomicU64>,
}

/// How a run is started.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// What started the turn.
    pub trigger: Trigger,
    /// Whether the run may take the place of one that goes on.
    pub supersede: bool,
}

/// One run being written. Dropping it without [`Producer::finish`] closes the run with RUN_ERROR `producer_lost`.
#[derive(Debug)]
pub struct Producer {
    mailbox: Mailbox,
    id: LocalId,
    run: RunId,
    replies: Receiver<LocalReply>,
    allowance: Allowance,
    /// Its run takes no more events; this was told once.
    over: Option<ProducerError>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Number of its events.
    pub seq: u64,
    /// Whether it is in the history.
    pub persisted: bool,
}

/// Why a producer can't go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProducerError {
    /// The chat id is empty, longer than 256 bytes or has control characters.
    BadChatId,
    /// The run can't be started: a short name of the reason, and what to change.
    Refused(&'static str, String),
    /// These bytes are no event; the run goes on without them.
    BadEvent(String),
    /// The run takes no more events; its state says why (`superseded`, `deleted`, `finalizing`, …).
    Over(&'static str),
    /// The server was stopped.
    ServerGone,
}

impl fmt::Display for ProducerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProducerError::BadChatId => {
                f.write_str("a chat id has 1 to 256 bytes of UTF-8 without control characters")
            }
            ProducerError::Refused(code, message) => write!(f, "{code}: {message}"),
            ProducerError::BadEvent(message) => write!(f, "no event: {message}"),
            ProducerError::Over(state) => write!(f, "the run is {state}; it takes no more events"),
            ProducerError::ServerGone => f.write_str("the server was stopped"),
        }
    }
}

impl std::error::Error for ProducerError {}

impl Handle {
    pub(crate) fn new(mailbox: Mailbox, ids: Arc<AtomicU64>) -> Handle {
        Handle { mailbox, ids }
    }

    /// Starts a run of a chat. Waits while the chat's last run is being saved.
    pub fn start(&self, chat: &str, options: RunOptions) -> Result<Producer, ProducerError> {
        let chat = ChatId::parse(chat).ok_or(ProducerError::BadChatId)?;
        let id = LocalId(self.ids.fetch_add(1, Ordering::Relaxed));
        let (budget, allowance) = budget();
        let (sender, replies) = unbounded();
        let channel = LocalChannel { replies: sender, budget };
        let start = Start { trigger: options.trigger, supersede: options.supersede };
        self.mailbox.send(Message::Open(id, channel));
        self.mailbox.send(Message::Local(id, LocalInput::Start(chat, start)));
        let run = match replies.recv() {
            Ok(LocalReply::Started(run)) => Ok(run),
            Ok(LocalReply::Refused { code, message }) => Err(ProducerError::Refused(code, message)),
            Ok(LocalReply::Cancelled(state)) => Err(ProducerError::Over(state.name())),
            Ok(LocalReply::Finished { .. } | LocalReply::Answered { .. }) | Err(_) => {
                Err(ProducerError::ServerGone)
            }
        };
        let run = run.inspect_err(|_| {
            self.mailbox.send(Message::Local(id, LocalInput::Gone));
        })?;
        Ok(Producer { mailbox: self.mailbox.clone(), id, run, replies, allowance, over: None })
    }
}

impl Producer {
    /// The run's id.
    pub fn run_id(&self) -> RunId {
        self.run
    }

    /// Appends one AG-UI event, a JSON object with a string `type`, of at most 1 MiB. It is checked here; observers
    /// get it as soon as the reactor has it. Waits while more than 256 KiB are under way.
    pub fn append(&mut self, event: &[u8]) -> Result<(), ProducerError> {
        if event.len() > EVENT_BYTES_MAX {
            return Err(ProducerError::BadEvent(format!("an event has at most {EVENT_BYTES_MAX} bytes")));
        }
        event::read(event, &mut Vec::new()).map_err(|fault| ProducerError::BadEvent(fault.message()))?;
        self.still_open()?;
        self.allowance.add(event.len());
        self.send(LocalInput::Event(event.to_vec()))?;
        if self.allowance.wait() { Ok(()) } else { Err(ProducerError::ServerGone) }
    }

    /// Ends the run and waits until it is saved, or known not to be.
    pub fn finish(self) -> Result<Ended, ProducerError> {
        self.end(None)
    }

    /// Ends the run with RUN_ERROR `agent_error` and this message; what there is is saved.
    pub fn fail(self, message: &str) -> Result<Ended, ProducerError> {
        self.end(Some(message.to_owned()))
    }

    fn end(mut self, error: Option<String>) -> Result<Ended, ProducerError> {
        self.still_open()?;
        self.send(LocalInput::Finish(error))?;
        match self.replies.recv() {
            Ok(LocalReply::Finished { seq, persisted }) => Ok(Ended { seq: seq.0, persisted }),
            Ok(LocalReply::Cancelled(state)) => Err(ProducerError::Over(state.name())),
            Ok(LocalReply::Started(_) | LocalReply::Refused { .. } | LocalReply::Answered { .. })
            | Err(_) => Err(ProducerError::ServerGone),
        }
    }

    fn still_open(&mut self) -> Result<(), ProducerError> {
        if self.over.is_none() {
            self.over = match self.replies.try_recv() {
                Ok(LocalReply::Cancelled(state)) => Some(ProducerError::Over(state.name())),
                Err(TryRecvError::Disconnected) => Some(ProducerError::ServerGone),
                Ok(_) | Err(TryRecvError::Empty) => None,
            };
        }
        self.over.clone().map_or(Ok(()), Err)
    }

    fn send(&self, input: LocalInput) -> Result<(), ProducerError> {
        if self.mailbox.send(Message::Local(self.id, input)) {
            Ok(())
        } else {
            Err(ProducerError::ServerGone)
        }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        // Also after a finish: the reactor forgets the channel with this. If the server is gone, so is the channel.
        let _ = self.send(LocalInput::Gone);
    }
}
