//! One turn: from a process, new or kept, to the agent's answer.
//!
//! Everything that happens meanwhile comes from two channels, the agent's lines and what the thread is told; the turn
//! waits for both at once, and for the agent's silence.

use std::borrow::Cow;
use std::time::Duration;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{self as acp, AGENT_METHOD_NAMES, CLIENT_METHOD_NAMES};
use crossbeam_channel::{TryRecvError, after, never, select};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::TurnEnd;
use super::events::{Custom, Event, RunResult};
use super::failure::Failure;
use super::mapping::Mapper;
use super::process::Output;
use super::prompt;
use super::questions::{Questions, no_form, no_permission};
use super::rpc::{self, Incoming};
use super::session::{AcpSession, Opened};
use crate::turns::sink::{Cancelled, TurnSink};
use crate::turns::{Question, TurnControl, TurnMessage, TurnOrder};

/// An agent that was told to cancel has this long to end its turn; then it is killed.
const CANCEL: Duration = Duration::from_secs(2);

/// Lines taken from an agent before its next turn, of what it said between turns: one that talks without end can't keep
/// the turn from beginning.
const STALE_LINES_MAX: usize = 1024;

/// Characters of a line that is no message, in the log.
const LOGGED_CHARS: usize = 200;

/// Why a turn ends before its answer is complete.
#[derive(Debug)]
pub(super) enum Stop {
    /// It was cancelled.
    Cancelled,
    /// It went wrong.
    Failed(Failure),
}

impl From<Cancelled> for Stop {
    fn from(_: Cancelled) -> Stop {
        Stop::Cancelled
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

/// How far the turn is, which decides what becomes of what the agent says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No prompt was sent: what is said belongs to the past.
    Opening,
    /// The prompt was sent: what is said is the answer.
    Answering,
    /// The turn was cancelled: what is said does not count.
    Cancelling,
}

/// What an agent answered to a request.
type Answer = Result<Box<RawValue>, acp::Error>;

/// What came first.
enum Heard {
    Line(Vec<u8>),
    Told(TurnControl),
}

/// A turn under way.
pub(super) struct Turn<'a> {
    order: &'a TurnOrder,
    sink: &'a mut TurnSink,
    phase: Phase,
    mapper: Mapper,
    questions: Questions,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Notice<'a> {
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    #[serde(borrow)]
    update: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Finished {
    stop_reason: Box<RawValue>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(order: &'a TurnOrder, sink: &'a mut TurnSink) -> Turn<'a> {
        let (mapper, questions) = (Mapper::new(&order.agent_run), Questions::default());
        Turn { order, sink, phase: Phase::Opening, mapper, questions }
    }

    /// Runs the turn; `end` is what is there for the chat's next one, however this one ends.
    pub(super) fn run(&mut self, end: &mut TurnEnd) -> Result<(), Stop> {
        let (thread_id, run_id) = (self.order.chat.as_str(), &*self.order.agent_run);
        self.show(vec![Event::RunStarted { thread_id, run_id }.json()])?;
        let had_session = end.session.is_some() || end.remembered.is_some() || self.order.has_history;
        let mut session = match self.keep(end)? {
            Some(session) => session,
            None => self.open(end, had_session)?,
        };
        let asked = self.prompt(&mut session);
        let keeps = match &asked {
            Ok(()) => true,
            Err(Stop::Cancelled) => self.wind_down(&mut session),
            Err(Stop::Failed(failure)) => failure.spares_session(),
        };
        if matches!(&asked, Err(Stop::Failed(failure)) if failure.forgets_session()) {
            end.remembered = None;
        }
        end.session = keeps.then_some(session);
        asked
    }

    /// The chat's session, if it can go on.
    fn keep(&mut self, end: &mut TurnEnd) -> Result<Option<AcpSession>, Stop> {
        let Some(mut session) = end.session.take() else { return Ok(None) };
        if session.agent != self.order.agent {
            end.remembered = None; // Another agent knows nothing of it.
            return Ok(None);
        }
        if !session.is_alive() || session.opened.is_none() {
            return Ok(None);
        }
        match self.settle(&mut session) {
            Ok(can_go_on) => Ok(can_go_on.then_some(session)),
            Err(stop) => {
                end.session = Some(session);
                Err(stop)
            }
        }
    }

    /// Takes what an agent said since its last turn off its pipe. Whether it can go on.
    fn settle(&mut self, session: &mut AcpSession) -> Result<bool, Stop> {
        for _ in 0..STALE_LINES_MAX {
            match session.output().try_recv() {
                Ok(Output::Line(line)) => drop(self.take(session, &line, None)?),
                Err(TryRecvError::Empty) => break,
                Ok(Output::TooLong) | Err(TryRecvError::Disconnected) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Starts a process and opens the conversation in it: the one that is remembered, or a new one.
    fn open(&mut self, end: &mut TurnEnd, had_session: bool) -> Result<AcpSession, Stop> {
        let mut session = AcpSession::start(&self.order.agent)?;
        let initialized: acp::InitializeResponse =
            self.call(&mut session, AGENT_METHOD_NAMES.initialize, &introduction())?;
        if initialized.protocol_version != ProtocolVersion::V1 {
            return Err(Failure::Version(initialized.protocol_version.as_u16()).into());
        }
        let can = initialized.agent_capabilities;
        let remembered = end.remembered.clone().filter(|_| can.load_session);
        let loaded = match remembered {
            Some(id) => self.load(&mut session, id.into())?,
            None => None,
        };
        let is_new = loaded.is_none();
        let id = match loaded {
            Some(id) => id,
            None => {
                let request = acp::NewSessionRequest::new(&*session.folder);
                let method = AGENT_METHOD_NAMES.session_new;
                self.call::<acp::NewSessionResponse>(&mut session, method, &request)?.session_id
            }
        };
        end.remembered = Some(id.to_string());
        if is_new && had_session {
            let value = Custom::Reset { session_id: &id.0 };
            self.show(vec![Event::Custom { name: "acp.session_reset", value }.json()])?;
        }
        session.opened = Some(Opened { id, can: can.prompt_capabilities });
        Ok(session)
    }

    /// Loads a conversation; none if the agent does not know it any more.
    fn load(&mut self, session: &mut AcpSession, id: acp::SessionId) -> Result<Option<acp::SessionId>, Stop> {
        let request = acp::LoadSessionRequest::new(id.clone(), &*session.folder);
        let method = AGENT_METHOD_NAMES.session_load;
        let sent = session.request(method, &request);
        match self.answer_to(session, sent)? {
            Ok(_) => Ok(Some(id)),
            Err(error) => match Failure::refused(method, error) {
                Failure::Refused { error, .. } => {
                    tracing::info!(agent = session.agent.name, %id, "session not loaded: {}", error.message);
                    Ok(None)
                }
                failure => Err(failure.into()),
            },
        }
    }

    /// Asks, and passes on the answer to its end.
    fn prompt(&mut self, session: &mut AcpSession) -> Result<(), Stop> {
        let Some(Opened { id, can }) = session.opened.clone() else {
            unreachable!("a session is prompted only when it is open")
        };
        self.phase = Phase::Answering;
        let request = acp::PromptRequest::new(id, prompt::blocks(&self.order.prompt, &can));
        let finished: Finished = self.call(session, AGENT_METHOD_NAMES.session_prompt, &request)?;
        for line in self.questions.close() {
            session.send(line);
        }
        let mut events = self.mapper.close();
        let (thread_id, run_id) = (self.order.chat.as_str(), &*self.order.agent_run);
        let result = RunResult { stop_reason: &finished.stop_reason };
        events.push(Event::RunFinished { thread_id, run_id, result }.json());
        Ok(self.show(events)?)
    }

    /// After a cancel: lets the agent end its turn. Whether it did.
    fn wind_down(&mut self, session: &mut AcpSession) -> bool {
        let Some(Opened { id, .. }) = &session.opened else { return false };
        // The prompt is the last request that was sent.
        let prompt = session.last_request;
        let cancel = acp::CancelNotification::new(id.clone());
        session.send(rpc::notification(AGENT_METHOD_NAMES.session_cancel, &cancel));
        for line in self.questions.close() {
            session.send(line);
        }
        self.phase = Phase::Cancelling;
        let over = after(CANCEL);
        loop {
            let output = select! {
                recv(session.output()) -> output => output,
                recv(over) -> _ => return false,
            };
            let Ok(Output::Line(line)) = output else { return false };
            match self.take(session, &line, Some(prompt)) {
                Ok(Some(_)) => return true,
                Ok(None) => {}
                Err(_) => return false,
            }
        }
    }

    /// Sends a request and waits for its result.
    fn call<R: DeserializeOwned>(
        &mut self,
        session: &mut AcpSession,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<R, Stop> {
        let sent = session.request(method, params);
        let result = self.answer_to(session, sent)?.map_err(|error| Failure::refused(method, error))?;
        let read = serde_json::from_str(result.get());
        Ok(read.map_err(|fault| Failure::BadAnswer { method, fault: fault.to_string() })?)
    }

    /// Waits for the answer to a request, and meanwhile sees to everything else.
    fn answer_to(&mut self, session: &mut AcpSession, request: u64) -> Result<Answer, Stop> {
        loop {
            match self.hear(session)? {
                Heard::Line(line) => {
                    if let Some(answer) = self.take(session, &line, Some(request))? {
                        return Ok(answer);
                    }
                }
                Heard::Told(TurnControl::Cancel) => return Err(Stop::Cancelled),
                Heard::Told(TurnControl::Answer { request, answer }) => {
                    if let Some(line) = self.questions.answer(&request, &answer) {
                        session.send(line);
                    }
                }
            }
        }
    }

    /// Waits for whatever comes first.
    fn hear(&self, session: &mut AcpSession) -> Result<Heard, Stop> {
        let silence_ms = self.order.agent.silence_ms;
        // While a person is asked, it is not the agent that is silent.
        let silence =
            if self.questions.are_open() { never() } else { after(Duration::from_millis(silence_ms)) };
        let output = select! {
            recv(session.output()) -> output => output,
            recv(self.sink.control()) -> told => return Ok(Heard::Told(told.unwrap_or(TurnControl::Cancel))),
            recv(silence) -> _ => return Err(Failure::Silent(silence_ms).into()),
        };
        match output {
            Ok(Output::Line(line)) => Ok(Heard::Line(line)),
            Ok(Output::TooLong) => Err(Failure::LineTooLong.into()),
            Err(_) => Err(Failure::Died(session.farewell()).into()),
        }
    }

    /// Takes a line of the agent; what it holds, if it answers `awaited`.
    fn take(
        &mut self,
        session: &mut AcpSession,
        line: &[u8],
        awaited: Option<u64>,
    ) -> Result<Option<Answer>, Stop> {
        let Some(message) = std::str::from_utf8(line).ok().and_then(Incoming::read) else {
            skip(&session.agent.name, line);
            return Ok(None);
        };
        match message {
            Incoming::Response { id, outcome } => {
                let is_awaited = awaited.is_some_and(|awaited| id.get() == awaited.to_string());
                return Ok(is_awaited.then(|| outcome.map(RawValue::to_owned)));
            }
            Incoming::Notification { method, params } => {
                if method == CLIENT_METHOD_NAMES.session_update {
                    self.update(session, params)?;
                }
            }
            Incoming::Request { id, method, params } => self.serve(session, id, &method, params)?,
        }
        Ok(None)
    }

    /// Shows an update, if it belongs here.
    fn update(&mut self, session: &AcpSession, params: &RawValue) -> Result<(), Cancelled> {
        let Ok(Notice { session_id, update }) = serde_json::from_str(params.get()) else {
            skip(&session.agent.name, params.get().as_bytes());
            return Ok(());
        };
        if session.last_session_id().is_some_and(|own| own != session_id) {
            return Ok(());
        }
        let events = match self.phase {
            Phase::Opening => Mapper::state_update(update),
            Phase::Answering => self.mapper.update(update),
            Phase::Cancelling => return Ok(()),
        };
        self.show(events)
    }

    /// Answers a request of the agent, or makes it a question.
    fn serve(
        &mut self,
        session: &AcpSession,
        id: &RawValue,
        method: &str,
        params: &RawValue,
    ) -> Result<(), Cancelled> {
        let is_permission = method == CLIENT_METHOD_NAMES.session_request_permission;
        if !is_permission && method != CLIENT_METHOD_NAMES.elicitation_create {
            session.send(rpc::error(id, &acp::Error::method_not_found()));
            return Ok(());
        }
        if self.phase != Phase::Answering {
            session.send(if is_permission { no_permission(id) } else { no_form(id) });
            return Ok(());
        }
        let question = if is_permission {
            self.questions.permission(id, params)
        } else {
            self.questions.form(id, params)
        };
        match question {
            Some(question) => self.ask(question),
            None => {
                session.send(rpc::error(id, &acp::Error::invalid_params()));
                Ok(())
            }
        }
    }

    fn ask(&mut self, question: Question) -> Result<(), Cancelled> {
        self.sink.send(TurnMessage::Ask(question))
    }

    fn show(&mut self, events: Vec<Vec<u8>>) -> Result<(), Cancelled> {
        events.into_iter().try_for_each(|event| self.sink.send(TurnMessage::Event(event)))
    }
}

/// What an agent is told about this side.
fn introduction() -> acp::InitializeRequest {
    let forms = acp::ElicitationCapabilities::new().form(acp::ElicitationFormCapabilities::new());
    acp::InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(acp::ClientCapabilities::new().elicitation(forms))
        .client_info(acp::Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")))
}

/// A line that is no message, such as a greeting that was meant for a terminal.
fn skip(agent: &str, line: &[u8]) {
    if !line.trim_ascii().is_empty() {
        let start: String = String::from_utf8_lossy(line).chars().take(LOGGED_CHARS).collect();
        tracing::warn!(agent, "skipped a line that is no ACP message: {start}");
    }
}
