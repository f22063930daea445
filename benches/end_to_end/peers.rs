//! The servers that are compared, and how one speaks to each.

use std::path::Path;
use std::process::Command;

use crate::args::Args;
use crate::process::{Server, folder, free_port, pinned};

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A bare epoll loop; lines are padded to this many bytes.
    Ceiling(usize),
    Rejoin,
    /// Redis publish/subscribe; a list beside it for the history.
    Redis,
    /// nginx with the nchan module.
    Nchan,
    /// A plain Node server: an array and a set of responses.
    Node,
}

const NODE_SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/node.mjs");

/// Where Debian puts nchan.
const NCHAN_MODULE: &str = "/usr/lib/nginx/modules/ngx_nchan_module.so";

impl Peer {
    pub fn name(self) -> String {
        match self {
            Peer::Ceiling(bytes) => format!("ceiling, {bytes} B"),
            Peer::Rejoin => "rejoin".to_owned(),
            Peer::Redis => "Redis".to_owned(),
            Peer::Nchan => "nchan".to_owned(),
            Peer::Node => "Node".to_owned(),
        }
    }

    /// What has to be installed for it, if it is not there.
    pub fn missing(self) -> Option<&'static str> {
        let has = |program: &str| {
            Command::new("which").arg(program).output().is_ok_and(|found| found.status.success())
        };
        match self {
            Peer::Redis if !has("redis-server") => Some("redis-server"),
            Peer::Nchan if !has("nginx") || !Path::new(NCHAN_MODULE).exists() => {
                Some("nginx libnginx-mod-nchan")
            }
            Peer::Node if !has("node") => Some("nodejs"),
            _ => None,
        }
    }

    pub fn start(self, args: &Args) -> Server {
        let core = args.server_core.as_str();
        let dir = folder("server");
        match self {
            Peer::Ceiling(_) => {
                let mut command = pinned(core, std::env::current_exe().unwrap().to_str().unwrap());
                command.arg("ceiling");
                Server::printing(command, dir)
            }
            Peer::Rejoin => {
                let mut command = pinned(core, &args.rejoin);
                command.args([
                    "serve",
                    "--listen",
                    "127.0.0.1:0",
                    "--db",
                    ":memory:",
                    "--retention-chats",
                    "1000",
                ]);
                Server::printing(command, dir)
            }
            Peer::Node => {
                let mut command = pinned(core, "node");
                command.arg(NODE_SERVER);
                Server::printing(command, dir)
            }
            Peer::Redis => {
                let port = free_port();
                let mut command = pinned(core, "redis-server");
                command.args(["--port", &port.to_string(), "--save", "", "--dir"]).arg(&dir);
                command.args(["--client-output-buffer-limit", "pubsub 0 0 0", "--maxclients", "20000"]);
                Server::on_port(command, port, dir)
            }
            Peer::Nchan => {
                let port = free_port();
                let file = dir.join("nginx.conf");
                std::fs::write(&file, nchan_config(port, &dir)).unwrap();
                let mut command = pinned(core, "nginx");
                command.arg("-c").arg(&file);
                Server::on_port(command, port, dir)
            }
        }
    }

    /// What an observer says who wants what comes from now on.
    pub fn observe(self, chat: &str) -> Vec<u8> {
        match self {
            Peer::Ceiling(_) => b"o".to_vec(),
            Peer::Redis => format!("SUBSCRIBE {chat}\r\n").into_bytes(),
            Peer::Nchan => get(&format!("/new/{chat}"), "Accept: text/event-stream\r\n"),
            Peer::Node => get("/sub", ""),
            Peer::Rejoin => self.with_history(chat),
        }
    }

    /// What an observer says who wants everything, and then what comes.
    pub fn with_history(self, chat: &str) -> Vec<u8> {
        match self {
            Peer::Ceiling(_) => b"h".to_vec(),
            // What a client of this scheme asks first; subscribing comes on top.
            Peer::Redis => format!("LRANGE history-{chat} 0 -1\r\n").into_bytes(),
            Peer::Nchan => get(&format!("/all/{chat}"), "Accept: text/event-stream\r\n"),
            Peer::Node => get("/all", ""),
            Peer::Rejoin => live(chat, ""),
        }
    }

    /// What a producer says before its first event.
    pub fn produce(self, chat: &str) -> Vec<u8> {
        match self {
            Peer::Ceiling(_) => b"p".to_vec(),
            Peer::Redis | Peer::Nchan => Vec::new(),
            Peer::Node => b"POST /pub HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
            Peer::Rejoin => format!(
                "POST /chats/{chat}/runs?stream=1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n\
                 Transfer-Encoding: chunked\r\n\r\n"
            )
            .into_bytes(),
        }
    }

    /// What a producer says to publish an event.
    pub fn event(self, event: &[u8], out: &mut Vec<u8>) {
        match self {
            Peer::Ceiling(bytes) => {
                out.extend_from_slice(event);
                out.extend(std::iter::repeat_n(b' ', bytes.saturating_sub(event.len() + 1)));
                out.push(b'\n');
            }
            Peer::Redis => {
                out.extend_from_slice(
                    format!("*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n${}\r\n", event.len()).as_bytes(),
                );
                out.extend_from_slice(event);
                out.extend_from_slice(b"\r\n");
            }
            Peer::Nchan => {
                let head = format!(
                    "POST /pub/c HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
                    event.len()
                );
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(event);
            }
            Peer::Node | Peer::Rejoin => {
                out.extend_from_slice(format!("{:x}\r\n", event.len() + 1).as_bytes());
                out.extend_from_slice(event);
                out.extend_from_slice(b"\n\r\n");
            }
        }
    }

    /// What a producer says to put an event where [`Peer::with_history`] finds it.
    pub fn keep(self, event: &[u8], out: &mut Vec<u8>) {
        if self == Peer::Redis {
            out.extend_from_slice(
                format!("*3\r\n$5\r\nRPUSH\r\n$9\r\nhistory-c\r\n${}\r\n", event.len()).as_bytes(),
            );
            out.extend_from_slice(event);
            out.extend_from_slice(b"\r\n");
        } else {
            self.event(event, out);
        }
    }
}

fn get(path: &str, fields: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").into_bytes()
}

/// rejoin's request of an observer; `members` continues the body, for a cursor.
pub fn live(chat: &str, members: &str) -> Vec<u8> {
    let body = format!(r#"{{"chat_id":"{chat}","protocol":1,"wait_ms":20000{members}}}"#);
    let length = body.len();
    format!("POST /chat/live HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn nchan_config(port: u16, dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "load_module {NCHAN_MODULE}; daemon off; worker_processes 1; user root; pid {dir}/pid; error_log /dev/null;\n\
         events {{ worker_connections 20000; }}\n\
         http {{ access_log off; client_body_temp_path {dir}/body; keepalive_requests 100000000; tcp_nodelay on;\n\
         nchan_max_reserved_memory 2g;\n\
         server {{ listen 127.0.0.1:{port} backlog=4096;\n\
         location ~ /pub/(.+)$ {{ nchan_publisher; nchan_channel_id $1; nchan_message_buffer_length 20000; nchan_message_timeout 10m; }}\n\
         location ~ /new/(.+)$ {{ nchan_subscriber eventsource; nchan_channel_id $1; nchan_subscriber_first_message newest; }}\n\
         location ~ /all/(.+)$ {{ nchan_subscriber eventsource; nchan_channel_id $1; nchan_subscriber_first_message oldest; }} }} }}\n"
    )
}
