//! The scripted agent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::PATIENCE;

/// The head of a proper answer.
pub(super) const SSE: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The end of a body in chunks.
pub(super) const LAST: &str = "0\r\n\r\n";

/// An agent that serves one connection.
pub(super) struct Agent<T> {
    /// Its host and port.
    pub(super) host: String,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Agent<T> {
    /// Accepts, and then does something.
    pub(super) fn accepting(act: impl FnOnce(TcpStream) -> T + Send + 'static) -> Agent<T> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let thread = thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            // A second connection would be a second turn: it finds nobody.
            drop(listener);
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            act(stream)
        });
        Agent { host, thread }
    }

    /// Takes the request, and then does something.
    pub(super) fn asked(act: impl FnOnce(TcpStream) -> T + Send + 'static) -> Agent<T> {
        Agent::accepting(move |stream| {
            request(&stream);
            act(stream)
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/agent?key=s3cret", self.host)
    }

    /// What came of it.
    pub(super) fn join(self) -> T {
        self.thread.join().expect("the agent's part of the test")
    }
}

/// Reads a whole request.
pub(super) fn request(stream: impl Read) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "the request is whole");
    }
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    head + std::str::from_utf8(&body).unwrap()
}

/// A chunk of a body.
pub(super) fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// Writes pieces, so that each is likely to be read alone.
pub(super) fn say(stream: &mut impl Write, pieces: &[&[u8]]) {
    for piece in pieces {
        // Who has found a fault does not read on.
        if stream.write_all(piece).is_err() {
            return;
        }
        if pieces.len() > 1 {
            thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Waits until the other side has closed the connection.
pub(super) fn closed(mut stream: &TcpStream) {
    let mut byte = [0];
    match stream.read(&mut byte) {
        Ok(0) => {}
        Ok(_) => panic!("nothing is sent any more"),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
}
