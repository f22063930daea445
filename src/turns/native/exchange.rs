//! An *exchange*: one request and its answer, on a thread that may wait for the socket as long as it likes.
//!
//! The thread owns the call and hands over the answer through a bounded channel. The other side hears it, and closes
//! the connection by dropping the exchange: a thread that waits for the socket is woken, one that waits to hand
//! something over sees that nobody takes it. Only a name lookup and the opening of a connection can't be interrupted;
//! nobody waits for a thread that is still in one of them, and it ends when that does ([`AGENT_CONNECT_MS`]).

use std::io::{self, ErrorKind, Read};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use ureq::http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use ureq::http::{HeaderMap, Response, Uri};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::fault::Fault;
use crate::limits::{
    AGENT_CHUNK_BYTES, AGENT_CHUNKS_MAX, AGENT_CONNECT_MS, AGENT_HEAD_BYTES_MAX, AGENT_REFUSAL_CHARS,
    AGENT_STACK_BYTES,
};
use crate::turns::{AgentKind, TurnOrder};
use crate::wire::body::Format;

/// The hearing side.
pub(super) struct Exchange {
    /// The answer: `Head`, any number of `Bytes`, `End`; or `End` alone.
    pub(super) said: Receiver<Said>,
    agent: Agent,
}

/// What the reading thread says.
pub(super) enum Said {
    /// The agent answers with events of this format.
    Head(Format),
    /// Bytes of the body, as soon as they are there; never none.
    Bytes(Vec<u8>),
    /// The body is over, or what is wrong.
    End(Result<(), Fault>),
}

impl Exchange {
    /// Sends the order's input to its agent.
    pub(super) fn begin(order: &TurnOrder, roots: RootCerts) -> Result<Exchange, Fault> {
        let AgentKind::Native { url, headers } = &order.agent.kind else {
            panic!("{} is no AG-UI agent", order.agent.name);
        };
        let agent = agent(roots);
        let call = Call {
            agent: agent.clone(),
            url: url.parse().map_err(|_| Fault::Url)?,
            headers: headers.clone(),
            input: order.input.clone(),
        };
        let (say, said) = bounded(AGENT_CHUNKS_MAX);
        thread::Builder::new()
            // Systems show 15 characters.
            .name(format!("agent {}", order.turn.0))
            .stack_size(AGENT_STACK_BYTES)
            .spawn(move || {
                let end = read(&call, &say);
                // Who has dropped the exchange does not care how it ended.
                let _ = say.send(Said::End(end));
            })
            .map_err(Fault::Thread)?;
        Ok(Exchange { said, agent })
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // Shuts the socket down for both directions, or the one that is still to be opened.
        self.agent.clone().shutdown();
    }
}

/// What the reading thread does.
struct Call {
    agent: Agent,
    url: Uri,
    headers: Vec<(String, String)>,
    input: Vec<u8>,
}

/// A client for one exchange: shutting it down concerns no other. Reading the system's roots for an https agent costs
/// a few milliseconds a turn.
fn agent(roots: RootCerts) -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .user_agent(concat!("rejoin/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(Duration::from_millis(AGENT_CONNECT_MS)))
        .max_response_header_size(AGENT_HEAD_BYTES_MAX)
        .input_buffer_size(2 * AGENT_HEAD_BYTES_MAX)
        .output_buffer_size(AGENT_CHUNK_BYTES)
        .max_idle_connections(0)
        .tls_config(TlsConfig::builder().root_certs(roots).build())
        .build()
        .new_agent()
}

/// Calls, and says what is answered until nobody listens any more.
fn read(call: &Call, say: &Sender<Said>) -> Result<(), Fault> {
    let mut response = call.post()?;
    let format = accept(&mut response)?;
    if say.send(Said::Head(format)).is_err() {
        return Ok(());
    }
    let mut body = response.body_mut().as_reader();
    let mut buffer = vec![0; AGENT_CHUNK_BYTES];
    loop {
        let count = match read_some(&mut body, &mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) => return Err(Fault::of_body(error)),
        };
        if say.send(Said::Bytes(buffer[..count].to_vec())).is_err() {
            return Ok(());
        }
    }
}

impl Call {
    fn post(&self) -> Result<Response<Body>, Fault> {
        let mut request = self.agent.post(&self.url);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        for (name, value) in [(CONTENT_TYPE, "application/json"), (ACCEPT, "text/event-stream")] {
            // What is configured goes before.
            if request.headers_ref().is_some_and(|headers| !headers.contains_key(&name)) {
                request = request.header(name, value);
            }
        }
        request.send(&self.input).map_err(Fault::of_call)
    }
}

/// The format of the events, if the head promises any.
fn accept(response: &mut Response<Body>) -> Result<Format, Fault> {
    let status = response.status();
    if status.is_redirection() {
        return Err(Fault::Redirect(status));
    }
    if !status.is_success() {
        let text = excerpt(&mut response.body_mut().as_reader());
        return Err(Fault::Status { status, text });
    }
    let coding = field(response.headers(), CONTENT_ENCODING).filter(|coding| coding != "identity");
    if let Some(coding) = coding {
        return Err(Fault::Coding(coding));
    }
    let content_type = field(response.headers(), CONTENT_TYPE);
    let format = content_type.as_deref().and_then(Format::from_content_type);
    format.ok_or(Fault::ContentType(content_type))
}

fn field(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The first characters of a refusal on one line, however its body ends. A character has four bytes at most.
fn excerpt(body: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4 * AGENT_REFUSAL_CHARS];
    while bytes.len() < buffer.len() {
        match read_some(body, &mut buffer) {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            Ok(0) | Err(_) => break,
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(AGENT_REFUSAL_CHARS).collect()
}

fn read_some(body: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match body.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}
