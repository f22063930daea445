//! The little of HTTP/1.1 that a client of rejoin needs (RFC 9112), over blocking sockets.
//!
//! One request a connection, no redirects, no compression, `http` only. Bodies are read as they come, never waited
//! for as a whole unless they are short. It knows no run and no frame.

mod body;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use super::url::ServerUrl;
use super::{ANSWER_BYTES_MAX, CONNECT_MS, RETRY_AFTER_MS_MAX, UNACKNOWLEDGED_MS, millis};
use body::Body;

/// The head of an answer, in bytes: as much as servers commonly send.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// Fields in the head of an answer.
const FIELDS_MAX: usize = 64;

/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;

/// A request whose head was sent and whose body is being sent in chunks.
#[derive(Debug)]
pub(crate) struct Upload {
    stream: TcpStream,
    scratch: Vec<u8>,
}

/// An answer: its head, and its body as far as it was read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Asking again is of no use before this has passed.
    pub(super) retry_after: Duration,
    /// Names and values of the head's fields, as they came.
    fields: Vec<(String, String)>,
    body: Body,
    input: Input,
}

/// Bytes from a socket.
#[derive(Debug)]
struct Input {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were taken.
    taken: usize,
}

/// Sends a request with a body of JSON, or with none, and waits for the head of the answer. A read, now or later,
/// takes `silence` at most.
pub(super) fn send(
    url: &ServerUrl,
    method: &str,
    path: &str,
    json: Option<&str>,
    silence: Duration,
) -> io::Result<Answer> {
    let mut request = head(url, method, path);
    if let Some(json) = json {
        request += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", json.len());
    }
    request += "\r\n";
    request += json.unwrap_or_default();
    send_raw(url, request.as_bytes(), silence)
}

/// Sends a request as the caller spelled it, from its first line to the end of its body.
pub(crate) fn send_raw(url: &ServerUrl, request: &[u8], silence: Duration) -> io::Result<Answer> {
    let mut stream = connect(url, silence)?;
    stream.write_all(request)?;
    Answer::read(stream)
}

impl Upload {
    /// Begins a request with a body of unknown length.
    pub(super) fn begin(
        url: &ServerUrl,
        path: &str,
        content_type: &str,
        silence: Duration,
    ) -> io::Result<Upload> {
        let fields = format!("Content-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n");
        Upload::begin_raw(url, (head(url, "POST", path) + &fields).as_bytes(), silence)
    }

    /// Begins a request with a head as the caller spelled it; it says that the body comes in chunks.
    pub(crate) fn begin_raw(url: &ServerUrl, head: &[u8], silence: Duration) -> io::Result<Upload> {
        let mut stream = connect(url, silence)?;
        stream.write_all(head)?;
        Ok(Upload { stream, scratch: Vec::new() })
    }

    /// Sends a piece of the body, at once.
    pub(crate) fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.scratch.clear();
        write!(self.scratch, "{:x}\r\n", bytes.len())?;
        self.scratch.extend_from_slice(bytes);
        self.scratch.extend_from_slice(b"\r\n");
        self.stream.write_all(&self.scratch)
    }

    /// Whether the server answered, or closed, before the end of the body.
    pub(super) fn interrupted(&self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return true;
        }
        let peeked = self.stream.peek(&mut [0]);
        let blocking = self.stream.set_nonblocking(false);
        let quiet = matches!(&peeked, Err(error) if error.kind() == ErrorKind::WouldBlock);
        !quiet || blocking.is_err()
    }

    /// Ends the body.
    pub(crate) fn last_chunk(&mut self) -> io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n")
    }

    /// Ends the body and waits for the answer.
    pub(crate) fn finish(mut self) -> io::Result<Answer> {
        self.last_chunk()?;
        Answer::read(self.stream)
    }

    /// Reads an answer that came before the end of the body.
    pub(crate) fn answer(self) -> io::Result<Answer> {
        Answer::read(self.stream)
    }
}

impl Answer {
    /// Reads up to the end of the head; interim answers are skipped.
    fn read(stream: TcpStream) -> io::Result<Answer> {
        let mut input = Input { stream, buffer: Vec::new(), taken: 0 };
        loop {
            let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
            let mut response = httparse::Response::new(&mut fields);
            match response.parse(input.rest()) {
                Ok(httparse::Status::Complete(length)) => {
                    let status = response.code.ok_or_else(no_http)?;
                    let framing = Body::of(status, response.headers)?;
                    let retry_after = retry_after(field(response.headers, "retry-after"));
                    let fields = response.headers.iter().map(named).collect();
                    input.taken += length;
                    if status >= 200 {
                        return Ok(Answer { status, retry_after, fields, body: framing, input });
                    }
                }
                Ok(httparse::Status::Partial) if input.rest().len() < HEAD_BYTES_MAX => {
                    input.more()?;
                }
                Ok(httparse::Status::Partial) | Err(_) => return Err(no_http()),
            }
        }
    }

    /// The value of the first field of this name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(&field.1)
    }

    /// Whether the body is a stream of server-sent events.
    pub(crate) fn is_event_stream(&self) -> bool {
        let content_type = self.field("content-type").unwrap_or_default();
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("text/event-stream")
    }

    /// The next bytes of the body, as soon as there are any; empty: the body is complete. A body that breaks off is
    /// an error, if its framing shows it.
    pub(crate) fn piece(&mut self) -> io::Result<&[u8]> {
        let (from, to) = self.body.piece(&mut self.input)?;
        Ok(self.input.buffer.get(from..to).unwrap_or_default())
    }

    /// The body of a short answer.
    pub(crate) fn whole(&mut self) -> io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        loop {
            let piece = self.piece()?;
            if piece.is_empty() {
                return Ok(whole);
            }
            whole.extend_from_slice(piece);
            if whole.len() > ANSWER_BYTES_MAX {
                return Err(no_http());
            }
        }
    }
}

impl Input {
    fn rest(&self) -> &[u8] {
        self.buffer.get(self.taken..).unwrap_or_default()
    }

    /// Waits for more bytes; end of file is an error.
    fn more(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let kept = self.buffer.len();
        self.buffer.resize(kept + READ_BYTES, 0);
        let room = self.buffer.get_mut(kept..).unwrap_or_default();
        let read = read_some(&mut self.stream, room);
        self.buffer.truncate(kept + *read.as_ref().unwrap_or(&0));
        match read? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn read_some(stream: &mut TcpStream, room: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(room) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Systems differ in how they call a timeout.
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            read => return read,
        }
    }
}

fn connect(url: &ServerUrl, silence: Duration) -> io::Result<TcpStream> {
    let mut fault = io::Error::from(ErrorKind::NotFound);
    for address in (url.host.as_str(), url.port).to_socket_addrs()? {
        match open(&address, silence) {
            Ok(stream) => return Ok(stream),
            Err(error) => fault = error,
        }
    }
    Err(fault)
}

fn open(address: &SocketAddr, silence: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(address, millis(CONNECT_MS))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(silence))?;
    stream.set_write_timeout(Some(silence))?;
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(&stream).set_tcp_user_timeout(Some(millis(UNACKNOWLEDGED_MS)))?;
    Ok(stream)
}

/// The first lines of a request, up to the fields that tell of its body.
pub(crate) fn head(url: &ServerUrl, method: &str, path: &str) -> String {
    let agent = concat!("rejoin/", env!("CARGO_PKG_VERSION"));
    let host = &url.authority;
    let token = url.token.as_ref().map(|token| format!("Authorization: Bearer {}\r\n", token.0));
    let token = token.unwrap_or_default();
    format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{token}User-Agent: {agent}\r\nConnection: close\r\n")
}

fn field(fields: &[httparse::Header<'_>], name: &str) -> Option<String> {
    let field = fields.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
    Some(String::from_utf8_lossy(field.value).into_owned())
}

/// A date would need the server's clock: it counts as nothing, as does what is no number.
fn retry_after(value: Option<String>) -> Duration {
    let seconds = value.and_then(|value| value.trim().parse().ok()).unwrap_or(0);
    Duration::from_secs(seconds).min(millis(RETRY_AFTER_MS_MAX))
}

fn named(field: &httparse::Header<'_>) -> (String, String) {
    (field.name.to_owned(), String::from_utf8_lossy(field.value).into_owned())
}

fn no_http() -> io::Error {
    ErrorKind::InvalidData.into()
}
