//! The load: many observers and their producers on one thread. Each event carries its number, so that the last number
//! in what an observer has read says how far it is, whatever the server wraps around it.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::peers::Peer;

/// Stands before an event's number and nowhere else.
const MARK: u8 = b'~';

/// Digits of a number.
const DIGITS: usize = 8;

/// What is kept of the end of what was read: a number may come in two pieces.
const TAIL: usize = DIGITS;

/// An event of that number, in JSON of `bytes` bytes.
pub fn event(number: u64, bytes: usize) -> Vec<u8> {
    let head = format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"~{number:08}"#);
    let filler = bytes.saturating_sub(head.len() + 2);
    let mut event = head.into_bytes();
    event.extend((0..filler).map(|at| b"the quick brown fox "[at % 20]));
    event.extend_from_slice(b"\"}");
    event
}

struct Reader {
    stream: TcpStream,
    /// The last number that was seen.
    last: u64,
    tail: Vec<u8>,
    bytes: u64,
}

/// Somebody who only writes; answers are read and dropped.
pub struct Producer {
    stream: TcpStream,
    pending: Vec<u8>,
}

/// The observers of one server.
pub struct Crowd {
    poll: Poll,
    events: Events,
    readers: Vec<Reader>,
    buffer: Vec<u8>,
}

impl Crowd {
    pub fn new() -> Crowd {
        Crowd {
            poll: Poll::new().unwrap(),
            events: Events::with_capacity(1024),
            readers: Vec::new(),
            buffer: vec![0; 256 << 10],
        }
    }

    /// Adds observers; `hello` is what each of them says first.
    pub fn join(&mut self, address: SocketAddr, count: usize, hello: &[u8]) {
        for _ in 0..count {
            let stream = std::net::TcpStream::connect(address).unwrap();
            stream.set_nodelay(true).unwrap();
            (&stream).write_all(hello).unwrap();
            stream.set_nonblocking(true).unwrap();
            let mut stream = TcpStream::from_std(stream);
            self.poll
                .registry()
                .register(&mut stream, Token(self.readers.len()), Interest::READABLE)
                .unwrap();
            self.readers.push(Reader { stream, last: 0, tail: Vec::new(), bytes: 0 });
        }
    }

    /// Drops the connections of `count` observers, the newest first.
    pub fn leave(&mut self, count: usize) {
        for _ in 0..count {
            self.readers.pop();
        }
    }

    /// Reads what has come, waiting up to `timeout` for something.
    pub fn pump(&mut self, timeout: Duration) {
        self.poll.poll(&mut self.events, Some(timeout)).unwrap();
        for event in &self.events {
            if let Some(reader) = self.readers.get_mut(event.token().0) {
                reader.read(&mut self.buffer);
            }
        }
    }

    /// Who is behind all others: the last number that everybody has.
    pub fn least(&self) -> u64 {
        self.readers.iter().map(|reader| reader.last).min().unwrap_or(0)
    }

    pub fn lasts(&self) -> impl Iterator<Item = u64> {
        self.readers.iter().map(|reader| reader.last)
    }

    /// Bytes that all of them were sent.
    pub fn bytes(&self) -> u64 {
        self.readers.iter().map(|reader| reader.bytes).sum()
    }

    pub fn len(&self) -> usize {
        self.readers.len()
    }

    /// Waits until everybody has been answered: attached, subscribed, or whatever the server calls it.
    pub fn settle(&mut self) {
        let until = Instant::now() + Duration::from_millis(300);
        while Instant::now() < until {
            self.pump(Duration::from_millis(20));
        }
    }

    /// Waits until everybody has this number.
    pub fn until(&mut self, number: u64, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        while self.least() < number {
            if Instant::now() > until {
                return false;
            }
            self.pump(Duration::from_millis(50));
        }
        true
    }
}

impl Reader {
    /// Reads all there is.
    fn read(&mut self, buffer: &mut [u8]) {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return,
                Ok(count) => self.take(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Nothing more for now, or for ever: then it never has what is waited for.
                Err(_) => return,
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if !self.tail.is_empty() {
            let seam = [&self.tail[..], &bytes[..bytes.len().min(TAIL)]].concat();
            self.last = last_number(&seam).unwrap_or(self.last).max(self.last);
        }
        if let Some(number) = last_number(bytes) {
            self.last = self.last.max(number);
        }
        let from = bytes.len().saturating_sub(TAIL);
        self.tail.clear();
        self.tail.extend_from_slice(&bytes[from..]);
    }
}

/// The last whole number behind a mark.
fn last_number(bytes: &[u8]) -> Option<u64> {
    memchr::memrchr_iter(MARK, bytes).find_map(|at| {
        let digits = bytes.get(at + 1..at + 1 + DIGITS)?;
        digits.iter().try_fold(0, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'))
        })
    })
}

impl Producer {
    pub fn new(address: SocketAddr, hello: &[u8]) -> Producer {
        let stream = std::net::TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        (&stream).write_all(hello).unwrap();
        stream.set_nonblocking(true).unwrap();
        Producer { stream: TcpStream::from_std(stream), pending: Vec::new() }
    }

    pub fn push(&mut self, peer: &Peer, event: &[u8]) {
        peer.event(event, &mut self.pending);
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Writes what it can; whether all is written.
    pub fn flush(&mut self) -> bool {
        while !self.pending.is_empty() {
            match self.stream.write(&self.pending) {
                Ok(count) => drop(self.pending.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("the producer lost its connection: {error}"),
            }
        }
        self.pending.is_empty()
    }

    /// Reads what the server answered.
    pub fn answers(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut piece = [0; 16 << 10];
        while let Ok(count @ 1..) = self.stream.read(&mut piece) {
            all.extend_from_slice(&piece[..count]);
        }
        all
    }
}
