//! Response heads, and the chunk sizes between pieces of a body, as bytes.
//!
//! What goes into a body is not known here; nor is whether the client can take what the caller chose, except that
//! chunks for an HTTP/1.0 client are a caller's mistake.

use super::date;
use super::head::Version;
use super::origin::{Origin, RESPONSE_HEADERS};

/// Tells a client that waits with `Expect: 100-continue` to send its body.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Ends a chunk's data.
pub const CHUNK_END: &[u8] = b"\r\n";

/// Ends a chunked body: it is complete only with this.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// How the client finds the end of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// After that many bytes (an answer to HEAD tells the length of the body that it leaves out).
    Length(u64),
    /// By the last chunk; HTTP/1.1 only.
    Chunked,
    /// By the end of the connection.
    UntilClose,
    /// There is never a body: 204 and 304.
    None,
}

/// The head of an answer.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// Status code.
    pub status: u16,
    /// The client's version: it decides what must be said about the connection.
    pub version: Version,
    /// Type of the body, if there is one.
    pub content_type: Option<&'a str>,
    /// Where the body ends.
    pub framing: Framing,
    /// When the answer is made, in milliseconds since 1970.
    pub wall_ms: u64,
    /// Whether the connection takes another request afterwards; not with `UntilClose`.
    pub keep_alive: bool,
    /// The page of another origin that may read the answer.
    pub readable_by: Option<&'a Origin>,
    /// More fields, name and value. Control characters in them are blanked, so that no value can forge a field.
    pub extra: &'a [(&'a str, &'a str)],
}

impl ResponseHead<'_> {
    /// Appends the head, up to and with its empty line.
    pub fn write(&self, out: &mut Vec<u8>) {
        debug_assert!(
            self.framing != Framing::Chunked || self.version == Version::Http11,
            "HTTP/1.0 has no chunked coding"
        );
        // A server names its own version, whatever the client's (RFC 9110, section 6.2).
        out.extend_from_slice(b"HTTP/1.1 ");
        write_number(out, self.status.into());
        out.push(b' ');
        out.extend_from_slice(reason(self.status).as_bytes());
        out.extend_from_slice(b"\r\n");
        write_field(out, "Date", &date::format(self.wall_ms));
        if let Some(content_type) = self.content_type {
            write_field(out, "Content-Type", content_type);
        }
        match self.framing {
            Framing::Length(bytes) => {
                out.extend_from_slice(b"Content-Length: ");
                write_number(out, bytes);
                out.extend_from_slice(b"\r\n");
            }
            Framing::Chunked => write_field(out, "Transfer-Encoding", "chunked"),
            Framing::UntilClose | Framing::None => {}
        }
        match (self.keep_alive && self.framing != Framing::UntilClose, self.version) {
            (true, Version::Http11) => {}
            (true, Version::Http10) => write_field(out, "Connection", "keep-alive"),
            (false, _) => write_field(out, "Connection", "close"),
        }
        // A cache must not give one page what was said to another.
        write_field(out, "Vary", "Origin");
        if let Some(origin) = self.readable_by {
            write_field(out, "Access-Control-Allow-Origin", origin.as_str());
            write_field(out, "Access-Control-Expose-Headers", RESPONSE_HEADERS);
        }
        for (name, value) in self.extra {
            write_field(out, name, value);
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends what stands before the data of a chunk of `len` bytes; [`CHUNK_END`] stands behind the data.
pub fn chunk_head(len: usize, out: &mut Vec<u8>) {
    debug_assert!(len > 0, "an empty chunk would end the body");
    let digits = (usize::BITS - len.leading_zeros()).div_ceil(4);
    out.extend((0..digits).rev().filter_map(|digit| HEX.get(len >> (4 * digit) & 0xf)));
    out.extend_from_slice(b"\r\n");
}

/// The digits of a chunk's length.
pub(crate) const HEX: &[u8; 16] = b"0123456789abcdef";

fn write_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn write_field(out: &mut Vec<u8>, name: &str, value: &str) {
    let visible = |byte: u8| if byte.is_ascii_control() { b' ' } else { byte };
    out.extend(name.bytes().map(visible));
    out.extend_from_slice(b": ");
    out.extend(value.bytes().map(visible));
    out.extend_from_slice(b"\r\n");
}

/// The reason phrase of a status: for people only, so an unknown one may be empty.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: ResponseHead, expected: &str) {
        let mut out = b"before".to_vec();
        head.write(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!("before{expected}"));
    }

    #[test]
    fn heads_say_what_the_client_needs() {
        let plain = ResponseHead {
            status: 200,
            version: Version::Http11,
            content_type: Some("application/json"),
            framing: Framing::Length(12),
            wall_ms: 784_111_777_000,
            keep_alive: true,
            readable_by: None,
            extra: &[],
        };
        let none = ResponseHead { status: 204, content_type: None, framing: Framing::None, ..plain };
        let page = Origin::parse("https://a").unwrap();
        let old = ResponseHead { version: Version::Http10, ..plain };
        for (head, expected) in [
            (
                plain,
                "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: application/json\r\nContent-Length: 12\r\nVary: Origin\r\n\r\n",
            ),
            (none, "HTTP/1.1 204 No Content\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nVary: Origin\r\n\r\n"),
            (
                ResponseHead {
                    framing: Framing::Length(u64::MAX),
                    content_type: None,
                    keep_alive: false,
                    ..plain
                },
                "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 18446744073709551615\r\nConnection: close\r\nVary: Origin\r\n\r\n",
            ),
            (
                ResponseHead { framing: Framing::Chunked, content_type: None, ..plain },
                "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nTransfer-Encoding: chunked\r\nVary: Origin\r\n\r\n",
            ),
            (
                old,
                "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\
                 Connection: keep-alive\r\nVary: Origin\r\n\r\n",
            ),
            (
                ResponseHead { framing: Framing::UntilClose, content_type: None, ..old },
                "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: close\r\nVary: Origin\r\n\r\n",
            ),
            (
                ResponseHead { framing: Framing::UntilClose, content_type: None, ..plain },
                "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: close\r\nVary: Origin\r\n\r\n",
            ),
            (
                ResponseHead {
                    status: 299,
                    readable_by: Some(&page),
                    extra: &[("X", "a\r\nSet-Cookie: é")],
                    ..none
                },
                "HTTP/1.1 299 \r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nVary: Origin\r\n\
                 Access-Control-Allow-Origin: https://a\r\nAccess-Control-Expose-Headers: Retry-After, WWW-Authenticate\r\n\
                 X: a  Set-Cookie: é\r\n\r\n",
            ),
        ] {
            check(head, expected);
        }
    }

    #[test]
    fn chunk_sizes_are_hex() {
        for len in [1, 9, 10, 15, 16, 255, 256, 0xabcde, usize::MAX] {
            let mut out = Vec::new();
            chunk_head(len, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{len:x}\r\n"));
        }
    }

    #[test]
    fn every_status_that_is_spoken_here_has_a_reason() {
        for status in
            [200, 201, 202, 204, 400, 401, 404, 405, 409, 413, 414, 415, 417, 421, 431, 501, 503, 505]
        {
            assert!(!reason(status).is_empty(), "{status}");
        }
    }
}
