//! An observer over HTTP: a [`Follower`] with a connection.
//!
//! It asks `POST /chat/live` and nothing else. Whatever goes wrong on the way is a loss, for the follower to judge.

use std::io::{self, ErrorKind};
use std::time::Duration;

use serde::Serialize;

use super::follow::{Cursor, Follower, Loss, Next, Notice, Request};
use super::frame::Frame;
use super::http::{self, Answer};
use super::pusher::refusal;
use super::sse::{Item, Parser};
use super::url::{ServerUrl, about};
use super::{Backoff, MESSAGE_BYTES_MAX, SILENCE_MS, jitter, millis};
use crate::limits::WAIT_MS_MAX;
use crate::proto::id::ChatId;

/// How to observe.
#[derive(Clone, Copy, Debug)]
pub struct ObserverOptions {
    /// Where to go on, if something was received before.
    pub from: Option<Cursor>,
    /// How long the server may wait for a run, in milliseconds; it waits for 25,000 at most.
    pub wait_ms: u64,
    /// When to come back after a loss.
    pub backoff: Backoff,
}

impl Default for ObserverOptions {
    /// From the start, as patient as the server allows.
    fn default() -> ObserverOptions {
        ObserverOptions { from: None, wait_ms: WAIT_MS_MAX, backoff: Backoff::default() }
    }
}

/// Follows a chat's run, and the runs that replace it, to the end. An iterator of [`Notice`]s, each as soon as it is
/// known: it blocks in between.
#[derive(Debug)]
pub struct Observer {
    url: ServerUrl,
    chat: ChatId,
    follower: Follower,
    stream: Option<Stream>,
}

/// An answer that is a stream of frames.
#[derive(Debug)]
struct Stream {
    answer: Answer,
    parser: Parser,
    /// Bytes of the body that the parser has not yet seen all of.
    piece: Vec<u8>,
    seen: usize,
}

/// The body of `POST /chat/live`.
#[derive(Serialize)]
struct LiveBody<'a> {
    chat_id: &'a str,
    protocol: u8,
    wait_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_seq: Option<u64>,
}

impl Observer {
    /// An observer of a chat. Nothing is sent before the first notice is asked for.
    pub fn new(url: ServerUrl, chat: ChatId, options: ObserverOptions) -> Observer {
        let follower = Follower::new(options.from, options.wait_ms, options.backoff);
        Observer { url, chat, follower, stream: None }
    }

    /// Asks for frames. A notice comes of all answers but a stream.
    fn ask(&mut self, request: &Request) -> Option<Notice> {
        let cursor = request.cursor.as_ref();
        let body = LiveBody {
            chat_id: self.chat.as_str(),
            protocol: 1,
            wait_ms: request.wait_ms,
            run_id: cursor.map(|cursor| cursor.run.as_str()),
            after_seq: cursor.map(|cursor| cursor.after.0),
        };
        // Serialising fails for maps without string keys and for failing writers; there is neither here.
        let json = serde_json::to_string(&body).unwrap_or_default();
        let path = self.url.path(&["chat", "live"]) + &about(&self.chat);
        let mut answer = match http::send(&self.url, "POST", &path, Some(&json), millis(SILENCE_MS)) {
            Ok(answer) => answer,
            Err(error) => return Some(self.follower.lost(loss(&error), jitter())),
        };
        match answer.status {
            200 if answer.is_event_stream() => {
                self.stream = Some(Stream::new(answer));
                self.follower.opened();
                None
            }
            200 => Some(self.follower.lost(Loss::Malformed, jitter())),
            204 => Some(self.follower.nothing()),
            status @ (408 | 429 | 500..) => {
                Some(self.follower.lost_until(Loss::Status(status), answer.retry_after, jitter()))
            }
            status => Some(self.follower.refused(status, refusal(&mut answer).message)),
        }
    }

    /// Reads a frame. No notice comes of one that was applied before.
    fn read(&mut self) -> Option<Notice> {
        let notice = match self.stream.as_mut().map_or(Err(Loss::EndOfFile), Stream::frame) {
            Ok(frame) => self.follower.frame(frame, jitter()),
            Err(loss) => Some(self.follower.lost(loss, jitter())),
        };
        if self.follower.next() != Next::Read {
            self.stream = None;
        }
        notice
    }
}

impl Iterator for Observer {
    type Item = Notice;

    fn next(&mut self) -> Option<Notice> {
        loop {
            let notice = match self.follower.next() {
                Next::Stop => return None,
                Next::Read => self.read(),
                Next::Ask(delay, request) => {
                    if delay > Duration::ZERO {
                        std::thread::sleep(delay);
                    }
                    self.ask(&request)
                }
            };
            if notice.is_some() {
                return notice;
            }
        }
    }
}

impl Stream {
    fn new(answer: Answer) -> Stream {
        Stream { answer, parser: Parser::new(MESSAGE_BYTES_MAX), piece: Vec::new(), seen: 0 }
    }

    /// Waits for the next frame. Comments keep the stream from being silent, as all bytes do.
    fn frame(&mut self) -> Result<Frame, Loss> {
        loop {
            let mut input = self.piece.get(self.seen..).unwrap_or_default();
            let item = self.parser.next(&mut input);
            self.seen = self.piece.len() - input.len();
            match item.map_err(|_| Loss::Malformed)? {
                Some(Item::Message(data)) => return Frame::read(data).map_err(|_| Loss::Malformed),
                Some(Item::LifeSign) => {}
                None => {
                    let piece = self.answer.piece().map_err(|error| loss(&error))?;
                    if piece.is_empty() {
                        return Err(Loss::EndOfFile);
                    }
                    self.piece.clear();
                    self.piece.extend_from_slice(piece);
                    self.seen = 0;
                }
            }
        }
    }
}

fn loss(error: &io::Error) -> Loss {
    match error.kind() {
        ErrorKind::UnexpectedEof => Loss::EndOfFile,
        ErrorKind::TimedOut => Loss::Silent,
        ErrorKind::InvalidData => Loss::Malformed,
        kind => Loss::Io(kind),
    }
}
