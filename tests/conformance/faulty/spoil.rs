//! What each fault does to a request and to an answer that is no stream.

use std::sync::atomic::{AtomicBool, Ordering};

use super::stream::Stream;
use super::{Fault, Request};
use crate::server::Head;

/// Spoils what goes through a relay.
pub(super) struct Spoiler {
    fault: Option<Fault>,
    /// Whether the history was asked for.
    asked: AtomicBool,
}

impl Spoiler {
    pub(super) fn new(fault: Option<Fault>) -> Spoiler {
        Spoiler { fault, asked: AtomicBool::new(false) }
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    pub(super) fn holds_bodies(&self) -> bool {
        self.is(Fault::HoldsBodiesBack)
    }

    pub(super) fn keeps_dead_observers(&self) -> bool {
        self.is(Fault::KeepsDeadObservers)
    }

    pub(super) fn request(&self, request: &mut Request) {
        match self.fault {
            Some(Fault::IgnoresWaitMs) => request.replace_in_body("wait_ms", "wait_not"),
            Some(Fault::LetsOnlyPostWait) => request.line = request.line.replace("wait_ms", "wait_not"),
            Some(Fault::IgnoresFromSeq) => request.line = request.line.replace("from_seq", "from"),
            Some(Fault::IgnoresLastEventId) => request.fields.retain(|(name, _)| name != "Last-Event-ID"),
            Some(Fault::TakesAnEndForGarbage) => {
                for (_, value) in &mut request.fields {
                    *value = value.replace(":end", ":garbage");
                }
            }
            // The relay takes away the event that is asked for too much.
            Some(Fault::HasASmallerWindow) => {
                if let Some((_, after @ 1..)) = request.cursor() {
                    let earlier = format!("\"after_seq\":{}", after - 1);
                    request.replace_in_body(&format!("\"after_seq\":{after}"), &earlier);
                }
            }
            _ => {}
        }
    }

    /// An answer that is no stream.
    pub(super) fn answer(&self, request: &Request, head: &Head, body: &[u8]) -> Vec<u8> {
        let mut body = String::from_utf8_lossy(body).into_owned();
        let mut status = head.status;
        let mut kind = head.field("Content-Type").unwrap_or("application/json");
        match self.fault {
            Some(Fault::AnswersNothingWith200) if status == 204 => {
                (status, kind) = (200, "text/event-stream")
            }
            Some(Fault::TellsErrorsInBareText) if status >= 400 => body = "that was wrong".to_owned(),
            Some(Fault::TakesNonsense) if status == 400 => (status, body) = (204, String::new()),
            Some(Fault::MiscountsLines) => body = body.replace("\"line\":3", "\"line\":2"),
            // The first who asks is told that there is nothing.
            Some(Fault::SavesAfterTheEnd)
                if request.line.starts_with("GET /chats/") && !self.asked.swap(true, Ordering::Relaxed) =>
            {
                (status, body) = (404, "{}".to_owned());
            }
            _ => {}
        }
        let length =
            if status == 204 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let allow = head.field("Allow").map_or(String::new(), |allow| format!("Allow: {allow}\r\n"));
        format!("HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n{allow}{length}\r\n{body}").into_bytes()
    }

    pub(super) fn stream_head(&self, head: &Head) -> String {
        if self.is(Fault::AllowsCaching) { head.text.replace("no-cache, ", "") } else { head.text.clone() }
    }

    pub(super) fn stream(&self, request: &Request) -> Stream {
        Stream::new(self.fault, request)
    }
}
