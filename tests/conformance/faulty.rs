//! A deliberately wrong server: rejoin behind a relay that spoils its answers, or the requests, in one way at a time.

mod faults;
mod spoil;
mod stream;

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use serde_json::Value;

use crate::server::{Conn, Head};
pub(crate) use faults::{FAULTS, Fault};
use spoil::Spoiler;

/// A request as the relay has read it: its body is whole, unless it comes in chunks.
pub(crate) struct Request {
    /// Method and target.
    pub(crate) line: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The body as text; what is no text has no member that matters.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_default()
    }

    pub(crate) fn replace_in_body(&mut self, from: &str, to: &str) {
        if self.text().contains(from) {
            self.body = self.text().replace(from, to).into_bytes();
        }
    }

    /// Members of the cursor that it names, if it names both.
    pub(crate) fn cursor(&self) -> Option<(String, u64)> {
        let body: Value = serde_json::from_slice(&self.body).ok()?;
        Some((body["run_id"].as_str()?.to_owned(), body["after_seq"].as_u64()?))
    }

    fn is_chunked(&self) -> bool {
        self.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("transfer-encoding"))
    }

    fn read(conn: &mut Conn) -> Option<Request> {
        let head = String::from_utf8(conn.take_until(b"\r\n\r\n")?).ok()?;
        let mut lines = head.trim_end().split("\r\n");
        let line = lines.next()?.strip_suffix(" HTTP/1.1")?.to_owned();
        let mut fields: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let length = fields.iter().position(|(name, _)| name == "Content-Length");
        let length = length.map_or(0, |index| fields.remove(index).1.parse().unwrap_or(0));
        let body = conn.take(length)?;
        Some(Request { line, fields, body })
    }

    fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} HTTP/1.1\r\n", self.line);
        for (name, value) in &self.fields {
            text += &format!("{name}: {value}\r\n");
        }
        if !self.is_chunked() && !self.line.starts_with("GET") {
            text += &format!("Content-Length: {}\r\n", self.body.len());
        }
        [text.as_bytes(), b"\r\n", &self.body].concat()
    }
}

/// Starts a relay to this server, for as long as the test's process runs.
pub(crate) fn relay(server: SocketAddr, fault: Option<Fault>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let spoiler = Spoiler::new(fault);
        std::thread::scope(|scope| {
            for client in listener.incoming().flatten() {
                let spoiler = &spoiler;
                // Whoever goes away in the middle is not answered.
                scope.spawn(move || exchange(client, server, spoiler));
            }
        });
    });
    address
}

/// One request and its answer.
fn exchange(client: TcpStream, server: SocketAddr, spoiler: &Spoiler) -> Option<()> {
    let mut out = Out { stream: client.try_clone().ok()?, deaf: spoiler.keeps_dead_observers() };
    let mut conn = Conn::new(client);
    let mut request = Request::read(&mut conn)?;
    spoiler.request(&mut request);
    let mut upstream = TcpStream::connect(server).ok()?;
    let held = (request.is_chunked() && spoiler.holds_bodies()).then(|| held_body(&mut conn));
    upstream.write_all(&request.bytes()).ok()?;
    upstream.write_all(&held.unwrap_or_default()).ok()?;
    let mut answer = Conn::new(upstream.try_clone().ok()?);
    std::thread::scope(|scope| {
        // What else comes from the client goes to the server; its end, too.
        scope.spawn(|| {
            let _ = upstream.write_all(&conn.rest());
            let _ = std::io::copy(&mut conn.stream, &mut upstream);
            if !spoiler.keeps_dead_observers() {
                let _ = upstream.shutdown(Shutdown::Both);
            }
        });
        let told = read_head(&mut answer)
            .and_then(|head| answer_to(&request, &head, &mut answer, spoiler, &mut out));
        let _ = out.stream.shutdown(Shutdown::Both);
        let _ = answer.stream.shutdown(Shutdown::Both);
        told
    })
}

/// The head of an answer, if one comes.
fn read_head(answer: &mut Conn) -> Option<Head> {
    let text = String::from_utf8(answer.take_until(b"\r\n\r\n")?).ok()?;
    Some(Head { status: text.get(9..12)?.parse().ok()?, text })
}

/// Where answers go; one that is deaf does not notice that nobody is there.
struct Out {
    stream: TcpStream,
    deaf: bool,
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.stream.write(bytes) {
            Err(_) if self.deaf => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The chunks of a body up to its end.
fn held_body(conn: &mut Conn) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(data)) = conn.chunk() {
        body.extend(format!("{:x}\r\n", data.len()).into_bytes());
        body.extend(data);
        body.extend(b"\r\n");
    }
    body.extend(b"0\r\n\r\n");
    body
}

fn answer_to(
    request: &Request,
    head: &Head,
    answer: &mut Conn,
    spoiler: &Spoiler,
    out: &mut impl Write,
) -> Option<()> {
    if head.field("Transfer-Encoding").is_none() {
        let body = answer.body(head);
        return out.write_all(&spoiler.answer(request, head, &body)).ok();
    }
    out.write_all(spoiler.stream_head(head).as_bytes()).ok()?;
    let mut stream = spoiler.stream(request);
    let mut taken = Vec::new();
    let complete = loop {
        match answer.chunk() {
            Ok(Some(data)) => taken.extend(data),
            Ok(None) => break true,
            Err(()) => break false,
        }
        while let Some(at) = taken.windows(2).position(|window| window == b"\n\n") {
            let message: Vec<u8> = taken.drain(..at + 2).collect();
            for message in stream.message(&String::from_utf8(message).ok()?) {
                chunk(out, &message)?;
            }
        }
    };
    for message in stream.last_words() {
        chunk(out, &message)?;
    }
    if complete || stream.always_complete() {
        out.write_all(b"0\r\n\r\n").ok()?;
    }
    Some(())
}

fn chunk(out: &mut impl Write, data: &str) -> Option<()> {
    write!(out, "{:x}\r\n{data}\r\n", data.len()).ok()
}
