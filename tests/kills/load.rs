//! Load on a server that may die at any moment: every step may fail, and what was heard before counts.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::rng::Rng;
use crate::server::request;

/// An answer that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A turn that an observer, or its producer, was told is saved.
#[derive(Debug)]
pub(crate) struct Acknowledged {
    /// The kill that ended the server that it was told by.
    pub(crate) kill: u64,
    pub(crate) run: String,
    pub(crate) text: String,
}

/// Writes turns into one chat, one after the other, and observes each.
pub(crate) struct Writer {
    pub(crate) address: SocketAddr,
    pub(crate) chat: String,
    pub(crate) kill: u64,
}

impl Writer {
    /// One turn. What was acknowledged of it is noted also if a later step fails.
    pub(crate) fn turn(&self, turn: u64, rng: &mut Rng, told: &mut Vec<Acknowledged>) -> io::Result<()> {
        let started = self.ask(&format!("POST /chats/{}/runs", self.chat), "application/json", "{}")?;
        let run = text(&started["run_id"])?;
        let live = format!("{{\"chat_id\":\"{}\",\"protocol\":1}}", self.chat);
        let mut observer = self.open("POST /chat/live", "application/json", &live)?;
        let (events, words) = self.events(turn, rng);
        self.ask(&format!("POST /runs/{run}/events"), "application/x-ndjson", &events)?;
        let finished = self.ask(&format!("POST /runs/{run}/finish"), "application/json", "");
        // The server may have died after it told one of the two.
        if saved_by_stream(&mut observer) || finished.as_ref().is_ok_and(|answer| answer["persisted"] == true)
        {
            told.push(Acknowledged { kill: self.kill, run, text: words });
        }
        finished.map(drop)
    }

    /// A message in pieces, up to some dozen KiB of them, and the text that they make.
    fn events(&self, turn: u64, rng: &mut Rng) -> (String, String) {
        let mut events = String::from("{\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n");
        events += "{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"m\",\"role\":\"assistant\"}\n";
        let mut words = String::new();
        for piece in 0..1 + rng.below(200) {
            let word = format!("{}/{turn}/{piece} {}", self.kill, "x".repeat(rng.below(200)));
            events +=
                &format!("{{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":\"{word}\"}}\n");
            words += &word;
        }
        events += "{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"m\"}\n";
        events += "{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n";
        (events, words)
    }

    fn open(&self, line: &str, kind: &str, body: &str) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&request(line, kind, body))?;
        Ok(stream)
    }

    /// One request; the JSON of its answer, which has to be a 2xx.
    fn ask(&self, line: &str, kind: &str, body: &str) -> io::Result<Value> {
        let mut stream = self.open(line, kind, body)?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        if !head.starts_with("HTTP/1.1 2") {
            return Err(io::Error::other(answer));
        }
        serde_json::from_str(body).map_err(io::Error::other)
    }
}

fn text(value: &Value) -> io::Result<String> {
    value.as_str().map(str::to_owned).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Reads a stream to its end, or as far as it got, and says whether its END was there and said `persisted`.
fn saved_by_stream(observer: &mut TcpStream) -> bool {
    let (mut all, mut buffer) = (Vec::new(), [0; 16 << 10]);
    loop {
        match observer.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => all.extend_from_slice(&buffer[..count]),
        }
        if all.ends_with(b"\r\n0\r\n\r\n") {
            break;
        }
    }
    String::from_utf8_lossy(&all)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
        .any(|frame| frame["type"] == "STREAM_END" && frame["persisted"] == true)
}
