//! The *peer*: the server under test, as a case sees it. What most cases do is spelled here once; what only one does is
//! left to that case.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::http::{self, Answer, Upload};

use super::stream::Stream;
use super::{Options, Stop, ensure, now};

/// Runs' events.
pub(super) const NDJSON: &str = "application/x-ndjson";

const JSON: &str = "application/json";

/// Deleting what a case has made may take this long.
const CLEAN_UP: Duration = Duration::from_secs(5);

/// The server under test, for the time of one case.
pub(super) struct Peer<'a> {
    pub(super) options: &'a Options,
    deadline: Instant,
    /// What the names of this case's chats begin with.
    prefix: String,
    /// How many chats have a name.
    chats: AtomicU32,
}

/// A run that the suite writes.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) id: String,
    pub(super) chat: String,
}

/// An answer that is no stream.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) json: Value,
    pub(super) allow: Option<String>,
}

impl Peer<'_> {
    pub(super) fn new(options: &Options, deadline: Instant) -> Peer<'_> {
        let mut bits = [0; 8];
        // Without randomness the clock of the run ids' neighbours still tells chats apart within this process.
        let _ = getrandom::fill(&mut bits);
        let prefix = format!("conformance-{:016x}", u64::from_le_bytes(bits));
        Peer { options, deadline, prefix, chats: AtomicU32::new(0) }
    }

    /// A chat that nobody else has.
    pub(super) fn chat(&self) -> String {
        format!("{}-{}", self.prefix, self.chats.fetch_add(1, Ordering::Relaxed))
    }

    /// Deletes the chats of the case; a server that can't was tested for that elsewhere.
    pub(super) fn clean_up(self) {
        let chats = self.chats.load(Ordering::Relaxed);
        let cleaning = Peer { deadline: now() + CLEAN_UP, ..self };
        for number in 0..chats {
            let _ = cleaning.ask(&format!("DELETE /chats/{}-{number}", cleaning.prefix), "");
        }
    }

    /// What is left of the case's time.
    pub(super) fn left(&self) -> Result<Duration, Stop> {
        match self.deadline.saturating_duration_since(now()) {
            Duration::ZERO => Err(Stop::Failed("the case took too long".to_owned())),
            left => Ok(left),
        }
    }

    /// The first lines of a request: `line` is its method and its path with a query.
    fn head(&self, line: &str) -> String {
        let (method, path) = line.split_once(' ').unwrap_or(("GET", line));
        let mut head = http::head(&self.options.url, method, &(self.options.url.path(&[]) + path));
        for (name, value) in &self.options.fields {
            head += &format!("{name}: {value}\r\n");
        }
        head
    }

    /// Sends a request and waits for the head of its answer; `fields` are further lines of its head.
    pub(super) fn answer(&self, line: &str, fields: &str, body: &[u8]) -> Result<Answer, Stop> {
        let mut request = self.head(line) + fields;
        if !body.is_empty() || line.starts_with("POST") {
            request += &format!("Content-Length: {}\r\n", body.len());
        }
        let request = [request.as_bytes(), b"\r\n", body].concat();
        Ok(http::send_raw(&self.options.url, &request, self.left()?)?)
    }

    /// Sends a body of this kind.
    pub(super) fn send(&self, line: &str, kind: &str, body: &[u8]) -> Result<Reply, Stop> {
        let kind = if body.is_empty() { String::new() } else { format!("Content-Type: {kind}\r\n") };
        Reply::read(self.answer(line, &kind, body)?)
    }

    /// Sends a body of JSON, or none.
    pub(super) fn ask(&self, line: &str, body: &str) -> Result<Reply, Stop> {
        self.send(line, JSON, body.as_bytes())
    }

    /// Begins a request whose body comes in pieces.
    pub(super) fn upload(&self, line: &str, kind: &str) -> Result<Upload, Stop> {
        let fields = format!("Content-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n");
        let head = self.head(line) + &fields;
        Ok(Upload::begin_raw(&self.options.url, head.as_bytes(), self.left()?)?)
    }

    /// Follows a chat; `members` are those beside chat_id and protocol, each with a comma before it.
    pub(super) fn live(&self, chat: &str, members: &str) -> Result<Stream, Stop> {
        self.live_body(&format!("{{\"chat_id\":{},\"protocol\":1{members}}}", Value::from(chat)))
    }

    pub(super) fn live_body(&self, body: &str) -> Result<Stream, Stop> {
        let kind = format!("Content-Type: {JSON}\r\n");
        Ok(Stream::new(self.answer("POST /chat/live", &kind, body.as_bytes())?, self.deadline))
    }

    /// Follows with a GET, as EventSource does.
    pub(super) fn live_get(&self, query: &str, last_event_id: Option<&str>) -> Result<Stream, Stop> {
        let id = last_event_id.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
        Ok(Stream::new(self.answer(&format!("GET /chat/live?{query}"), &id, b"")?, self.deadline))
    }

    /// Reads another stream of messages.
    pub(super) fn stream(&self, line: &str) -> Result<Stream, Stop> {
        Ok(Stream::new(self.answer(line, "Accept: text/event-stream\r\n", b"")?, self.deadline))
    }

    /// Starts a run of a chat.
    pub(super) fn start_in(&self, chat: &str, body: &str) -> Result<Run, Stop> {
        let reply = self.ask(&format!("POST /chats/{chat}/runs"), body)?;
        reply.is(201, "starting a run")?;
        let id = reply.json["run_id"].as_str().unwrap_or_default().to_owned();
        ensure!(!id.is_empty(), "starting a run: 201 without a run_id: {}", reply.json);
        Ok(Run { id, chat: chat.to_owned() })
    }

    /// Starts a run of a fresh chat.
    pub(super) fn start(&self) -> Result<Run, Stop> {
        self.start_in(&self.chat(), "{}")
    }

    /// Starts a run of a fresh chat and appends numbers from 1 on.
    pub(super) fn run_of(&self, count: u64) -> Result<Run, Stop> {
        let run = self.start()?;
        self.append_numbers(&run, 1, count)?;
        Ok(run)
    }

    /// A run of so many numbers that was finished and saved.
    pub(super) fn saved_run_of(&self, count: u64) -> Result<Run, Stop> {
        let run = self.run_of(count)?;
        self.finish(&run)?;
        Ok(run)
    }

    pub(super) fn append(&self, run: &Run, events: &[&str]) -> Result<Reply, Stop> {
        let body: String = events.iter().map(|event| format!("{event}\n")).collect();
        let reply = self.send(&run.line("POST", "events", ""), NDJSON, body.as_bytes())?;
        reply.is(200, "appending")?;
        Ok(reply)
    }

    /// Appends `count` events, numbered from `from`.
    pub(super) fn append_numbers(&self, run: &Run, from: u64, count: u64) -> Result<(), Stop> {
        let body = numbers(from, count);
        self.send(&run.line("POST", "events", ""), NDJSON, body.as_bytes())?.is(200, "appending")
    }

    /// Finishes a run, which has to be saved.
    pub(super) fn finish(&self, run: &Run) -> Result<Reply, Stop> {
        let reply = self.ask(&run.line("POST", "finish", ""), "")?;
        reply.is(200, "finishing")?;
        let persisted = &reply.json["persisted"];
        ensure!(persisted == true, "finishing: the run was not saved (\"persisted\":{persisted})");
        Ok(reply)
    }

    /// What `GET /status` says of this chat's run; skips the case if the server has no such page.
    pub(super) fn status_of(&self, run: &Run) -> Result<Value, Stop> {
        let status = self.status()?;
        let runs = status["runs"].as_array().cloned().unwrap_or_default();
        let found = runs.into_iter().find(|listed| listed["run_id"] == run.id.as_str());
        found.ok_or_else(|| Stop::Failed(format!("GET /status does not list run {}", run.id)))
    }

    pub(super) fn status(&self) -> Result<Value, Stop> {
        let mut answer = self.answer("GET /status", "", b"")?;
        if answer.status != 200 {
            let why = format!("GET /status gets {}, so it can't be seen who is connected", answer.status);
            return Err(Stop::Skipped(why));
        }
        let mut body = Vec::new();
        loop {
            match answer.piece()? {
                [] => break,
                piece => body.extend_from_slice(piece),
            }
        }
        serde_json::from_slice(&body).map_err(|_| Stop::Failed("GET /status is not JSON".to_owned()))
    }

    /// Waits until something is so; `what` says it.
    pub(super) fn until(&self, what: &str, mut so: impl FnMut() -> Result<bool, Stop>) -> Result<(), Stop> {
        loop {
            let tried = so();
            if matches!(tried, Ok(true)) {
                return Ok(());
            }
            // A try that the end of the time has cut off says less than what was waited for.
            if self.left().is_err() {
                return Err(Stop::Failed(format!("it never came to be so: {what}")));
            }
            tried?;
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Tries something that depends on a request being there before the next: each time with a longer pause for it. A
    /// server that does it right passes one of them, a wrong one none.
    pub(super) fn with_pauses(&self, attempt: impl Fn(Duration) -> Result<(), Stop>) -> Result<(), Stop> {
        attempt(Duration::from_millis(100))
            .or_else(|_| attempt(Duration::from_millis(500)))
            .or_else(|_| attempt(Duration::from_secs(2)))
    }
}

impl Run {
    /// A request about the run. It names the chat too, which the server may ignore: a proxy in front of several servers
    /// needs it.
    pub(super) fn line(&self, method: &str, what: &str, query: &str) -> String {
        let Run { id, chat } = self;
        let slash = if what.is_empty() { "" } else { "/" };
        format!("{method} /runs/{id}{slash}{what}?chat_id={chat}{query}")
    }

    /// The members of a cursor in this run.
    pub(super) fn cursor(&self, after: u64) -> String {
        format!(",\"run_id\":\"{}\",\"after_seq\":{after}", self.id)
    }
}

impl Reply {
    pub(super) fn read(mut answer: Answer) -> Result<Reply, Stop> {
        let body = answer.whole()?;
        let json = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let allow = answer.field("allow").map(str::to_owned);
        Ok(Reply { status: answer.status, json, allow })
    }

    /// It has this status.
    pub(super) fn is(&self, status: u16, what: &str) -> Result<(), Stop> {
        ensure!(self.status == status, "{what}: expected {status}, got {} {}", self.status, self.json);
        Ok(())
    }

    /// It is a refusal with this status and code, and a message.
    pub(super) fn refuses(&self, status: u16, code: &str, what: &str) -> Result<(), Stop> {
        self.is(status, what)?;
        let error = &self.json["error"];
        ensure!(error["code"] == code, "{what}: expected the error code {code}, got {}", self.json);
        let message = error["message"].as_str().unwrap_or_default();
        ensure!(!message.is_empty(), "{what}: an error needs a message: {}", self.json);
        Ok(())
    }
}

/// An event that says a number.
pub(super) fn number(number: u64) -> String {
    format!(r#"{{"type":"CUSTOM","name":"n","value":{number}}}"#)
}

/// A body of such events.
pub(super) fn numbers(from: u64, count: u64) -> String {
    (from..from + count).map(|value| number(value) + "\n").collect()
}
