//! Permission: whether whoever makes a request may make it. It is asked before anything is looked up, and where
//! something has to be looked up for it, the answer to who may not is the answer for what is not there.

use crate::access::{Denied, Grant, Right};
use crate::engine::Engine;
use crate::engine::conn::{Role, Wait};
use crate::engine::routes::{Refusal, Route, unknown_run};
use crate::http::head::Head;
use crate::limits::QUERY_TOKEN_MS_MAX;
use crate::proto::id::{ChatId, ConnId, RunId};
use crate::proto::registry::Known;

/// What a request needs.
enum Need<'a> {
    /// Nothing: it tells nothing that is worth anything.
    Nothing,
    /// These rights in the chat that its body names, which is looked at when it is here.
    Somewhere(&'static [Right]),
    /// A right in a chat.
    InChat(Right, &'a ChatId),
    /// To write this run.
    InRun(RunId),
    /// A right in all chats.
    Everywhere(Right),
    Administration,
}

impl Route {
    fn need(&self) -> Need<'_> {
        match self {
            Route::Health | Route::Ready | Route::Page(..) | Route::Methods { .. } => Need::Nothing,
            Route::LiveBody => Need::Somewhere(&[Right::Observe]),
            Route::Turn { route, .. } if route.streams() => Need::Somewhere(&[Right::Send, Right::Observe]),
            Route::Turn { .. } | Route::Stop => Need::Somewhere(&[Right::Send]),
            Route::Respond => Need::Somewhere(&[Right::Respond]),
            Route::Live(live) => Need::InChat(Right::Observe, &live.chat),
            Route::Start { chat } | Route::Stream { chat, .. } => Need::InChat(Right::Produce, chat),
            Route::Chat { chat, .. } => Need::InChat(Right::History, chat),
            Route::Append { run, .. }
            | Route::RunState { run }
            | Route::Control { run }
            | Route::Finish { run } => Need::InRun(*run),
            Route::Bus { .. } => Need::Everywhere(Right::Observe),
            Route::Chats { .. } => Need::Everywhere(Right::History),
            Route::Delete { .. } | Route::Status | Route::Metrics => Need::Administration,
        }
    }

    /// Whether an EventSource, which can't set headers, may ask for it with a token in the query.
    fn takes_query_token(&self) -> bool {
        matches!(self, Route::Live(_) | Route::Bus { .. })
    }
}

impl Engine {
    /// What whoever makes this request may do, if that is enough for it.
    pub(super) fn admit(&self, head: &Head, route: &Route) -> Result<Grant, Refusal> {
        let need = route.need();
        if self.config.access.is_open() || matches!(need, Need::Nothing) {
            return Ok(Grant::All);
        }
        let grant = self.grant(head, route)?;
        let wanted = match need {
            Need::Nothing => None,
            Need::Somewhere(rights) => rights.iter().find(|right| !grant.has(**right)).copied(),
            Need::InChat(right, chat) => (!grant.covers(right, chat)).then_some(right),
            Need::InRun(_) => (!grant.has(Right::Produce)).then_some(Right::Produce),
            Need::Everywhere(right) if !grant.covers_all_chats(right) => return Err(not_everywhere(right)),
            Need::Everywhere(_) => None,
            Need::Administration if !grant.administers() => return Err(no_administrator()),
            Need::Administration => None,
        };
        match (wanted, need) {
            (Some(right), _) => Err(forbidden(right)),
            (None, Need::InRun(run)) if !self.may_write(&grant, run) => Err(unknown_run()),
            (None, _) => Ok(grant),
        }
    }

    fn grant(&self, head: &Head, route: &Route) -> Result<Grant, Refusal> {
        let wall_ms = self.now.wall_ms;
        let access = &self.config.access;
        let query = head.query_value("token").filter(|_| route.takes_query_token());
        match (bearer(head), query) {
            (None, Some(token)) => {
                let grant = access.grant_jwt(token, wall_ms).map_err(denied)?;
                let short =
                    grant.expires_wall_ms().is_some_and(|expires| expires <= wall_ms + QUERY_TOKEN_MS_MAX);
                let message = "a token in the query may be valid for an hour at most, since addresses get into logs; \
                               make a shorter one, or send it in the Authorization header";
                if short { Ok(grant) } else { Err(unauthorized(message)) }
            }
            (bearer, _) => access.grant(bearer, wall_ms).map_err(denied),
        }
    }

    /// Whether the run, if there is one, is of a chat whose runs may be written.
    fn may_write(&self, grant: &Grant, run: RunId) -> bool {
        grant.covers_all_chats(Right::Produce)
            || match self.registry.known(run) {
                Some(Known::Run(key)) => grant.covers(Right::Produce, &self.registry.run(key).chat),
                Some(Known::Gone(stone)) => grant.covers(Right::Produce, &stone.chat),
                None => false,
            }
    }

    /// Keeps what whoever makes the request being answered may do.
    pub(super) fn note_grant(&mut self, id: ConnId, grant: Grant) {
        let now = self.now;
        let Some(conn) = self.conn_mut(id) else { return };
        let left_ms = grant.expires_wall_ms().map(|expires| expires.saturating_sub(now.wall_ms));
        conn.expires_ms = left_ms.map_or(u64::MAX, |left| now.mono_ms.saturating_add(left));
        conn.grant = grant;
    }

    /// Whether the request may do this in the chat that its body names.
    pub(super) fn permit(&self, id: ConnId, right: Right, chat: &ChatId) -> Result<(), Refusal> {
        let covers = self.conn(id).is_some_and(|conn| conn.grant.covers(right, chat));
        if covers { Ok(()) } else { Err(forbidden(right)) }
    }

    /// Its token is no longer valid: a stream is cut, so that it does not look as if the run had ended; who waits is told.
    pub(super) fn expire(&mut self, id: ConnId) {
        if self.conn(id).is_some_and(|conn| matches!(conn.role, Role::Waiting(Wait::Run(..)))) {
            self.leave(id);
            return self.refuse(id, &unauthorized("the token has expired"));
        }
        self.cut_stream(id);
    }

    /// Whether as many streams as may be are open with this request's token.
    pub(super) fn token_full(&self, id: ConnId) -> bool {
        let token = self.conn(id).and_then(|conn| conn.grant.token());
        let streams = token.and_then(|token| self.holders.get(&token)).copied().unwrap_or(0);
        streams >= self.config.limits.observers_per_token_max && token.is_some()
    }

    /// From now on the request counts among the streams of its token.
    pub(super) fn count_stream(&mut self, id: ConnId) {
        let Some(conn) = self.conn_mut(id) else { return };
        if let Some(token) = conn.grant.token()
            && !std::mem::replace(&mut conn.counted, true)
        {
            *self.holders.entry(token).or_default() += 1;
        }
    }

    pub(super) fn uncount_stream(&mut self, id: ConnId) {
        let Some(conn) = self.conn_mut(id) else { return };
        if !std::mem::take(&mut conn.counted) {
            return;
        }
        let Some(token) = conn.grant.token() else { return };
        if let Some(streams) = self.holders.get_mut(&token) {
            *streams -= 1;
            if *streams == 0 {
                self.holders.remove(&token);
            }
        }
    }
}

/// The token of the Authorization field, if that is what it holds.
fn bearer(head: &Head) -> Option<&str> {
    let (scheme, token) = head.authorization.as_deref()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start())
}

fn denied(denied: Denied) -> Refusal {
    match denied {
        Denied::Invalid(message) => unauthorized(message),
        Denied::Missing => Refusal {
            challenge: Some("Bearer realm=\"rejoin\""),
            ..Refusal::new(401, "unauthorized", "send a token, as in 'Authorization: Bearer TOKEN'")
        },
    }
}

fn unauthorized(message: &str) -> Refusal {
    Refusal {
        challenge: Some("Bearer realm=\"rejoin\", error=\"invalid_token\""),
        ..Refusal::new(401, "invalid_token", message)
    }
}

/// The same for a chat that there is and one that there isn't.
fn forbidden(right: Right) -> Refusal {
    let right = right.name();
    Refusal::new(403, "forbidden", format!("this needs a token with the right {right:?} in the chat"))
}

fn not_everywhere(right: Right) -> Refusal {
    let right = right.name();
    let message = format!(
        "this is about all chats: it needs a token with the right {right:?} and the chat prefix \"\""
    );
    Refusal::new(403, "forbidden", message)
}

fn no_administrator() -> Refusal {
    Refusal::new(403, "forbidden", "this needs a secret of the token file's kind 'admin'")
}
