//! A server that does what a script says, one connection after another, and a proxy that cuts connections.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use rejoin::client::ServerUrl;

/// What the server does with one connection.
pub enum Reply {
    /// Reads the whole request, answers, closes.
    Answer(String),
    /// Reads the head, answers, then reads until the client closes.
    Early(String),
    /// Reads the head and this many lines that are events, then closes without an answer.
    CutAfter(usize),
    /// Reads the whole request and closes without an answer.
    Swallow,
}

/// A request as the server got it.
#[derive(Debug)]
pub struct Got {
    pub line: String,
    pub body: String,
}

pub struct Fake {
    pub url: String,
    script: JoinHandle<Vec<Got>>,
}

impl Fake {
    /// Serves exactly these connections, in this order.
    pub fn start(replies: Vec<Reply>) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let script = std::thread::spawn(move || {
            replies.into_iter().map(|reply| serve(listener.accept().unwrap().0, reply)).collect()
        });
        Fake { url, script }
    }

    pub fn server_url(&self) -> ServerUrl {
        ServerUrl::parse(&self.url).unwrap()
    }

    /// The requests, once all connections of the script were made.
    pub fn requests(self) -> Vec<Got> {
        self.script.join().unwrap()
    }
}

fn serve(mut stream: TcpStream, reply: Reply) -> Got {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let framing = read_fields(&mut reader);
    let mut got = Got { line: line.trim_end().trim_end_matches(" HTTP/1.1").to_owned(), body: String::new() };
    match reply {
        Reply::Answer(answer) => {
            got.body = read_body(&mut reader, framing, usize::MAX);
            stream.write_all(answer.as_bytes()).unwrap();
        }
        Reply::Early(answer) => {
            stream.write_all(answer.as_bytes()).unwrap();
            // Whether the client notices the answer before or after its next bytes must not matter.
            let _ = reader.read_to_end(&mut Vec::new());
        }
        Reply::CutAfter(events) => got.body = read_body(&mut reader, framing, events),
        Reply::Swallow => got.body = read_body(&mut reader, framing, usize::MAX),
    }
    got
}

#[derive(Clone, Copy)]
enum Framing {
    Length(usize),
    Chunked,
}

fn read_fields(reader: &mut impl BufRead) -> Framing {
    let mut framing = Framing::Length(0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            None => return framing,
            Some(("Content-Length", length)) => framing = Framing::Length(length.parse().unwrap()),
            Some(("Transfer-Encoding", "chunked")) => framing = Framing::Chunked,
            Some(_) => {}
        }
    }
}

fn read_body(reader: &mut impl BufRead, framing: Framing, events_max: usize) -> String {
    let mut body = Vec::new();
    let events = |body: &[u8]| body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    if let Framing::Length(length) = framing {
        body.resize(length, 0);
        reader.read_exact(&mut body).unwrap();
    }
    while let Framing::Chunked = framing {
        if events(&body) >= events_max {
            break;
        }
        let mut size = String::new();
        reader.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk).unwrap();
        body.extend_from_slice(&chunk[..size]);
        if size == 0 {
            break;
        }
    }
    String::from_utf8(body).unwrap().trim_start_matches('\n').to_owned()
}

/// An answer with a body of JSON.
pub fn json(status: u16, body: &str) -> Reply {
    Reply::Answer(json_text(status, body))
}

pub fn json_text(status: u16, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// A refusal as the server words it.
pub fn refusal(code: &str) -> String {
    format!(r#"{{"error":{{"code":"{code}","message":"because of {code}"}}}}"#)
}

/// An answer that is a stream of these bytes, whose last chunk comes only if it is `whole`.
pub fn stream(bytes: &str, whole: bool) -> Reply {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let last = if whole { "0\r\n\r\n" } else { "" };
    Reply::Answer(format!("{head}{:x}\r\n{bytes}\r\n{last}", bytes.len()))
}

/// Which way a proxy counts the bytes after which it cuts.
#[derive(Clone, Copy, PartialEq)]
pub enum Cut {
    Requests,
    Answers,
}

/// A proxy that cuts every connection (but the one that starts a run) after 1,500 to 6,502 bytes. Gives its URL, and counts
/// connections.
pub fn cutting_proxy(upstream: SocketAddr, cut: Cut) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = connections.clone();
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(upstream)) else { return };
            counter.fetch_add(1, Ordering::Relaxed);
            // No two connections are cut at the same place in their bytes.
            let spared = number == 0 && cut == Cut::Requests;
            let bytes = if spared { usize::MAX } else { 1_500 + number * 2_741 % 5_003 };
            let limit = |way| if way == cut { bytes } else { usize::MAX };
            pump(&client, &server, limit(Cut::Requests));
            pump(&server, &client, limit(Cut::Answers));
        }
    });
    (url, connections)
}

fn pump(from: &TcpStream, to: &TcpStream, mut left: usize) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    std::thread::spawn(move || {
        let mut buffer = [0; 1_000];
        while left > 0 {
            let room = buffer.len().min(left);
            let Ok(length @ 1..) = from.read(&mut buffer[..room]) else { break };
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
            left -= length;
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
}
