//! The stage: a server in this process, runs that are written and ended on it, and the client's word on each. It reads
//! over real sockets what an observer gets and what the history keeps.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use rejoin::client::frame::{End, Frame};
use rejoin::client::sse::{Item, Parser};
use rejoin::producer::{Producer, RunOptions};
use rejoin::{Server, ServerConfig};

use super::generate;
use super::oracle::{Open, Oracle};

/// A read that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The producer says that it is done.
    Finished,
    /// The producer says that it failed.
    Failed,
    /// The producer is dropped.
    Dropped,
    /// The producer streams a line that is no event.
    BadLine,
    /// The producer appends more than a run may hold.
    TooLarge,
    /// A newer run takes its place.
    Superseded,
    /// The server is stopped.
    Shutdown,
}

impl Ending {
    /// The ways in which a producer ends, on its own.
    pub(crate) const ALONE: [Ending; 3] = [Ending::Finished, Ending::Failed, Ending::Dropped];

    /// The code of the RUN_ERROR.
    fn code(self) -> &'static str {
        match self {
            Ending::Finished | Ending::Failed | Ending::BadLine => "agent_error",
            Ending::Dropped => "producer_lost",
            Ending::TooLarge => "too_large",
            Ending::Superseded => "superseded",
            Ending::Shutdown => "shutdown",
        }
    }
}

/// How a run came out.
#[derive(Debug)]
pub(crate) struct Closed {
    /// The events behind the producer's own.
    pub(crate) appended: Vec<String>,
    /// The end that observers were told.
    pub(crate) end: End,
    /// The turn in the history, if that can still be read.
    saved: Option<Saved>,
}

/// A turn of the history.
#[derive(Debug, Deserialize)]
struct Saved {
    run_id: String,
    superseded: bool,
    closed: Option<String>,
    events: Vec<Box<RawValue>>,
}

/// The server, the judge, and the number of the next chat.
pub(crate) struct Stage {
    server: Option<Server>,
    oracle: Oracle,
    chats: usize,
}

impl Stage {
    pub(crate) fn set() -> Stage {
        Stage::with(ServerConfig::default())
    }

    pub(crate) fn with_run_bytes_max(bytes: u64) -> Stage {
        let mut config = ServerConfig::default();
        config.engine.limits.run_bytes_max = bytes;
        Stage::with(config)
    }

    fn with(config: ServerConfig) -> Stage {
        let server = Server::start(config).expect("a server starts on loopback");
        Stage { server: Some(server), oracle: Oracle::start(), chats: 0 }
    }

    /// Ends a run with these events, the beginning of a good sequence, in each of these ways, and judges it: what is
    /// ended is what the client says is open.
    pub(crate) fn try_each(&mut self, seed: u64, events: &[String], endings: &[Ending]) {
        let events = borrowed(events);
        let open = self.accepted(&events);
        let parts = [open.texts, open.reasonings, open.spans, open.tool_calls].concat().len();
        let expected = if level(&events) == Level::Started { parts } else { 0 };
        for ending in endings {
            let closed = self.close(&events, *ending);
            let ends = closed.appended.len().saturating_sub(1);
            assert_eq!(ends, expected, "seed {seed}, {} events, {ending:?}: {closed:?}", events.len());
            self.judge(&events, *ending, &closed);
        }
    }

    /// Writes a run with these events and ends it.
    pub(crate) fn close(&mut self, events: &[&str], ending: Ending) -> Closed {
        self.chats += 1;
        let chat = format!("c{}", self.chats);
        if ending == Ending::BadLine {
            return self.close_streamed(&chat, events);
        }
        let server = self.server.as_ref().expect("it was not stopped");
        let mut run = write(server, &chat, events);
        let observer = observe(server.address(), &chat, run.run_id().as_str(), events.len());
        match ending {
            Ending::Finished => drop(run.finish().unwrap()),
            Ending::Failed => drop(run.fail("the model\u{2028}\"broke\"\n").unwrap()),
            Ending::Dropped => drop(run),
            Ending::TooLarge => {
                let large = format!(r#"{{"type":"CUSTOM","name":"n","value":"{}"}}"#, "x".repeat(1_000));
                run.append(large.as_bytes()).unwrap();
            }
            Ending::Superseded => {
                let newer = RunOptions { supersede: true, ..RunOptions::default() };
                drop(server.handle().start(&chat, newer).unwrap());
            }
            Ending::BadLine | Ending::Shutdown => {
                unreachable!("these ways are not a producer's in this process")
            }
        }
        let (appended, end) = observer.rest();
        Closed { appended, end, saved: Some(saved(server.address(), &chat)) }
    }

    /// Streams the events and a line that is none as the body of one request.
    fn close_streamed(&self, chat: &str, events: &[&str]) -> Closed {
        let address = self.server.as_ref().expect("it was not stopped").address();
        let body: String = events.iter().chain(&["no event"]).map(|event| format!("{event}\n")).collect();
        let mut stream = connect(address);
        let line = format!("POST /chats/{chat}/runs?stream=1");
        stream.write_all(request(&line, "application/x-ndjson", &body).as_bytes()).unwrap();
        let answer = read_all(&mut stream);
        let line = format!("\"line\":{}", events.len() + 1);
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(&line), "{answer}");
        let saved = saved(address, chat);
        let (appended, end) = observe(address, chat, &saved.run_id, events.len()).rest();
        Closed { appended, end, saved: Some(saved) }
    }

    /// Stops the server while these runs go on.
    pub(crate) fn stop(&mut self, runs: &[Vec<String>]) -> Vec<Closed> {
        let server = self.server.take().expect("it was not stopped");
        let open: Vec<(Producer, Observed)> = runs
            .iter()
            .enumerate()
            .map(|(number, events)| {
                let chat = format!("c{number}");
                let run = write(&server, &chat, &borrowed(events));
                let observer = observe(server.address(), &chat, run.run_id().as_str(), events.len());
                (run, observer)
            })
            .collect();
        server.stop().unwrap();
        open.into_iter()
            .map(|(_, observer)| {
                let (appended, end) = observer.rest();
                Closed { appended, end, saved: None }
            })
            .collect()
    }

    /// Judges how a run with these events came out. They are a sequence that the client accepts.
    pub(crate) fn judge(&mut self, events: &[&str], ending: Ending, closed: &Closed) {
        let told = format!("{ending:?} behind {events:?}: {closed:?}");
        let by_itself = ending == Ending::Finished;
        let error = match level(events) {
            Level::Failed => false,
            Level::None | Level::Finished => !by_itself,
            Level::Started => true,
        };
        let code = error.then(|| ending.code());
        match (closed.appended.last(), code) {
            (None, None) => {}
            (Some(last), Some(code)) => assert_eq!(short(last), format!("RUN_ERROR {code}"), "{told}"),
            _ => panic!("an error is due: {error}, {told}"),
        }
        assert_eq!(closed.end.seq.0, (events.len() + closed.appended.len()) as u64, "{told}");
        assert!(closed.end.persisted && !closed.end.superseded, "{told}");
        if let Some(saved) = &closed.saved {
            assert_eq!((saved.closed.as_deref(), saved.superseded), (code, false), "{told}");
        }
        let open = self.accept(events, closed);
        let left = [open.texts, open.reasonings, open.spans, open.tool_calls].concat();
        // A producer that sends RUN_ERROR itself may leave parts open, and nothing may follow that.
        let excused = !error && level(events) == Level::Failed;
        assert!(!open.run && (excused || left.is_empty()), "{left:?} is open, {told}");
    }

    /// The client accepts what observers got and what was saved; what is open at the end, which is the same in both.
    pub(crate) fn accept(&mut self, events: &[&str], closed: &Closed) -> Open {
        let observed: Vec<&str> =
            events.iter().copied().chain(closed.appended.iter().map(String::as_str)).collect();
        let open = self.accepted(&observed);
        if let Some(saved) = &closed.saved {
            let saved: Vec<&str> = saved.events.iter().map(|event| event.get()).collect();
            assert_eq!(self.accepted(&saved), open, "{saved:?} was saved of {observed:?}");
        }
        open
    }

    fn accepted(&mut self, events: &[&str]) -> Open {
        let verification = self.oracle.verify(&generate::array(events));
        assert!(verification.accepted, "{verification:?}: {events:?}");
        verification.open
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            let stopped = server.stop();
            assert!(stopped.is_ok() || std::thread::panicking(), "{stopped:?}");
        }
    }
}

/// The last event about the agent's own run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    None,
    Started,
    Finished,
    Failed,
}

fn level(events: &[&str]) -> Level {
    let of = |event: &&str| match &*named(event).kind {
        "RUN_STARTED" => Some(Level::Started),
        "RUN_FINISHED" => Some(Level::Finished),
        "RUN_ERROR" => Some(Level::Failed),
        _ => None,
    };
    events.iter().rev().find_map(of).unwrap_or(Level::None)
}

/// The members of an event that tests look at.
#[derive(Debug, Deserialize)]
struct Named<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow, rename = "messageId")]
    message_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "toolCallId")]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

fn named(event: &str) -> Named<'_> {
    serde_json::from_str(event).unwrap_or_else(|error| panic!("{event}: {error}"))
}

/// An event's type and its id or code.
pub(crate) fn short(event: &str) -> String {
    let Named { kind, message_id, tool_call_id, code, message } = named(event);
    let text =
        [message_id, tool_call_id, code].into_iter().flatten().map(|name| name.get().trim_matches('"'));
    if kind == "RUN_ERROR" {
        assert!(
            message.is_some_and(|message| message.get().len() > 2),
            "an error says what happened: {event}"
        );
    }
    [kind.as_str()].into_iter().chain(text).collect::<Vec<_>>().join(" ")
}

pub(crate) fn borrowed(events: &[String]) -> Vec<&str> {
    events.iter().map(String::as_str).collect()
}

/// Starts a run of this chat and writes the events.
fn write(server: &Server, chat: &str, events: &[&str]) -> Producer {
    let mut run = server.handle().start(chat, RunOptions::default()).expect("no run is active");
    for event in events {
        run.append(event.as_bytes()).unwrap();
    }
    run
}

/// An observer whose answer has begun: it gets all that happens from now on.
struct Observed {
    stream: TcpStream,
    taken: Vec<u8>,
    run: String,
}

/// Observes a run behind its first `after` events.
fn observe(address: SocketAddr, chat: &str, run: &str, after: usize) -> Observed {
    let body = format!(r#"{{"chat_id":"{chat}","protocol":1,"run_id":"{run}","after_seq":{after}}}"#);
    let mut stream = connect(address);
    stream.write_all(request("POST /chat/live", "application/json", &body).as_bytes()).unwrap();
    let mut taken = Vec::new();
    let head = loop {
        if let Some(at) = taken.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        let mut buffer = [0; 4_096];
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "an answer to {body}: {}", String::from_utf8_lossy(&taken));
        taken.extend_from_slice(&buffer[..count]);
    };
    assert!(taken.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&taken));
    Observed { stream, taken: taken.split_off(head), run: run.to_owned() }
}

impl Observed {
    /// The events that come, and the end.
    fn rest(mut self) -> (Vec<String>, End) {
        self.stream.read_to_end(&mut self.taken).unwrap();
        let mut parser = Parser::new(1 << 24);
        let mut input = self.taken.as_slice();
        let mut events = Vec::new();
        while let Some(item) = parser.next(&mut input).unwrap() {
            let Item::Message(data) = item else { continue };
            match Frame::read(data).unwrap() {
                Frame::Event(event) if event.run.as_str() == self.run => {
                    events.push(event.event.get().to_owned());
                }
                Frame::End(end) => {
                    assert_eq!(end.run.as_str(), self.run);
                    return (events, end);
                }
                other => panic!("a cursor in the window gets events only: {other:?}"),
            }
        }
        panic!("no end came: {}", String::from_utf8_lossy(&self.taken));
    }
}

/// The first turn of a chat, as the history has it.
fn saved(address: SocketAddr, chat: &str) -> Saved {
    #[derive(Deserialize)]
    struct Page {
        turns: Vec<Saved>,
    }
    let mut stream = connect(address);
    stream.write_all(request(&format!("GET /chats/{chat}"), "", "").as_bytes()).unwrap();
    let answer = read_all(&mut stream);
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let page: Page = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
    page.turns.into_iter().next().expect("a turn was saved")
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// HTTP/1.0: the answer is not chunked and ends with the connection.
fn request(line: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{line} HTTP/1.0\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn read_all(stream: &mut TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
