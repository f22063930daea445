//! Answers: a status with a JSON body, or the beginning and end of a stream.

use crate::engine::conn::Role;
use crate::engine::routes::Refusal;
use crate::engine::{Close, Engine};
use crate::http::head::Version;
use crate::http::response::{Framing, LAST_CHUNK, ResponseHead};
use crate::page::{self, File};
use crate::proto::id::ConnId;
use crate::wire::frame::{CONTENT_TYPE, Flavour, Form, STREAM_HEADERS};
use crate::wire::{metrics, reply};

const JSON: Option<&str> = Some("application/json");

impl Engine {
    /// Answers with a JSON body.
    pub(super) fn answer(&mut self, id: ConnId, status: u16, body: &[u8]) {
        self.answer_fields(id, status, body, &[]);
    }

    /// Answers without a body: 204.
    pub(super) fn answer_nothing(&mut self, id: ConnId) {
        self.answer_fields(id, 204, b"", &[]);
    }

    /// Answers with a file of the pages; with 304 if the client has it.
    pub(super) fn answer_file(&mut self, id: ConnId, file: &File, known: bool) {
        let extra = [
            ("ETag", file.etag.as_str()),
            ("Cache-Control", "no-cache"),
            ("Content-Security-Policy", page::SECURITY),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
        ];
        match known {
            true => self.answer_typed(id, 304, None, b"", &extra),
            false => self.answer_typed(id, 200, Some(file.content_type), file.bytes, &extra),
        }
    }

    pub(super) fn answer_metrics(&mut self, id: ConnId, body: &[u8]) {
        self.answer_typed(id, 200, Some(metrics::CONTENT_TYPE), body, &[]);
    }

    pub(super) fn refuse(&mut self, id: ConnId, refusal: &Refusal) {
        *self.tallies.refused.entry(refusal.code).or_default() += 1;
        let body = reply::error(refusal.code, &refusal.message);
        // Who is told to come later is told when, and not all the same.
        let later = (refusal.status == 503).then(|| self.retry_after_s().to_string());
        let extra = [
            ("Allow", refusal.allow),
            ("Retry-After", later.as_deref()),
            ("WWW-Authenticate", refusal.challenge),
        ];
        let extra: Vec<_> = extra.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
        self.answer_fields(id, refusal.status, &body, &extra);
    }

    /// Refuses a request of which not everything was read: nothing behind it can be read as a request.
    pub(super) fn refuse_and_close(&mut self, id: ConnId, refusal: &Refusal) {
        if let Some(conn) = self.conn_mut(id) {
            conn.keep_alive = false;
        }
        self.refuse(id, refusal);
    }

    /// As [`Engine::refuse_and_close`], with a body that tells a producer where it stands.
    pub(super) fn answer_and_close(&mut self, id: ConnId, status: u16, body: &[u8]) {
        if let Some(conn) = self.conn_mut(id) {
            conn.keep_alive = false;
        }
        self.answer(id, status, body);
    }

    pub(super) fn answer_fields(&mut self, id: ConnId, status: u16, body: &[u8], extra: &[(&str, &str)]) {
        self.answer_typed(id, status, if status == 204 { None } else { JSON }, body, extra);
    }

    /// Answers; without a type there is no body.
    fn answer_typed(
        &mut self,
        id: ConnId,
        status: u16,
        content_type: Option<&str>,
        body: &[u8],
        extra: &[(&str, &str)],
    ) {
        let framing = if content_type.is_none() { Framing::None } else { Framing::Length(body.len() as u64) };
        self.write_head(id, status, content_type, framing, extra);
        let Some(conn) = self.conn_mut(id) else { return };
        if !conn.head_only {
            conn.out.tail().extend_from_slice(body);
        }
        conn.role = if conn.keep_alive { Role::Answered } else { Role::Closing(Close::Linger) };
        self.mark(id);
    }

    /// Begins a stream; returns the form of its frames.
    pub(super) fn begin_stream_answer(&mut self, id: ConnId, flavour: Flavour) -> Form {
        let Some(conn) = self.conn_mut(id) else { return Form { flavour, chunked: false } };
        let chunked = conn.version == Version::Http11;
        conn.chunked = chunked;
        conn.keep_alive &= chunked;
        let framing = if chunked { Framing::Chunked } else { Framing::UntilClose };
        self.write_head(id, 200, Some(CONTENT_TYPE), framing, &STREAM_HEADERS);
        self.mark(id);
        Form { flavour, chunked }
    }

    /// Writes the head of an answer.
    fn write_head(
        &mut self,
        id: ConnId,
        status: u16,
        content_type: Option<&str>,
        framing: Framing,
        extra: &[(&str, &str)],
    ) {
        let wall_ms = self.now.wall_ms;
        let Some(conn) = self.conn_mut(id) else { return };
        let head = ResponseHead {
            status,
            version: conn.version,
            content_type,
            framing,
            wall_ms,
            keep_alive: conn.keep_alive,
            readable_by: conn.origin.as_ref(),
            extra,
        };
        head.write(conn.out.tail());
    }

    /// Ends a stream properly.
    pub(super) fn end_stream(&mut self, id: ConnId) {
        self.leave(id);
        let Some(conn) = self.conn_mut(id) else { return };
        if conn.chunked {
            conn.out.tail().extend_from_slice(LAST_CHUNK);
        }
        conn.role = Role::Answered;
        self.mark(id);
    }

    /// Ends a stream so that it does not look complete: what was begun is still written, then it is cut.
    pub(super) fn cut_stream(&mut self, id: ConnId) {
        self.leave(id);
        let Some(conn) = self.conn_mut(id) else { return };
        // Without the chunked coding only a reset tells that the end is no end.
        conn.role = Role::Closing(if conn.chunked { Close::Linger } else { Close::Reset });
        self.mark(id);
    }
}
