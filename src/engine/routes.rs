//! Routes: which request is which, before its body is here.

use crate::engine::cross::{self, Caller};
use crate::engine::turns::TurnRoute;
use crate::http::head::{BodyFraming, Head, Method};
use crate::http::multipart;
use crate::page::{self, File};
use crate::proto::id::{ChatId, RunId};
use crate::wire::body::Format;
use crate::wire::request::{self, BadRequest, Live, Start};

/// A request whose head was understood.
#[derive(Debug)]
pub(super) enum Route {
    /// Follow a chat's run; the body says which and how.
    LiveBody,
    /// Follow a chat's run.
    Live(Live),
    /// Follow the event bus.
    Bus { chunks: bool },
    /// Start a run; the body says how.
    Start { chat: ChatId },
    /// Ask an agent; the body says what.
    Turn { route: TurnRoute, boundary: Option<String> },
    /// Stop a chat's run; the body says which.
    Stop,
    /// Answer an agent's question.
    Respond,
    /// Start a run and append the body to it.
    Stream { chat: ChatId, start: Start, format: Format },
    /// Append the body to a run.
    Append { run: RunId, from_seq: Option<u64>, format: Format },
    /// Ask for a run's state.
    RunState { run: RunId },
    /// Follow what a run's producer is told.
    Control { run: RunId },
    /// The producer is done; the body may hold an error.
    Finish { run: RunId },
    /// List chats.
    Chats { after: Option<crate::proto::history::PageMark> },
    /// Read a chat.
    Chat { chat: ChatId, after_turn: u64 },
    /// Delete a chat.
    Delete { chat: ChatId },
    /// Is the server well?
    Health,
    /// Does the server take new work?
    Ready,
    /// How is the server, and which runs does it hold?
    Status,
    /// The server's figures, for a monitoring system.
    Metrics,
    /// A file of the pages, unless the client has it.
    Page(&'static File, bool),
    /// `OPTIONS`: which methods the resource has.
    Methods { methods: &'static str, preflight: bool },
}

impl Route {
    /// Whether it is answered also by a server that takes no new work.
    pub(super) fn is_about_the_server(&self) -> bool {
        matches!(self, Route::Health | Route::Ready | Route::Status | Route::Metrics)
    }
}

/// A refusal that needs no run and no body.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) message: String,
    /// Methods of the resource, for the `Allow` field.
    pub(super) allow: Option<&'static str>,
    /// What a token has to be like, for the `WWW-Authenticate` field.
    pub(super) challenge: Option<&'static str>,
}

impl Refusal {
    pub(super) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { status, code, message: message.into(), allow: None, challenge: None }
    }
}

impl From<BadRequest> for Refusal {
    fn from(BadRequest(message): BadRequest) -> Refusal {
        Refusal::new(400, "bad_request", message)
    }
}

/// Resources with the methods they have.
enum Resource<'a> {
    Live,
    Turn(TurnRoute),
    Stop,
    Respond,
    Bus,
    Runs(&'a str),
    Run(&'a str),
    Events(&'a str),
    Control(&'a str),
    Finish(&'a str),
    Chats,
    Chat(&'a str),
    Health,
    Ready,
    Status,
    Metrics,
    Page(&'static File),
    All,
}

impl Resource<'_> {
    fn methods(&self) -> &'static str {
        match self {
            Resource::Live => "GET, POST, OPTIONS",
            Resource::Bus | Resource::Control(_) => "GET, OPTIONS",
            Resource::Turn(_)
            | Resource::Stop
            | Resource::Respond
            | Resource::Runs(_)
            | Resource::Events(_)
            | Resource::Finish(_) => "POST, OPTIONS",
            Resource::Run(_)
            | Resource::Chats
            | Resource::Health
            | Resource::Ready
            | Resource::Status
            | Resource::Metrics
            | Resource::Page(_) => "GET, HEAD, OPTIONS",
            Resource::Chat(_) => "GET, HEAD, DELETE, OPTIONS",
            Resource::All => "GET, HEAD, POST, DELETE, OPTIONS",
        }
    }
}

/// Finds the route of a request.
pub(super) fn route(head: &Head, hosts: &[String], caller: &Caller) -> Result<Route, Refusal> {
    check_host(head, hosts)?;
    if *caller == Caller::Foreign {
        return Err(cross::refusal(head));
    }
    let resource = resource(head)
        .ok_or_else(|| Refusal::new(404, "not_found", format!("there is nothing at {}", head.path_raw)))?;
    let methods = resource.methods();
    match (head.method, resource) {
        (Method::Options, _) => Ok(Route::Methods { methods, preflight: cross::is_preflight(head) }),
        (Method::Get | Method::Head, Resource::Health) => Ok(Route::Health),
        (Method::Get | Method::Head, Resource::Ready) => Ok(Route::Ready),
        (Method::Get | Method::Head, Resource::Status) => Ok(Route::Status),
        (Method::Get | Method::Head, Resource::Metrics) => Ok(Route::Metrics),
        (Method::Get | Method::Head, Resource::Page(file)) => {
            Ok(Route::Page(file, has_current(head.if_none_match.as_deref(), &file.etag)))
        }
        (Method::Get | Method::Head, Resource::Chats) => {
            Ok(Route::Chats { after: request::chats_page(&head.query)? })
        }
        (Method::Get | Method::Head, Resource::Chat(chat)) => Ok(Route::Chat {
            chat: chat_id(chat)?,
            after_turn: request::chat_page(head.query_value("after_turn"))?,
        }),
        (Method::Delete, Resource::Chat(chat)) => Ok(Route::Delete { chat: chat_id(chat)? }),
        (Method::Get, Resource::Live) => {
            Ok(Route::Live(request::live_query(&head.query, head.last_event_id.as_deref())?))
        }
        (Method::Post, Resource::Live) => needs_json(head).map(|()| Route::LiveBody),
        (Method::Post, Resource::Turn(route)) => {
            let boundary = form_boundary(head, route)?;
            Ok(Route::Turn { route, boundary })
        }
        (Method::Post, Resource::Stop) => needs_json(head).map(|()| Route::Stop),
        (Method::Post, Resource::Respond) => needs_json(head).map(|()| Route::Respond),
        (Method::Get, Resource::Bus) => Ok(Route::Bus { chunks: flag(head, "chunks")? }),
        (Method::Post, Resource::Runs(chat)) => start(head, chat_id(chat)?),
        (Method::Get | Method::Head, Resource::Run(run)) => Ok(Route::RunState { run: run_id(run)? }),
        (Method::Post, Resource::Events(run)) => {
            let format = format(head)?;
            let from_seq = request::from_seq(head.query_value("from_seq"))?;
            Ok(Route::Append { run: run_id(run)?, from_seq, format })
        }
        (Method::Get, Resource::Control(run)) => Ok(Route::Control { run: run_id(run)? }),
        (Method::Post, Resource::Finish(run)) => {
            may_have_json(head)?;
            Ok(Route::Finish { run: run_id(run)? })
        }
        (method, _) => {
            let message = format!("{} is not for {}; use {methods}", method.name(), head.path_raw);
            Err(Refusal { allow: Some(methods), ..Refusal::new(405, "method_not_allowed", message) })
        }
    }
}

fn resource(head: &Head) -> Option<Resource<'_>> {
    let segments: Vec<&str> = head.segments.iter().map(String::as_str).collect();
    Some(match segments.as_slice() {
        [] if head.method == Method::Options => Resource::All,
        ["chat", "live"] => Resource::Live,
        ["chat", "send"] => Resource::Turn(TurnRoute::Send),
        ["chat", "steer-send"] => Resource::Turn(TurnRoute::Steer),
        ["chat", "retry"] => Resource::Turn(TurnRoute::Retry),
        ["chat"] => Resource::Turn(TurnRoute::Chat),
        ["agui"] => Resource::Turn(TurnRoute::Agui),
        ["chat", "stop"] => Resource::Stop,
        ["chat", "respond"] => Resource::Respond,
        ["events", "stream"] => Resource::Bus,
        ["chats"] => Resource::Chats,
        ["chats", chat] => Resource::Chat(chat),
        ["chats", chat, "runs"] => Resource::Runs(chat),
        ["runs", run] => Resource::Run(run),
        ["runs", run, "events"] => Resource::Events(run),
        ["runs", run, "control"] => Resource::Control(run),
        ["runs", run, "finish"] => Resource::Finish(run),
        ["healthz"] => Resource::Health,
        ["readyz"] => Resource::Ready,
        ["status"] => Resource::Status,
        ["metrics"] => Resource::Metrics,
        path => return page::find(path).map(Resource::Page),
    })
}

/// Whether one of the tags of an `If-None-Match` names what there is (RFC 9110, section 13.1.2).
fn has_current(tags: Option<&str>, etag: &str) -> bool {
    let tags = tags.unwrap_or("").split(',').map(str::trim);
    tags.map(|tag| tag.strip_prefix("W/").unwrap_or(tag)).any(|tag| tag == etag || tag == "*")
}

fn start(head: &Head, chat: ChatId) -> Result<Route, Refusal> {
    if flag(head, "stream")? {
        return Ok(Route::Stream { chat, start: request::start_query(&head.query)?, format: format(head)? });
    }
    may_have_json(head)?;
    Ok(Route::Start { chat })
}

fn flag(head: &Head, name: &str) -> Result<bool, Refusal> {
    head.query_value(name).map_or(Ok(false), |value| Ok(request::flag(name, value)?))
}

fn chat_id(text: &str) -> Result<ChatId, Refusal> {
    let message = "a chat id has 1 to 256 bytes of UTF-8 without control characters";
    ChatId::parse(text).ok_or_else(|| Refusal::new(400, "bad_request", message))
}

/// What can't be one of our ids names no run.
fn run_id(text: &str) -> Result<RunId, Refusal> {
    RunId::parse(text).ok_or_else(unknown_run)
}

pub(super) fn unknown_run() -> Refusal {
    Refusal::new(
        404,
        "unknown_run",
        "there is no such run; it may have ended long ago, or the server was restarted",
    )
}

fn media_type(head: &Head) -> &str {
    let full = head.content_type.as_deref().unwrap_or("");
    full.split(';').next().unwrap_or("").trim()
}

/// A page can send text and forms to any server without being asked; only JSON makes the browser ask first.
fn needs_json(head: &Head) -> Result<(), Refusal> {
    if media_type(head).eq_ignore_ascii_case("application/json") {
        return plain_coding(head);
    }
    Err(Refusal::new(415, "unsupported_media_type", "send the body with Content-Type: application/json"))
}

/// A turn's body is JSON or, where files go with it, a form; the form's boundary.
fn form_boundary(head: &Head, route: TurnRoute) -> Result<Option<String>, Refusal> {
    if route == TurnRoute::Agui || !media_type(head).eq_ignore_ascii_case("multipart/form-data") {
        return needs_json(head).map(|()| None);
    }
    plain_coding(head)?;
    let boundary = head.content_type.as_deref().and_then(multipart::boundary);
    let message = "the Content-Type of a form needs its boundary";
    boundary.map(Some).ok_or_else(|| Refusal::new(400, "bad_request", message))
}

fn may_have_json(head: &Head) -> Result<(), Refusal> {
    let empty = matches!(head.body, BodyFraming::None | BodyFraming::Length(0));
    if empty && head.content_type.is_none() { Ok(()) } else { needs_json(head) }
}

fn format(head: &Head) -> Result<Format, Refusal> {
    plain_coding(head)?;
    head.content_type.as_deref().and_then(Format::from_content_type).ok_or_else(|| {
        let message =
            "send events with Content-Type application/x-ndjson, text/event-stream or application/json";
        Refusal::new(415, "unsupported_media_type", message)
    })
}

fn plain_coding(head: &Head) -> Result<(), Refusal> {
    match head.content_encoding.as_deref() {
        None | Some("identity") => Ok(()),
        Some(coding) => {
            let message = format!("bodies are read as they are; send it without Content-Encoding: {coding}");
            Err(Refusal::new(415, "unsupported_media_type", message))
        }
    }
}

/// A page that had its own name resolved to this server counts as same-origin to the browser: only names that the
/// operator knows are served.
fn check_host(head: &Head, hosts: &[String]) -> Result<(), Refusal> {
    let Some(host) = head.host.as_deref() else { return Ok(()) };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let known = ["localhost", "127.0.0.1", "[::1]"].contains(&name.to_ascii_lowercase().as_str())
        || hosts.iter().any(|host| host.eq_ignore_ascii_case(name));
    if known {
        return Ok(());
    }
    let message =
        format!("this server does not answer to {name:?}; start it with --host {name} if it should");
    Err(Refusal::new(421, "misdirected_request", message))
}
