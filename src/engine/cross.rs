//! Requests across origins: whose pages may use this server, and what browsers are told about it. A browser sends a
//! request of any page to any server, and says with `Origin` which page it was; whoever is no browser sends none.

use crate::engine::Engine;
use crate::engine::routes::Refusal;
use crate::http::head::{Head, Method};
use crate::http::origin::{Origin, REQUEST_HEADERS};
use crate::limits::PREFLIGHT_AGE_S;
use crate::proto::id::ConnId;

/// Whose page makes a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// The server's own, or none.
    Own,
    /// One that the operator lets use this server.
    Allowed(Origin),
    /// Any other.
    Foreign,
}

/// Finds out whose page makes a request.
pub(super) fn caller(head: &Head, origins: &[Origin]) -> Caller {
    let Some(text) = head.origin.as_deref() else { return Caller::Own };
    let Ok(origin) = Origin::parse(text) else { return Caller::Foreign };
    if origins.contains(&origin) {
        return Caller::Allowed(origin);
    }
    if head.host.as_deref().is_some_and(|host| origin.is_of(host)) { Caller::Own } else { Caller::Foreign }
}

/// Whether a browser asks on behalf of a page what the page may ask.
pub(super) fn is_preflight(head: &Head) -> bool {
    head.method == Method::Options && head.origin.is_some() && head.preflight_method.is_some()
}

/// What a page of another origin is told.
pub(super) fn refusal(head: &Head) -> Refusal {
    let origin = head.origin.as_deref().unwrap_or_default();
    let host = head.host.as_deref().unwrap_or_default();
    let message = format!(
        "pages of {origin:?} may not use this server, which is asked as {host:?} here; start it with --allow-origin, \
         or let the proxy in front pass the Host header on"
    );
    Refusal::new(403, "cross_origin", message)
}

impl Engine {
    /// Answers `OPTIONS`: the methods of a resource, and to a browser also what a page may send with them.
    pub(super) fn answer_methods(&mut self, id: ConnId, methods: &'static str, preflight: bool) {
        let age = PREFLIGHT_AGE_S.to_string();
        let fields = [
            ("Allow", methods),
            ("Access-Control-Allow-Methods", methods),
            ("Access-Control-Allow-Headers", REQUEST_HEADERS),
            ("Access-Control-Max-Age", &age),
            ("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers"),
        ];
        let is_allowed = self.conn(id).is_some_and(|conn| conn.origin.is_some());
        self.answer_fields(id, 204, b"", if preflight && is_allowed { &fields } else { &fields[..1] });
    }
}
