//! The ceiling: a bare epoll loop. The first byte of a connection says what it is: `o` observes from now on, `h` from the
//! first line, `p` produces lines for all of them, `c` produces lines that are only split and counted; the count is
//! the answer at its end.

use std::io::{ErrorKind, Read, Write};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

const LISTENER: Token = Token(usize::MAX);

struct Conn {
    stream: TcpStream,
    role: u8,
    /// How much of the log an observer has.
    at: usize,
    /// Lines that were counted.
    lines: u64,
    blocked: bool,
}

/// Serves until it is killed.
pub fn serve() {
    let mut poll = Poll::new().unwrap();
    let mut listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    println!("ceiling listens on {}", listener.local_addr().unwrap());
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE).unwrap();
    let mut events = Events::with_capacity(1024);
    let mut conns: Vec<Option<Conn>> = Vec::new();
    let mut log: Vec<u8> = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        poll.poll(&mut events, None).unwrap();
        let before = log.len();
        let mut writable = Vec::new();
        for event in &events {
            if event.token() == LISTENER {
                accept(&mut listener, &poll, &mut conns);
                continue;
            }
            let slot = &mut conns[event.token().0];
            let Some(conn) = slot else { continue };
            if event.is_writable() {
                conn.blocked = false;
                writable.push(event.token().0);
            }
            if event.is_readable() && !read(conn, &mut log, &mut buffer) {
                *slot = None;
            }
        }
        if log.len() > before {
            conns.iter_mut().flatten().for_each(|conn| write(conn, &log));
        } else {
            writable.into_iter().for_each(|index| conns[index].iter_mut().for_each(|conn| write(conn, &log)));
        }
    }
}

fn accept(listener: &mut TcpListener, poll: &Poll, conns: &mut Vec<Option<Conn>>) {
    while let Ok((mut stream, _)) = listener.accept() {
        stream.set_nodelay(true).unwrap();
        let index = conns.len();
        poll.registry().register(&mut stream, Token(index), Interest::READABLE | Interest::WRITABLE).unwrap();
        conns.push(Some(Conn { stream, role: 0, at: 0, lines: 0, blocked: false }));
    }
}

/// Reads what is there; whether the connection goes on.
fn read(conn: &mut Conn, log: &mut Vec<u8>, buffer: &mut [u8]) -> bool {
    loop {
        let mut bytes: &[u8] = match conn.stream.read(buffer) {
            Ok(0) => {
                let _ = conn.stream.write_all(format!("{}\n", conn.lines).as_bytes());
                return false;
            }
            Ok(count) => &buffer[..count],
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        };
        if conn.role == 0 {
            (conn.role, bytes) = (bytes[0], &bytes[1..]);
            conn.at = if conn.role == b'h' { 0 } else { log.len() };
            if conn.role == b'h' {
                write(conn, log);
            }
        }
        match conn.role {
            b'p' => log.extend_from_slice(bytes),
            b'c' => conn.lines += memchr::memchr_iter(b'\n', bytes).count() as u64,
            _ => {}
        }
    }
}

fn write(conn: &mut Conn, log: &[u8]) {
    while !conn.blocked && matches!(conn.role, b'o' | b'h') && conn.at < log.len() {
        match conn.stream.write(&log[conn.at..]) {
            Ok(count) => conn.at += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => conn.blocked = true,
            Err(_) => conn.at = log.len(),
        }
    }
}
