//! Servers as processes, and what the system says about them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A running server with a folder of its own. Both go when it is dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    dir: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        // What it started (nginx has workers) would live on.
        for pid in self.processes() {
            if let Some(pid) = Pid::from_raw(i32::try_from(pid).unwrap()) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A folder for a server's files.
pub fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("rejoin-bench-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// A port that nobody has, for servers that can't choose one themselves.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A command on the servers' processor.
pub fn pinned(core: &str, program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core, program]);
    command
}

impl Server {
    /// Starts a server that prints its address.
    pub fn printing(mut command: Command, dir: PathBuf) -> Server {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit(['/', ' ']).next().unwrap().parse();
        Server { address: address.unwrap_or_else(|_| panic!("no address: {line:?}")), child, dir }
    }

    /// Starts a server that was told its port.
    pub fn on_port(mut command: Command, port: u16, dir: PathBuf) -> Server {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let until = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < until, "the server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Server { child, address, dir }
    }

    /// The process and what it started.
    fn processes(&self) -> Vec<u32> {
        let mut all = vec![self.child.id()];
        let mut next = 0;
        while let Some(pid) = all.get(next) {
            let children =
                std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
            next += 1;
        }
        all
    }

    /// Resident memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let of = |pid: &u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) << 10
        };
        self.processes().iter().map(of).sum()
    }

    /// Time on a processor so far.
    pub fn cpu(&self) -> Duration {
        let of_thread = |path: PathBuf| {
            let text = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
            text.split_whitespace().next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or(0)
        };
        let of = |pid: &u32| -> u64 {
            let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            threads.map(|thread| of_thread(thread.path())).sum()
        };
        Duration::from_nanos(self.processes().iter().map(of).sum())
    }
}

/// A connection on which one request follows the other.
pub struct Connection {
    stream: TcpStream,
}

impl Connection {
    pub fn new(address: SocketAddr) -> Connection {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Connection { stream }
    }

    /// Sends a request and returns the answer's body; anything but success ends the program.
    pub fn ask(&mut self, request: &[u8]) -> String {
        self.stream.write_all(request).unwrap();
        let (mut text, mut piece) = (String::new(), [0; 16 << 10]);
        loop {
            let count = self.stream.read(&mut piece).unwrap();
            assert!(count > 0, "cut off: {text}");
            text.push_str(std::str::from_utf8(&piece[..count]).unwrap());
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            assert!(head.starts_with("HTTP/1.1 2"), "{text}");
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return body.to_owned();
            }
        }
    }
}

/// A request with a body.
pub fn request(method_and_path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method_and_path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// What rejoin says about itself.
pub fn status(server: &Server) -> serde_json::Value {
    let answer = Connection::new(server.address).ask(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n");
    serde_json::from_str(&answer).unwrap()
}
