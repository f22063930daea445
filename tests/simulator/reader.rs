//! What a client makes of the bytes that it gets: an HTTP response reader of its own, which shares nothing with the
//! server's code.

use std::collections::VecDeque;

/// One response.
#[derive(Debug, Default)]
pub struct Response {
    pub status: u16,
    pub chunked: bool,
    pub length: Option<usize>,
    pub close: bool,
    /// The body so far, chunked coding taken off.
    pub body: Vec<u8>,
    /// Body bytes that were handed out as messages.
    taken: usize,
}

/// Reads the responses of one connection.
#[derive(Debug, Default)]
pub struct Reader {
    bytes: Vec<u8>,
    current: Option<Response>,
    pub done: VecDeque<Response>,
    /// Whether a message was incomplete when somebody looked last.
    pub torn: bool,
}

impl Reader {
    /// Takes bytes; an answer that is no HTTP is an error.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.bytes.extend_from_slice(bytes);
        while self.step()? {}
        Ok(())
    }

    /// The response being read.
    pub fn current(&mut self) -> Option<&mut Response> {
        self.current.as_mut()
    }

    /// Somebody has looked.
    pub fn looked(&mut self) {
        let rest = self.current.as_ref().is_some_and(|response| response.taken < response.body.len());
        self.torn = rest || !self.bytes.is_empty();
    }

    /// The connection ended: a body that ends with it is complete.
    pub fn end(&mut self) {
        if let Some(response) =
            self.current.take_if(|response| !response.chunked && response.length.is_none())
        {
            self.done.push_back(response);
        }
    }

    fn step(&mut self) -> Result<bool, String> {
        let Some(response) = &mut self.current else { return self.head() };
        if response.chunked {
            return self.chunk();
        }
        match response.length {
            Some(length) => {
                let take = (length - response.body.len()).min(self.bytes.len());
                response.body.extend(self.bytes.drain(..take));
                if response.body.len() == length {
                    self.done.extend(self.current.take());
                    return Ok(true);
                }
            }
            None => response.body.append(&mut self.bytes),
        }
        Ok(false)
    }

    fn head(&mut self) -> Result<bool, String> {
        let Some(end) = self.bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            let sound =
                self.bytes.is_empty() || b"HTTP/1.1 ".starts_with(&self.bytes[..self.bytes.len().min(9)]);
            return if sound { Ok(false) } else { Err(format!("no response: {:?}", self.text())) };
        };
        let head =
            String::from_utf8(self.bytes.drain(..end + 4).collect()).map_err(|fault| fault.to_string())?;
        let mut lines = head.split("\r\n");
        let status =
            lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).and_then(|rest| rest.get(..3));
        let status =
            status.and_then(|status| status.parse().ok()).ok_or(format!("bad status line: {head:?}"))?;
        let mut response = Response { status, ..Response::default() };
        for line in lines {
            match line.to_ascii_lowercase().split_once(": ") {
                Some(("content-length", value)) => response.length = value.parse().ok(),
                Some(("transfer-encoding", "chunked")) => response.chunked = true,
                Some(("connection", "close")) => response.close = true,
                _ => {}
            }
        }
        match status {
            100 => return Ok(true),
            204 => self.done.push_back(response),
            _ => self.current = Some(response),
        }
        Ok(true)
    }

    fn chunk(&mut self) -> Result<bool, String> {
        let Some(line) = self.bytes.windows(2).position(|window| window == b"\r\n") else { return Ok(false) };
        let size =
            std::str::from_utf8(&self.bytes[..line]).ok().and_then(|hex| usize::from_str_radix(hex, 16).ok());
        let size = size.ok_or_else(|| format!("bad chunk size: {:?}", self.text()))?;
        if self.bytes.len() < line + 2 + size + 2 {
            return Ok(false);
        }
        if &self.bytes[line + 2 + size..line + 4 + size] != b"\r\n" {
            return Err(format!("chunk of {size} bytes does not end: {:?}", self.text()));
        }
        let data: Vec<u8> = self.bytes.drain(..line + 4 + size).skip(line + 2).take(size).collect();
        if size == 0 {
            self.done.extend(self.current.take());
        } else if let Some(response) = &mut self.current {
            response.body.extend(data);
        }
        Ok(true)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(200)]).into_owned()
    }
}

impl Response {
    /// The next whole SSE message: its lines.
    pub fn message(&mut self) -> Option<Vec<String>> {
        let rest = &self.body[self.taken..];
        let end = rest.windows(2).position(|window| window == b"\n\n")?;
        let message = String::from_utf8_lossy(&rest[..end]).lines().map(str::to_owned).collect();
        self.taken += end + 2;
        Some(message)
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or(serde_json::Value::Null)
    }
}
