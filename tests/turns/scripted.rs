//! An AG-UI agent that does exactly what a test says: it remembers what it was asked, and answers with bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// The agent.
pub(crate) struct Scripted {
    pub(crate) url: String,
    /// What it was asked, in order.
    asked: Receiver<Value>,
}

impl Scripted {
    /// Answers every request with this: the head's status line and type, then the body; the connection is closed at the
    /// end, or kept open without another byte.
    pub(crate) fn start(answer: &'static str, hangs: bool) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (sender, asked) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sender = sender.clone();
                thread::spawn(move || serve(stream, &sender, answer, hangs));
            }
        });
        Scripted { url, asked }
    }

    /// What it was asked next.
    pub(crate) fn asked(&self) -> Value {
        self.asked.recv_timeout(Duration::from_secs(20)).expect("it is asked")
    }
}

fn serve(mut stream: TcpStream, asked: &Sender<Value>, answer: &str, hangs: bool) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    // The test may have ended.
    let _ = asked.send(serde_json::from_slice(&body).unwrap());
    let _ = stream.write_all(answer.as_bytes());
    if hangs {
        // Until the other side closes.
        let _ = reader.read_to_end(&mut Vec::new());
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// An answer with these events as SSE.
#[macro_export]
macro_rules! sse {
    ($($event:literal),*) => {
        concat!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
            $("data: ", $event, "\n\n"),*
        )
    };
}
