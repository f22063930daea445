//! The server side of HTTP/1.1 (RFC 9110 and 9112) as pure functions of bytes: requests in, response heads out.
//!
//! This room spells headers and status codes. It knows no run, no JSON and no socket, reads no clock, and never
//! panics on a peer's bytes: what it can't take in becomes a [`Reject`]. It is strict where two parsers could
//! disagree about where a request ends, because that is how requests are smuggled past a proxy.

#![warn(clippy::indexing_slicing, clippy::expect_used)]

mod chunked;
mod date;
pub mod head;
pub mod multipart;
pub mod origin;
pub mod request;
pub mod response;
mod scan;
mod target;
#[cfg(test)]
mod tests;

/// Why a request is refused. After it the connection can't be read as HTTP any more: answer with
/// `Connection: close`, let the client read the answer, close.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Status code of the answer.
    pub status: u16,
    /// A short name of the kind of fault, for programs.
    pub code: &'static str,
    /// What is wrong and what to change, for the person who wrote the client.
    pub message: String,
}

impl Reject {
    fn new(status: u16, code: &'static str, message: impl Into<String>) -> Reject {
        Reject { status, code, message: message.into() }
    }

    fn bad_request(message: impl Into<String>) -> Reject {
        Reject::new(400, "bad_request", message)
    }

    fn body_too_large(message: impl Into<String>) -> Reject {
        Reject::new(413, "body_too_large", message)
    }
}
