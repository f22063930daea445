//! The real binary on a port of the system's choice, and a client that speaks raw bytes.

#![allow(dead_code, reason = "every test includes this file and uses its own part of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

/// A read that takes longer has failed; no test waits for it otherwise.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running `rejoin serve`, ended when it is dropped.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Where its database may be.
    pub(crate) dir: PathBuf,
}

/// Starts a server with its history in memory.
pub(crate) fn serve(args: &[&str]) -> Served {
    serve_with_db(":memory:", args)
}

/// Starts a server with its history in this file.
pub(crate) fn serve_with_db(db: &str, args: &[&str]) -> Served {
    serve_as(db, args, |_| ())
}

/// The same, with the process set up further.
pub(crate) fn serve_as(db: &str, args: &[&str], set_up: impl FnOnce(&mut Command)) -> Served {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let unique = format!("rejoin-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let dir = std::env::temp_dir().join(unique);
    std::fs::create_dir_all(&dir).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rejoin"));
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--db", db])
        .args(args)
        .current_dir(&dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    set_up(&mut command);
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("rejoin listens on http://").expect("it says where it listens");
    Served { address: address.parse().unwrap(), child, dir }
}

/// A server whose chat `unsaved` has a run that could not be saved.
pub(crate) fn serve_with_unsaved_run(args: &[&str]) -> Served {
    let served = serve_with_db("chats.db", args);
    let lock = rusqlite::Connection::open(served.dir.join("chats.db")).unwrap();
    lock.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let run = served.start("unsaved", "{}");
    served.append_numbers(&run, 1, 2);
    assert!(!served.finish(&run), "a locked database saves nothing");
    lock.execute_batch("ROLLBACK").unwrap();
    served
}

impl Served {
    /// Another program that is asked in the same way. It ends with its owner, and its folder goes.
    pub(crate) fn by(child: Child, address: SocketAddr, dir: PathBuf) -> Served {
        Served { child, address, dir }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Tells it to stop as an operator would, and waits until it has; whether it ended well.
    pub(crate) fn terminate(&mut self) -> bool {
        let killed = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        killed.success() && self.child.wait().unwrap().success()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Ends it without a word.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn connect(&self) -> Conn {
        Conn::new(TcpStream::connect(self.address).unwrap())
    }

    /// One request with a JSON body on a connection of its own; status and body.
    pub(crate) fn ask(&self, line: &str, body: &str) -> (u16, Value) {
        let mut conn = self.connect();
        conn.send(&request(line, "application/json", body));
        let head = conn.head();
        (head.status, conn.json(&head))
    }

    /// Follows a chat: POST with these members beside chat_id and protocol.
    pub(crate) fn live(&self, chat: &str, members: &str) -> Stream {
        self.live_body(&format!("{{\"chat_id\":{},\"protocol\":1{members}}}", Value::from(chat)))
    }

    /// Follows a chat with this body.
    pub(crate) fn live_body(&self, body: &str) -> Stream {
        let mut conn = self.connect();
        conn.send(&request("POST /chat/live", "application/json", body));
        Stream::from(conn)
    }

    /// Sends a probe and comes back when the server has surely read it, whether it answers or waits.
    pub(crate) fn probe(&self, chat: &str, members: &str) -> Conn {
        let mut conn = self.connect();
        let body = format!("{{\"chat_id\":{},\"protocol\":1{members}}}", Value::from(chat));
        conn.send(&request("POST /chat/live", "application/json", &body));
        // Requests are read in the order in which they come; these came later.
        for _ in 0..2 {
            assert_eq!(self.ask("GET /healthz", "").0, 200);
        }
        conn
    }

    /// Follows with a GET, with this query and `Last-Event-ID`.
    pub(crate) fn live_get(&self, query: &str, last_event_id: Option<&str>) -> Stream {
        let id = last_event_id.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
        self.stream(&format!("GET /chat/live?{query} HTTP/1.1\r\nHost: localhost\r\n{id}\r\n"))
    }

    /// Sends a request and reads its answer as a stream.
    pub(crate) fn stream(&self, request: &str) -> Stream {
        let mut conn = self.connect();
        conn.send(request.as_bytes());
        Stream::from(conn)
    }

    /// Starts a run; its id.
    pub(crate) fn start(&self, chat: &str, body: &str) -> String {
        let (status, answer) = self.ask(&format!("POST /chats/{chat}/runs"), body);
        assert_eq!(status, 201, "{answer}");
        answer["run_id"].as_str().unwrap().to_owned()
    }

    /// Appends these events to a run.
    pub(crate) fn append(&self, run: &str, events: &[&str]) {
        let body = events.iter().map(|event| format!("{event}\n")).collect::<String>();
        let mut conn = self.connect();
        conn.send(&request(&format!("POST /runs/{run}/events"), "application/x-ndjson", &body));
        let head = conn.head();
        assert_eq!(head.status, 200, "{}", conn.json(&head));
    }

    /// Appends `count` events, numbered from `from`.
    pub(crate) fn append_numbers(&self, run: &str, from: u64, count: u64) {
        let events: Vec<String> = (from..from + count).map(number).collect();
        self.append(run, &events.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Finishes a run; whether it is saved.
    pub(crate) fn finish(&self, run: &str) -> bool {
        let (status, answer) = self.ask(&format!("POST /runs/{run}/finish"), "");
        assert_eq!(status, 200, "{answer}");
        answer["persisted"].as_bool().unwrap()
    }

    /// Waits until something about a run is so.
    pub(crate) fn wait_for(&self, run: &str, what: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..2_000 {
            let (_, state) = self.ask(&format!("GET /runs/{run}"), "");
            if what(&state) {
                return state;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it never came to be so");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// An event that says a number.
pub(crate) fn number(number: u64) -> String {
    format!(r#"{{"type":"CUSTOM","name":"n","value":{number}}}"#)
}

/// A request with a length.
pub(crate) fn request(line: &str, kind: &str, body: &str) -> Vec<u8> {
    let (kind, length) = (kind, body.len());
    let kind = if body.is_empty() { String::new() } else { format!("Content-Type: {kind}\r\n") };
    format!("{line} HTTP/1.1\r\nHost: localhost\r\n{kind}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// A connection.
pub(crate) struct Conn {
    pub(crate) stream: TcpStream,
    bytes: Vec<u8>,
    ended: bool,
    /// It ended with a reset.
    pub(crate) was_reset: bool,
}

/// A response head.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Head {
    /// A field's value.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.text.split("\r\n").find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Conn {
    pub(crate) fn new(stream: TcpStream) -> Conn {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Conn { stream, bytes: Vec::new(), ended: false, was_reset: false }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // A server that has refused may have closed already; its answer is what counts.
        let _ = self.stream.write_all(bytes);
    }

    pub(crate) fn half_close(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// Reads more; `false` at the end.
    fn more(&mut self) -> bool {
        let mut buffer = [0; 65_536];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.ended = true,
            Ok(count) => self.bytes.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                (self.ended, self.was_reset) = (true, true);
            }
            Err(error) => panic!("nothing came: {error}; so far {:?}", String::from_utf8_lossy(&self.bytes)),
        }
        !self.ended
    }

    pub(crate) fn take_until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.bytes.windows(end.len()).position(|window| window == end) {
                return Some(self.bytes.drain(..at + end.len()).collect());
            }
            if !self.more() {
                return None;
            }
        }
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.bytes.len() < count {
            if !self.more() {
                return None;
            }
        }
        Some(self.bytes.drain(..count).collect())
    }

    /// What was read and not taken.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// The next response's head.
    pub(crate) fn head(&mut self) -> Head {
        let text = String::from_utf8(self.take_until(b"\r\n\r\n").expect("an answer")).unwrap();
        Head { status: text[9..12].parse().unwrap(), text }
    }

    /// The body of a response that has a length.
    pub(crate) fn body(&mut self, head: &Head) -> Vec<u8> {
        let length = head.field("Content-Length").map_or(0, |length| length.parse().unwrap());
        self.take(length).expect("the whole body")
    }

    pub(crate) fn json(&mut self, head: &Head) -> Value {
        serde_json::from_slice(&self.body(head)).unwrap_or(Value::Null)
    }

    /// Whether the server closes, without another byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.bytes.is_empty() && !self.more()
    }

    /// The next chunk; `None` at the last one (`Ok`) or a cut (`Err`).
    pub(crate) fn chunk(&mut self) -> Result<Option<Vec<u8>>, ()> {
        let line = self.take_until(b"\r\n").ok_or(())?;
        let size = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim(), 16).unwrap();
        let mut data = self.take(size + 2).ok_or(())?;
        data.truncate(size);
        Ok(Some(data).filter(|data| !data.is_empty()))
    }
}

impl From<Conn> for Stream {
    fn from(mut conn: Conn) -> Stream {
        Stream { head: conn.head(), conn, taken: Vec::new(), complete: false }
    }
}

/// A response that is a stream of SSE messages.
pub(crate) struct Stream {
    pub(crate) conn: Conn,
    pub(crate) head: Head,
    taken: Vec<u8>,
    /// Its end was proper.
    pub(crate) complete: bool,
}

impl Stream {
    /// The next message's lines, comments too; `None` at the end.
    pub(crate) fn message(&mut self) -> Option<Vec<String>> {
        loop {
            if let Some(at) = self.taken.windows(2).position(|window| window == b"\n\n") {
                let message: Vec<u8> = self.taken.drain(..at + 2).collect();
                return Some(
                    String::from_utf8(message)
                        .unwrap()
                        .lines()
                        .take_while(|line| !line.is_empty())
                        .map(str::to_owned)
                        .collect(),
                );
            }
            if self.head.field("Transfer-Encoding").is_some() {
                match self.conn.chunk() {
                    Ok(Some(data)) => self.taken.extend(data),
                    Ok(None) => {
                        self.complete = true;
                        return None;
                    }
                    Err(()) => return None,
                }
            } else {
                let more = self.conn.more();
                self.taken.append(&mut self.conn.bytes);
                if !more {
                    return None;
                }
            }
        }
    }

    /// The next message that is no comment, as JSON.
    pub(crate) fn data(&mut self) -> Option<Value> {
        loop {
            let lines = self.message()?;
            if let Some(data) = lines.iter().find_map(|line| line.strip_prefix("data: ")) {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }

    /// All that is left.
    pub(crate) fn all(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.data()).collect()
    }

    /// The next frame in short: `S4` is a snapshot at seq 4, `E5` event 5, `X5` the end at 5 followed by `p` if
    /// persisted and `s` if superseded; `-` is the end of the body.
    pub(crate) fn short(&mut self) -> String {
        let Some(frame) = self.data() else { return "-".to_owned() };
        let seq = frame["seq"].as_u64().unwrap();
        match frame["type"].as_str().unwrap() {
            "STREAM_SNAPSHOT" => format!("S{seq}"),
            "STREAM_EVENT" => format!("E{seq}"),
            "STREAM_END" => {
                let flag = |name: &str, letter| if frame[name] == true { letter } else { "" };
                format!("X{seq}{}{}", flag("persisted", "p"), flag("superseded", "s"))
            }
            other => panic!("unknown frame {other}"),
        }
    }

    /// The next `count` frames in short.
    pub(crate) fn shorts(&mut self, count: usize) -> String {
        (0..count).map(|_| self.short()).collect::<Vec<_>>().join(" ")
    }
}
