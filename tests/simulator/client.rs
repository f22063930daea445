//! The clients: what each sends, and what it makes of the answers. They are the checker's eyes: what a client can see
//! that is not as the protocol says is a violation.

use serde_json::Value;

use crate::checker::Checker;
use crate::listener::Listener;
use crate::observer::Observer;
use crate::producer::Producer;
use crate::reader::{Reader, Response};
use crate::rng::Rng;

/// A client, with or without a connection.
#[derive(Debug)]
pub enum Client {
    /// Sees everything: the bus with chunks, never slow, never cut.
    Tap,
    Producer(Producer),
    /// A connection that its producer has left without a word: what it sent still arrives.
    Ghost,
    Observer(Observer),
    /// Follows the event bus, and may be slow and be cut.
    Listener(Listener),
    /// One request whose answer only has to be well-formed.
    Once(String),
    /// Wants something of the agent; never sends it twice.
    Sender(Vec<u8>),
    /// Sends what is no HTTP, or only the half of it.
    Garbage(Vec<u8>),
}

/// What a client does with its connection next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Waits.
    Wait,
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Is through with the connection.
    Close,
}

pub fn request(line: &str, version: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{line} HTTP/{version}\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Whether the server gave a request up because not all of it came: to the client it is a lost connection.
fn is_broken_off(response: &Response) -> bool {
    response.status == 408 || response.status == 400 && response.json()["error"]["code"] == "incomplete_body"
}

/// The next message of the bus that is more than a comment.
fn bus_message(response: &mut Response) -> Option<Value> {
    loop {
        let lines = response.message()?;
        if let Some(json) = lines.iter().find_map(|line| line.strip_prefix("data: ")) {
            return Some(serde_json::from_str(json).unwrap_or(Value::Null));
        }
    }
}

impl Client {
    /// The first bytes on a new connection, or nothing if the client is through.
    pub fn connect(&mut self, rng: &mut Rng, now_ms: u64) -> Option<Vec<u8>> {
        match self {
            Client::Tap => Some(b"GET /events/stream?chunks=1 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
            Client::Producer(producer) => producer.next_request(rng),
            Client::Observer(observer) => observer.next_request(now_ms),
            Client::Listener(listener) => listener.request(),
            Client::Ghost => None,
            Client::Once(request) => {
                Some(std::mem::take(request).into_bytes()).filter(|bytes| !bytes.is_empty())
            }
            Client::Garbage(bytes) | Client::Sender(bytes) => {
                Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty())
            }
        }
    }

    /// Looks at what has arrived.
    pub fn look(&mut self, reader: &mut Reader, rng: &mut Rng, checker: &mut Checker) -> Next {
        let next = self.read(reader, rng, checker);
        reader.looked();
        next
    }

    fn read(&mut self, reader: &mut Reader, rng: &mut Rng, checker: &mut Checker) -> Next {
        let torn = reader.torn;
        if let Some(response) = reader.current() {
            self.messages(response, torn, checker);
        }
        let Some(mut response) = reader.done.pop_front() else { return Next::Wait };
        self.messages(&mut response, torn, checker);
        if is_broken_off(&response) {
            return Next::Close;
        }
        match self {
            Client::Producer(producer) => {
                producer.answered(&response, checker);
                if response.close {
                    return Next::Close;
                }
                producer.next_request(rng).map_or(Next::Close, Next::Send)
            }
            Client::Observer(observer) => {
                observer.complete(&response, checker);
                Next::Close
            }
            Client::Tap => Next::Wait,
            Client::Once(_) | Client::Listener(_) => Next::Close,
            Client::Ghost => {
                let known = [200, 201, 400, 404, 408, 409, 413, 503].contains(&response.status);
                checker
                    .require(known, || format!("a producer that left was answered with {}", response.status));
                if response.json()["error"]["code"] == "taken_over" {
                    checker.saw("a producer's old body was given up for its new one");
                }
                Next::Close
            }
            Client::Sender(_) => {
                let body = response.json();
                if response.status == 202 {
                    checker.accepted(body["run_id"].as_str().unwrap_or(""));
                }
                let known = [200, 202, 400, 404, 409, 503].contains(&response.status);
                checker.require(known, || format!("a sender was answered with {}: {body}", response.status));
                Next::Close
            }
            Client::Garbage(_) => {
                checker.require(response.status >= 400, || {
                    format!("garbage was answered with {}", response.status)
                });
                Next::Close
            }
        }
    }

    fn messages(&mut self, response: &mut Response, torn: bool, checker: &mut Checker) {
        match self {
            Client::Observer(observer) if response.status == 200 => {
                observer.messages(response, torn, checker);
            }
            Client::Tap => {
                while let Some(message) = bus_message(response) {
                    checker.tap(&message);
                }
            }
            Client::Listener(listener) if response.status == 200 => {
                while let Some(message) = bus_message(response) {
                    listener.message(&message, checker);
                }
            }
            Client::Observer(_)
            | Client::Listener(_)
            | Client::Producer(_)
            | Client::Ghost
            | Client::Once(_)
            | Client::Sender(_)
            | Client::Garbage(_) => {}
        }
    }
}
