//! What can go wrong with an AG-UI agent, and how a person is told. A message names the agent and its host: never a
//! path, which may hold a secret, and never a header.

use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::time::Duration;

use ureq::http::{StatusCode, Uri};

use crate::limits::AGENT_CONNECT_MS;
use crate::turns::{Agent, AgentKind};
use crate::wire::body::BodyFault;
use crate::wire::event::EventFault;

/// Why a turn failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The configured url is none.
    Url,
    /// A configured header is none.
    Header,
    /// There is no connection.
    Unreachable(io::Error),
    /// There was no connection in time.
    ConnectTimeout,
    /// TLS went wrong, mostly a certificate.
    Tls(io::Error),
    /// The connection was closed instead of an answer.
    NoAnswer,
    /// The answer is no HTTP, or none that can be read.
    NotHttp(ureq::Error),
    /// The agent sent elsewhere.
    Redirect(StatusCode),
    /// The agent refused.
    Status {
        /// How.
        status: StatusCode,
        /// The beginning of what it said.
        text: String,
    },
    /// The body is compressed, which was not asked for.
    Coding(String),
    /// The body holds something else than events.
    ContentType(Option<String>),
    /// Bytes that are no event.
    Event {
        /// Which, counted from 1.
        number: u64,
        /// Why.
        fault: EventFault,
    },
    /// Bytes that can't be cut into events.
    Body {
        /// The event that was to come, counted from 1.
        number: u64,
        /// Why.
        fault: BodyFault,
    },
    /// The body ended within an event.
    HalfEvent {
        /// Which, counted from 1.
        number: u64,
    },
    /// The connection broke off within the body.
    Cut,
    /// The agent said nothing for too long.
    Silent(Duration),
    /// The system gives no thread.
    Thread(io::Error),
    /// The reading thread is gone without a word.
    Reader,
}

impl Fault {
    /// A call that failed before there was a head.
    pub(super) fn of_call(error: ureq::Error) -> Fault {
        match error {
            ureq::Error::BadUri(_) => Fault::Url,
            ureq::Error::Http(_) => Fault::Header,
            ureq::Error::Timeout(_) => Fault::ConnectTimeout,
            ureq::Error::HostNotFound => Fault::Unreachable(ErrorKind::NotFound.into()),
            ureq::Error::Tls(text) => Fault::Tls(io::Error::other(text)),
            ureq::Error::Rustls(error) => Fault::Tls(io::Error::other(error)),
            ureq::Error::Io(error) => match error.kind() {
                ErrorKind::InvalidData => Fault::Tls(error),
                ErrorKind::UnexpectedEof
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe => Fault::NoAnswer,
                _ => Fault::Unreachable(error),
            },
            error => Fault::NotHttp(error),
        }
    }

    /// A body that can't be read on.
    pub(super) fn of_body(error: io::Error) -> Fault {
        match ureq::Error::from(error) {
            error @ ureq::Error::Protocol(_) => Fault::NotHttp(error),
            _ => Fault::Cut,
        }
    }

    /// The code of the RUN_ERROR.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Fault::Silent(_) | Fault::ConnectTimeout => "timeout",
            _ => "agent_error",
        }
    }

    /// What happened and, where that is known, what to change.
    pub(super) fn message(&self, agent: &Agent) -> String {
        let mut message = format!("The agent {}", agent.name);
        if let Some(host) = host(agent) {
            message += &format!(" at {host}");
        }
        // Writing to a string does not fail.
        let _ = self.tell(&mut message);
        message
    }

    fn tell(&self, out: &mut String) -> std::fmt::Result {
        match self {
            Fault::Url => write!(out, " has no url that can be asked: it must be http://… or https://…"),
            Fault::Header => write!(out, " can't be asked: a configured header is none that HTTP allows"),
            Fault::Unreachable(error) if error.kind() == ErrorKind::ConnectionRefused => {
                write!(out, " refused the connection: is it running?")
            }
            Fault::Unreachable(error) => write!(out, " can't be reached: {error}"),
            Fault::ConnectTimeout => {
                let time = Duration::from_millis(AGENT_CONNECT_MS);
                write!(out, " can't be reached: there was no connection within {time:?}")
            }
            Fault::Tls(error) => {
                let question = "does it speak https, with a certificate that this system trusts?";
                write!(out, " can't be spoken to over TLS ({error}): {question}")
            }
            Fault::NoAnswer => write!(out, " closed the connection without an answer"),
            Fault::NotHttp(error) => write!(out, " does not answer in HTTP that can be read: {error}"),
            Fault::Redirect(status) => {
                write!(out, " answered {status}; redirects are not followed: configure the url it leads to")
            }
            Fault::Status { status, text } if text.is_empty() => write!(out, " answered {status}"),
            Fault::Status { status, text } => write!(out, " answered {status}: {text}"),
            Fault::Coding(coding) => {
                write!(out, " compressed its answer ({coding}), which was not asked for: switch that off")
            }
            Fault::ContentType(None) => {
                write!(out, " answered without a content type; an AG-UI agent answers text/event-stream")
            }
            Fault::ContentType(Some(content_type)) => {
                write!(out, " answered {content_type}; an AG-UI agent answers text/event-stream")
            }
            Fault::Event { number, fault } => {
                write!(out, " sent something that is no event: event {number}: {}", fault.message())
            }
            Fault::Body { number, fault } => {
                write!(out, " sent something that is no event: event {number}: {}", fault.message())
            }
            Fault::HalfEvent { number } => write!(out, " ended its answer in the middle of event {number}"),
            Fault::Cut => write!(out, " broke off in the middle of its answer"),
            Fault::Silent(time) => {
                write!(out, " said nothing for {} s and was given up", time.as_secs_f32())
            }
            Fault::Thread(error) => write!(out, " was not asked: the server can't start a thread: {error}"),
            Fault::Reader => write!(out, " was given up: the server failed while it read the answer"),
        }
    }
}

/// Host and port as they are configured, without user and password.
fn host(agent: &Agent) -> Option<String> {
    let AgentKind::Native { url, .. } = &agent.kind else { return None };
    let url: Uri = url.parse().ok()?;
    let authority = url.authority()?.as_str();
    Some(authority.rsplit('@').next().unwrap_or_default().to_owned())
}
