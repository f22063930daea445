//! A *stream* as the suite reads it: stricter than a client, since what a client forgives is still a fault.

use std::io::ErrorKind;
use std::time::Instant;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::frame::Frame;
use crate::client::http::Answer;

use super::peer::Reply;
use super::{Stop, Tested, ensure, now};

/// An answer that is a stream of messages, or 204.
pub(super) struct Stream {
    deadline: Instant,
    pub(super) answer: Answer,
    taken: Vec<u8>,
    /// How far `taken` was searched for the end of a message.
    searched: usize,
    /// How the body ended, if it has.
    end: Option<Ending>,
    /// Comments that came.
    pub(super) comments: usize,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Properly.
    Complete,
    /// It broke off.
    Cut,
}

/// One message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) data: String,
}

/// All that an observer was told, put together.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The numbers that the events said.
    pub(super) values: Vec<u64>,
    /// How many snapshots came.
    pub(super) snapshots: usize,
    /// `persisted` and `superseded` of the end.
    pub(super) end: Option<(bool, bool)>,
    pub(super) seq: u64,
}

impl Stream {
    pub(super) fn new(answer: Answer, deadline: Instant) -> Stream {
        Stream { deadline, answer, taken: Vec::new(), searched: 0, end: None, comments: 0 }
    }

    /// The answer is not a stream but this status, without a body.
    pub(super) fn answers(self, status: u16, what: &str) -> Tested {
        let mut stream = self;
        if stream.answer.status == 200 && status != 200 {
            let first = stream.short()?;
            return Err(Stop::Failed(format!(
                "{what}: expected {status}, got a stream that begins with {first}"
            )));
        }
        Reply::read(stream.answer)?.is(status, what)
    }

    /// The next message that is more than a comment; `None` at the end.
    pub(super) fn message(&mut self) -> Result<Option<Message>, Stop> {
        ensure!(self.answer.status == 200, "expected a stream, got {}", self.answer.status);
        ensure!(self.answer.is_event_stream(), "a stream needs the Content-Type text/event-stream");
        loop {
            while let Some(text) = self.block()? {
                if let Some(message) = self.read_block(&text)? {
                    return Ok(Some(message));
                }
            }
            if self.end.is_some() || !self.more()? {
                return Ok(None);
            }
        }
    }

    /// The lines up to the next empty one.
    fn block(&mut self) -> Result<Option<String>, Stop> {
        let from = self.searched.saturating_sub(1);
        let unsearched = self.taken.get(from..).unwrap_or_default();
        let Some(at) = memchr::memmem::find(unsearched, b"\n\n") else {
            self.searched = self.taken.len();
            return Ok(None);
        };
        let block: Vec<u8> = self.taken.drain(..from + at + 2).collect();
        self.searched = 0;
        String::from_utf8(block).map(Some).map_err(|_| Stop::Failed("a message is not UTF-8".to_owned()))
    }

    fn read_block(&mut self, text: &str) -> Result<Option<Message>, Stop> {
        let (mut message, mut data) = (Message::default(), None);
        for line in text.split('\n').filter(|line| !line.is_empty()) {
            ensure!(!line.contains('\r'), "a carriage return ends a line of a stream: {line:?}");
            match line.split_once(':') {
                Some(("", _)) => self.comments += 1,
                Some(("data", value)) => {
                    ensure!(data.is_none(), "a message has more than one data line: {text:?}");
                    data = Some(value.strip_prefix(' ').unwrap_or(value).to_owned());
                }
                Some(("id", value)) => message.id = Some(value.strip_prefix(' ').unwrap_or(value).to_owned()),
                _ => {
                    return Err(Stop::Failed(format!(
                        "a message has a line that does not belong there: {line:?}"
                    )));
                }
            }
        }
        Ok(data.map(|data| Message { data, ..message }))
    }

    /// Reads on; `false` at the end of the body.
    fn more(&mut self) -> Result<bool, Stop> {
        ensure!(now() < self.deadline, "the case took too long");
        match self.answer.piece() {
            Ok([]) => self.end = Some(Ending::Complete),
            Ok(piece) => self.taken.extend_from_slice(piece),
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                self.end = Some(Ending::Cut);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(self.end.is_none())
    }

    /// The next frame; `None` at the end.
    pub(super) fn frame(&mut self) -> Result<Option<Frame>, Stop> {
        let Some(message) = self.message()? else { return Ok(None) };
        let no_frame = |_| Stop::Failed(format!("this is no frame of protocol 1: {}", cut(&message.data)));
        Frame::read(message.data.as_bytes()).map(Some).map_err(no_frame)
    }

    /// The next frame, a snapshot.
    pub(super) fn snapshot(&mut self) -> Result<(u64, Vec<String>), Stop> {
        match self.frame()? {
            Some(Frame::Snapshot(snapshot)) => Ok((snapshot.seq.0, texts(&snapshot.events))),
            other => {
                Err(Stop::Failed(format!("expected a snapshot, got {}", in_short(other.as_ref(), None))))
            }
        }
    }

    /// The event of the next frame, as it was spelled.
    pub(super) fn event(&mut self) -> Result<String, Stop> {
        match self.frame()? {
            Some(Frame::Event(event)) => Ok(event.event.get().to_owned()),
            other => Err(Stop::Failed(format!("expected an event, got {}", in_short(other.as_ref(), None)))),
        }
    }

    /// The next message as JSON; `None` at the end.
    pub(super) fn json(&mut self) -> Result<Option<Value>, Stop> {
        let Some(message) = self.message()? else { return Ok(None) };
        let no_json = |_| Stop::Failed(format!("a message is not JSON: {}", cut(&message.data)));
        serde_json::from_str(&message.data).map(Some).map_err(no_json)
    }

    /// The next frame in short: `S4` is a snapshot at seq 4, `E5` event 5, `X5` the end at 5, followed by `p` if
    /// persisted and `s` if superseded; `-` is the proper end of the body, `!` a cut.
    pub(super) fn short(&mut self) -> Result<String, Stop> {
        let frame = self.frame()?;
        Ok(in_short(frame.as_ref(), self.end))
    }

    /// The next frames are these, in short.
    pub(super) fn gets(&mut self, expected: &str, what: &str) -> Tested {
        let mut got = Vec::new();
        for frame in expected.split(' ') {
            let short = self.short_of(frame).map_err(|stop| match stop {
                Stop::Failed(why) => Stop::Failed(format!(
                    "{what}: expected {expected}, got {} and then: {why}",
                    got.join(" ")
                )),
                skipped @ Stop::Skipped(_) => skipped,
            })?;
            let differs = short != frame;
            got.push(short);
            ensure!(!differs, "{what}: expected {expected}, got {}", got.join(" "));
        }
        Ok(())
    }

    /// The next frame in short. A snapshot may be older than asked for, if the events up to there follow: then all this
    /// counts as the snapshot that was expected.
    fn short_of(&mut self, expected: &str) -> Result<String, Stop> {
        let mut short = self.short()?;
        let wanted = expected.strip_prefix('S').and_then(|seq| seq.parse::<u64>().ok());
        let got = short.strip_prefix('S').and_then(|seq| seq.parse::<u64>().ok());
        let (Some(wanted), Some(got)) = (wanted, got) else { return Ok(short) };
        for seq in got + 1..=wanted {
            let next = self.short()?;
            ensure!(
                next == format!("E{seq}"),
                "a snapshot at {got} was followed by {next} instead of E{seq}"
            );
            short = format!("S{seq}");
        }
        Ok(short)
    }

    /// The events of a run up to this seq: those of a snapshot, and those that follow it.
    pub(super) fn events_to(&mut self, head: u64) -> Result<Vec<String>, Stop> {
        let (seq, mut events) = self.snapshot()?;
        ensure!(seq <= head, "the run has {head} events, the snapshot says seq {seq}");
        for _ in seq..head {
            events.push(self.event()?);
        }
        Ok(events)
    }

    /// Follows to the end of the body, and holds every frame to its order.
    pub(super) fn follow(&mut self, after: u64) -> Result<Told, Stop> {
        let mut told = Told { seq: after, ..Told::default() };
        while let Some(frame) = self.frame()? {
            ensure!(told.end.is_none(), "something came behind the end: {}", in_short(Some(&frame), None));
            match frame {
                Frame::Snapshot(snapshot) => {
                    told.snapshots += 1;
                    told.seq = snapshot.seq.0;
                    told.values =
                        snapshot.events.iter().map(|event| value(event)).collect::<Result<_, _>>()?;
                }
                Frame::Event(event) => {
                    ensure!(event.seq.0 == told.seq + 1, "event {} came after {}", event.seq, told.seq);
                    told.seq += 1;
                    told.values.push(value(&event.event)?);
                }
                Frame::End(end) => {
                    ensure!(end.seq.0 == told.seq, "the end says seq {}, the last was {}", end.seq, told.seq);
                    told.end = Some((end.persisted, end.superseded));
                }
            }
        }
        ensure!(told.end.is_some(), "the stream ended at seq {} without STREAM_END", told.seq);
        ensure!(self.end == Some(Ending::Complete), "the body broke off behind STREAM_END");
        Ok(told)
    }

    /// How the body has ended.
    pub(super) fn ending(&self) -> Option<Ending> {
        self.end
    }
}

impl Told {
    /// Exactly the numbers from `from` to `to`, none twice, none missing.
    pub(super) fn has(&self, from: u64, to: u64) -> Tested {
        let wrong = (from..).zip(&self.values).find(|(expected, got)| expected != *got);
        if let Some((expected, got)) = wrong {
            return Err(Stop::Failed(format!("where event {expected} should be, there was {got}")));
        }
        let count = self.values.len() as u64;
        ensure!(count == to + 1 - from, "expected events {from} to {to}, got {count} of them");
        Ok(())
    }
}

fn value(event: &RawValue) -> Result<u64, Stop> {
    let event: Value = serde_json::from_str(event.get())
        .map_err(|_| Stop::Failed(format!("an event is not JSON: {}", cut(event.get()))))?;
    event["value"].as_u64().ok_or_else(|| Stop::Failed(format!("an event was changed: {event}")))
}

fn texts(events: &[Box<RawValue>]) -> Vec<String> {
    events.iter().map(|event| event.get().to_owned()).collect()
}

fn in_short(frame: Option<&Frame>, end: Option<Ending>) -> String {
    match frame {
        Some(Frame::Snapshot(snapshot)) => format!("S{}", snapshot.seq),
        Some(Frame::Event(event)) => format!("E{}", event.seq),
        Some(Frame::End(end)) => {
            let flag = |set: bool, letter| if set { letter } else { "" };
            format!("X{}{}{}", end.seq, flag(end.persisted, "p"), flag(end.superseded, "s"))
        }
        None if end == Some(Ending::Cut) => "!".to_owned(),
        None => "-".to_owned(),
    }
}

/// The beginning of a text that may be long.
fn cut(text: &str) -> String {
    const CHARS: usize = 200;
    let dots = if text.chars().nth(CHARS).is_some() { "…" } else { "" };
    text.chars().take(CHARS).collect::<String>() + dots
}
