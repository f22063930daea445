//! A producer over HTTP: writes one run, and doubles nothing when its connection is lost.
//!
//! Events go out the moment they are appended, in one request that stays open. They are kept until the server has
//! acknowledged them; after a loss it is asked how far it came, and the rest is sent again under the same numbers.
//! The request that starts the run is never repeated: whoever lost its answer can't know whether it had an effect.

use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::backlog::{Backlog, Miscounted};
use super::http::{self, Answer, Upload};
use super::url::{ServerUrl, about};
use super::{ANSWER_MS, BACKLOG_BYTES_MAX, Backoff, jitter, millis};
use crate::proto::id::{ChatId, RunId};
use crate::wire::event;
use crate::wire::request::Start;

/// How to push.
#[derive(Clone, Copy, Debug)]
pub struct PusherOptions {
    /// When to come back after a loss. The server gives a producer 30 seconds.
    pub backoff: Backoff,
    /// Bytes of events that are kept without acknowledgement; at the bound an append waits for one.
    pub backlog_bytes_max: usize,
}

impl Default for PusherOptions {
    /// Five attempts, 1 MiB.
    fn default() -> PusherOptions {
        PusherOptions { backoff: Backoff::default(), backlog_bytes_max: BACKLOG_BYTES_MAX }
    }
}

/// One run being written. A run that is dropped without an end is closed by the server after its grace.
#[derive(Debug)]
pub struct Pusher {
    url: ServerUrl,
    chat: ChatId,
    run: RunId,
    options: PusherOptions,
    backlog: Backlog,
    /// The request that carries the events. Whatever is in the backlog was written to it.
    upload: Option<Upload>,
    /// Attempts since the last progress.
    attempts: u32,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Number of its events, with those that the server appended.
    pub seq: u64,
    /// Whether it is in the history.
    pub persisted: bool,
}

/// What the server answered instead of doing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Status code of the answer.
    pub status: u16,
    /// A short name of the reason (`run_over`, `taken_over`, `bad_event`, …), or nothing if it gave none.
    pub code: String,
    /// What it says about it.
    pub message: String,
}

/// Why a producer can't go on.
#[derive(Debug)]
pub enum PushError {
    /// These bytes are no event. The run goes on without them.
    BadEvent(String),
    /// The server does not want it, and would not the next time.
    Refused(Refusal),
    /// The server can't be reached, or does not answer. After the start of a run: all attempts were made.
    Lost(io::Error),
}

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PushError::BadEvent(message) => write!(f, "no event: {message}"),
            PushError::Refused(refusal) => refusal.fmt(f),
            PushError::Lost(error) => write!(f, "the server can't be reached: {error}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code.as_str() {
            "" => write!(f, "status {}: {}", self.status, self.message),
            code => write!(f, "{code}: {}", self.message),
        }
    }
}

impl std::error::Error for PushError {}

/// Why a request had no success.
enum Trouble {
    /// It may have the next time.
    Passing(io::Error),
    /// It may have when this has passed.
    Later(io::Error, Duration),
    Final(PushError),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Passing(error)
    }
}

impl From<Miscounted> for Trouble {
    fn from(Miscounted: Miscounted) -> Trouble {
        let message = "the server counts other events than were sent: is another producer writing this run?";
        let code = "miscounted".to_owned();
        Trouble::Final(PushError::Refused(Refusal { status: 200, code, message: message.to_owned() }))
    }
}

#[derive(Deserialize)]
struct Started {
    run_id: String,
}

#[derive(Deserialize)]
struct Counted {
    next: u64,
}

#[derive(Deserialize)]
struct Finished {
    seq: u64,
    persisted: bool,
}

impl Pusher {
    /// Starts a run of a chat. The server answers once the chat's last run is saved.
    pub fn start(
        url: &ServerUrl,
        chat: &ChatId,
        start: Start,
        options: PusherOptions,
    ) -> Result<Pusher, PushError> {
        #[derive(Serialize)]
        struct StartBody {
            trigger: &'static str,
            supersede: bool,
        }
        let body = json(&StartBody { trigger: start.trigger.name(), supersede: start.supersede });
        let path = url.path(&["chats", chat.as_str(), "runs"]);
        let started = http::send(url, "POST", &path, Some(&body), millis(ANSWER_MS))
            .map_err(Trouble::Passing)
            .and_then(|answer| read::<Started>(answer, 201))
            .and_then(|started| Ok(RunId::parse(&started.run_id).ok_or_else(malformed)?));
        let run = match started {
            Ok(run) => run,
            Err(Trouble::Passing(error) | Trouble::Later(error, _)) => return Err(PushError::Lost(error)),
            Err(Trouble::Final(error)) => return Err(error),
        };
        let backlog = Backlog::new(options.backlog_bytes_max);
        Ok(Pusher { url: url.clone(), chat: chat.clone(), run, options, backlog, upload: None, attempts: 0 })
    }

    /// The run's id.
    pub fn run_id(&self) -> RunId {
        self.run
    }

    /// Appends one AG-UI event, a JSON object with a string `type`. It is checked here and sent at once. Waits while
    /// the connection is lost, and for an acknowledgement when too much is without one.
    pub fn append(&mut self, event: &[u8]) -> Result<(), PushError> {
        let mut scratch = Vec::new();
        let event = event::read(event, &mut scratch).map_err(|fault| PushError::BadEvent(fault.message()))?;
        if self.backlog.is_full_for(event.line.len()) {
            self.settle()?;
        }
        self.backlog.push(event.line);
        let sent = self.send(Some(event.line));
        self.or_recover(sent)
    }

    /// For a source that has nothing to say: keeps the connection from being cut, and makes sure that what was sent
    /// has arrived. To be called every 15 seconds.
    pub fn keep_alive(&mut self) -> Result<(), PushError> {
        if !self.backlog.is_empty() {
            self.settle()?;
        }
        let sent = self.send(None);
        self.or_recover(sent)
    }

    /// Ends the run and waits until it is saved, or known not to be.
    pub fn finish(self) -> Result<Ended, PushError> {
        self.end("{}")
    }

    /// Ends the run with RUN_ERROR `agent_error` and this message; what there is is saved.
    pub fn fail(self, message: &str) -> Result<Ended, PushError> {
        #[derive(Serialize)]
        struct FailBody<'a> {
            error: &'a str,
        }
        let body = json(&FailBody { error: message });
        self.end(&body)
    }

    fn end(mut self, body: &str) -> Result<Ended, PushError> {
        self.settle()?;
        let path = self.url.path(&["runs", self.run.as_str(), "finish"]) + &about(&self.chat);
        loop {
            // The server gives the same answer again to who did not hear it.
            let finished = http::send(&self.url, "POST", &path, Some(body), millis(ANSWER_MS))
                .map_err(Trouble::Passing)
                .and_then(|answer| read::<Finished>(answer, 200));
            match finished {
                Ok(Finished { seq, persisted }) => return Ok(Ended { seq, persisted }),
                Err(trouble) => self.pause(trouble)?,
            }
        }
    }

    /// Ends the request that carries the events and waits until all of them are acknowledged.
    fn settle(&mut self) -> Result<(), PushError> {
        loop {
            let settled = match self.upload.take() {
                Some(upload) => upload.finish().map_err(Trouble::Passing).and_then(|answer| {
                    let counted = read::<Counted>(answer, 200)?;
                    self.acknowledge(counted.next)
                }),
                None => Ok(()),
            };
            match settled {
                Ok(()) if self.backlog.is_empty() => return Ok(()),
                Ok(()) => self.recover(Trouble::Passing(malformed()))?,
                Err(trouble) => self.recover(trouble)?,
            }
        }
    }

    /// Sends an event, or a blank line. A request that isn't open yet is opened with the whole backlog.
    fn send(&mut self, event: Option<&[u8]>) -> Result<(), Trouble> {
        match self.upload.take() {
            None => self.upload = Some(self.open()?),
            Some(upload) if upload.interrupted() => return Err(interrupted(upload)),
            Some(mut upload) => {
                let line = [event.unwrap_or_default(), b"\n"].concat();
                if let Err(error) = upload.chunk(&line) {
                    // The connection may have been closed right behind an answer that says why.
                    return Err(if upload.interrupted() { interrupted(upload) } else { error.into() });
                }
                self.upload = Some(upload);
            }
        }
        Ok(())
    }

    fn open(&self) -> Result<Upload, Trouble> {
        let events = self.url.path(&["runs", self.run.as_str(), "events"]);
        let path = format!("{events}{}&from_seq={}", about(&self.chat), self.backlog.first());
        let mut upload = Upload::begin(&self.url, &path, "application/x-ndjson", millis(ANSWER_MS))?;
        upload.chunk(b"\n")?;
        for event in self.backlog.events() {
            upload.chunk(&[event, b"\n"].concat())?;
        }
        Ok(upload)
    }

    fn or_recover(&mut self, sent: Result<(), Trouble>) -> Result<(), PushError> {
        match sent {
            Ok(()) => Ok(()),
            Err(trouble) => self.recover(trouble),
        }
    }

    /// After a loss: asks how far the server came and sends the rest, until that works or no attempt is left.
    fn recover(&mut self, mut trouble: Trouble) -> Result<(), PushError> {
        loop {
            self.upload = None;
            self.pause(trouble)?;
            match self.resume() {
                Ok(()) => return Ok(()),
                Err(again) => trouble = again,
            }
        }
    }

    fn resume(&mut self) -> Result<(), Trouble> {
        let path = self.url.path(&["runs", self.run.as_str()]) + &about(&self.chat);
        let answer = http::send(&self.url, "GET", &path, None, millis(ANSWER_MS))?;
        let counted = read::<Counted>(answer, 200)?;
        self.acknowledge(counted.next)?;
        self.upload = Some(self.open()?);
        Ok(())
    }

    fn acknowledge(&mut self, next: u64) -> Result<(), Trouble> {
        let news = self.backlog.acknowledge(next)?;
        // A quiet source whose connection is cut now and then has lost nothing.
        if news || self.backlog.is_empty() {
            self.attempts = 0;
        }
        Ok(())
    }

    /// Waits before the next attempt, if there may be one.
    fn pause(&mut self, trouble: Trouble) -> Result<(), PushError> {
        let (error, earliest) = match trouble {
            Trouble::Final(error) => return Err(error),
            Trouble::Passing(error) => (error, Duration::ZERO),
            Trouble::Later(error, earliest) => (error, earliest),
        };
        self.attempts += 1;
        let delay = self.options.backoff.delay(self.attempts, jitter()).ok_or(PushError::Lost(error))?;
        std::thread::sleep(delay + earliest);
        Ok(())
    }
}

/// The server answered before the end of the body, or closed the connection.
fn interrupted(upload: Upload) -> Trouble {
    match upload.answer() {
        Ok(answer) => match read::<Counted>(answer, 200) {
            // An early acknowledgement does not say that the rest will be read.
            Ok(_) => Trouble::Passing(ErrorKind::ConnectionAborted.into()),
            Err(trouble) => trouble,
        },
        Err(error) => Trouble::Passing(error),
    }
}

/// Reads an answer that must have this status.
fn read<T: for<'de> Deserialize<'de>>(mut answer: Answer, expected: u16) -> Result<T, Trouble> {
    match answer.status {
        status if status == expected => {
            let body = answer.whole()?;
            serde_json::from_slice(&body).map_err(|_| Trouble::Passing(malformed()))
        }
        408 | 429 | 500.. => {
            let error = io::Error::other(refusal(&mut answer).to_string());
            Err(Trouble::Later(error, answer.retry_after))
        }
        _ => Err(Trouble::Final(PushError::Refused(refusal(&mut answer)))),
    }
}

/// What a server says that does not do what it was asked to. A body that breaks off says nothing.
pub(super) fn refusal(answer: &mut Answer) -> Refusal {
    #[derive(Deserialize)]
    struct Body {
        error: Fault,
    }
    #[derive(Deserialize)]
    struct Fault {
        code: String,
        message: String,
    }
    let status = answer.status;
    match serde_json::from_slice(&answer.whole().unwrap_or_default()) {
        Ok(Body { error: Fault { code, message } }) => Refusal { status, code, message },
        Err(_) => {
            Refusal { status, code: String::new(), message: "the server refused the request".to_owned() }
        }
    }
}

fn malformed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "its answer is not rejoin's protocol")
}

fn json(value: &impl Serialize) -> String {
    // Serialising fails for maps without string keys and for failing writers; there is neither here.
    serde_json::to_string(value).unwrap_or_default()
}
