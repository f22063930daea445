//! A request whose body is sent in pieces.

use serde_json::Value;

use crate::server::{Conn, Served};

pub(crate) struct Upload(Conn);

impl Upload {
    pub(crate) fn begin(front: &Served, line: &str) -> Upload {
        let mut conn = front.connect();
        let fields =
            "Host: localhost\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n";
        conn.send(format!("{line} HTTP/1.1\r\n{fields}").as_bytes());
        Upload(conn)
    }

    pub(crate) fn chunk(&mut self, data: &str) {
        self.0.send(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes());
    }

    /// Ends the body; status and answer.
    pub(crate) fn end(mut self) -> (u16, Value) {
        self.0.send(b"0\r\n\r\n");
        let head = self.0.head();
        (head.status, self.0.json(&head))
    }
}
