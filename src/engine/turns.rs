//! Turns: requests that make this server ask an agent. A turn's run is registered first, then its message goes into
//! the history, then its agent starts, as soon as a thread is free.

mod asking;
mod queue;

pub(super) use queue::TurnQueue;

use crate::access::Right;
use crate::engine::conn::{Role, Wait};
use crate::engine::routes::Refusal;
use crate::engine::start::{Starter, Who};
use crate::engine::{Engine, Output};
use crate::http::multipart;
use crate::proto::history::{Job, Opened, Opening, OpeningMessage, RetryPoint, Trigger, Turn};
use crate::proto::id::{ChatId, ConnId, LocalId, RunId, Seq, Ticket};
use crate::proto::parts::Ending;
use crate::proto::registry::RunKey;
use crate::proto::turn::{PromptPart, TurnOrder};
use crate::wire::frame::Flavour;
use crate::wire::reply;
use crate::wire::request::{BadRequest, Start};
use crate::wire::turn::{self, FormPart, TurnRequest};

/// Which request asks for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnRoute {
    Send,
    Steer,
    Retry,
    /// `/chat`: the answer is the stream itself.
    Chat,
    /// `/agui`: as a `RunAgentInput`.
    Agui,
}

impl TurnRoute {
    /// Whether the answer is the run itself.
    pub(super) fn streams(self) -> bool {
        matches!(self, TurnRoute::Chat | TurnRoute::Agui)
    }
}

/// How the sender of a turn is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// With the run's id, once the message is in the history.
    Accepted,
    /// With the run's stream, in this format.
    Stream(Flavour),
}

/// A turn that is asked for.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) request: TurnRequest,
    /// It may take the place of a run that goes on.
    pub(super) steers: bool,
    /// It takes back the turns from this one on, which began with this message.
    pub(super) retries: Option<(u64, Vec<u8>)>,
}

/// A turn whose message is on its way into the history.
#[derive(Debug)]
pub(super) struct Pending {
    /// Who asked for it, unless they left or are answered.
    conn: Option<ConnId>,
    answer: Answer,
    turn: LocalId,
    agent_run: String,
    plan: Box<Plan>,
    /// The user's message.
    message: Option<Vec<u8>>,
}

impl Engine {
    /// A complete request for a turn.
    pub(super) fn turn_requested(
        &mut self,
        id: ConnId,
        route: TurnRoute,
        boundary: Option<&str>,
        body: &[u8],
    ) -> Result<(), Refusal> {
        let request = match (route, boundary) {
            (TurnRoute::Agui, _) => turn::agent_input(body)?,
            (_, None) => turn::turn(body)?,
            (_, Some(boundary)) => read_form(body, boundary)?,
        };
        self.permit(id, Right::Send, &request.chat)?;
        if route.streams() {
            self.permit(id, Right::Observe, &request.chat)?;
        }
        self.check_turn(route, &request)?;
        let answer = match route {
            TurnRoute::Send | TurnRoute::Steer | TurnRoute::Retry => Answer::Accepted,
            TurnRoute::Chat if request.protocol1 && boundary.is_none() => Answer::Stream(Flavour::Post),
            TurnRoute::Chat | TurnRoute::Agui => Answer::Stream(Flavour::Legacy),
        };
        let chat = request.chat.clone();
        let start = Start { trigger: request.trigger, supersede: false };
        let message_index = request.message_index;
        let plan = Plan { request, steers: route == TurnRoute::Steer, retries: None };
        let starter =
            Starter { who: Who::Turn(id, answer), chat: chat.clone(), start, plan: Some(Box::new(plan)) };
        if route == TurnRoute::Retry {
            let ticket = self.ask(id);
            self.retries.insert(ticket, starter);
            self.output(Output::Store(Job::FindRetry { ticket, chat, message_index }));
        } else {
            self.start(starter);
        }
        Ok(())
    }

    fn check_turn(&self, route: TurnRoute, request: &TurnRequest) -> Result<(), Refusal> {
        if self.config.agents.is_empty() {
            let message =
                "this server has no agent; start it with --agent, or push events to /chats/{chat_id}/runs";
            return Err(Refusal::new(503, "no_agent", message));
        }
        if let Some(name) = &request.runtime
            && !self.config.agents.iter().any(|agent| agent.name == *name)
        {
            let known: Vec<&str> = self.config.agents.iter().map(|agent| agent.name.as_str()).collect();
            let message = format!("\"runtime\" must be one of {}, not {name:?}", known.join(", "));
            return Err(Refusal::new(400, "bad_request", message));
        }
        if route != TurnRoute::Retry && request.is_empty() {
            let message = "\"message\" is missing or empty: there is nothing to ask the agent";
            return Err(Refusal::new(400, "empty_message", message));
        }
        Ok(())
    }

    /// The store knows where a conversation can be taken up again.
    pub(super) fn retry_found(&mut self, ticket: Ticket, point: RetryPoint) {
        let starter = self.retries.remove(&ticket);
        let (Some(id), Some(mut starter)) = (self.question_answered(ticket), starter) else { return };
        match point {
            RetryPoint::Turn(turn, message) => {
                if let Some(plan) = &mut starter.plan {
                    plan.retries = Some((turn, message));
                }
                if let Some(conn) = self.conn_mut(id) {
                    conn.role = Role::Answered;
                }
                self.start(starter);
            }
            RetryPoint::Nothing => {
                let message = "the chat has no turn that began with a message: there is nothing to retry";
                self.refuse(id, &Refusal::new(409, "nothing_to_retry", message));
            }
            RetryPoint::NoUserMessage => {
                let message = "\"message_index\" must be the place of a user's message that began a turn, counted from 0";
                self.refuse(id, &Refusal::new(400, "bad_message_index", message));
            }
            RetryPoint::Failed => self.store_failed(id),
        }
    }

    /// A turn's run is registered: its message goes into the history, and with it the partial answer that it
    /// replaces.
    pub(super) fn open_turn(&mut self, key: RunKey, turn: LocalId, starter: Starter, partial: Option<Turn>) {
        let Starter { who: Who::Turn(conn, answer), chat, start, plan: Some(mut plan) } = starter else {
            return;
        };
        let run = self.registry.run(key).id;
        let fresh = self.run_id();
        let message = plan.begin(&format!("{fresh}-user"));
        let retries = plan.retries.as_ref().map(|(turn, _)| *turn);
        let (replaced, stale) = if retries.is_some() { (None, partial) } else { (partial, None) };
        let messages = match &mut plan.request.input {
            Some(input) => std::mem::take(&mut input.messages),
            None => message.iter().cloned().collect(),
        };
        let spoken = match plan.request.input {
            Some(_) => messages.iter().rev().find(|message| turn::is_user_message(&message.json)).cloned(),
            None => message,
        };
        let opening = Opening {
            run,
            chat,
            trigger: start.trigger,
            wall_ms: self.now.wall_ms,
            runtime: plan.request.runtime.clone(),
            runtime_default: self.config.agents.first().map(|agent| agent.name.clone()).unwrap_or_default(),
            replaced,
            drop_from_turn: retries,
            messages,
        };
        self.output(Output::Store(Job::Open(Box::new(opening))));
        if let Some(stale) = stale {
            // Behind the opening, which moves the revision: it will be recorded as skipped.
            self.output(Output::Store(Job::Commit(stale)));
        }
        let message = spoken.map(|message| message.json);
        let agent_run = format!("turn-{fresh}");
        let pending = Pending { conn: Some(conn), answer, turn, agent_run, plan, message };
        self.openings.insert(run, pending);
        if let Some(conn) = self.conn_mut(conn) {
            conn.role = Role::Waiting(Wait::Opening(run));
        }
    }

    /// The store has put a turn's beginning into the history, or could not.
    pub(super) fn opened_turn(&mut self, run: RunId, opened: Option<Opened>) {
        let Some(pending) = self.openings.remove(&run) else { return };
        let key = self.registry.of_id(run);
        let open = key.filter(|key| self.registry.run(*key).state.is_open());
        let Some(opened) = opened else {
            if let Some(conn) = pending.conn {
                self.store_failed(conn);
            }
            if let Some(key) = open {
                let message = "the message could not be stored, so the agent was not asked; try again later";
                self.end_producer(key, Ending::Broken, "store_failed", message);
            }
            return;
        };
        if let Some(conn) = pending.conn {
            self.answer_sender(conn, pending.answer, &pending.plan.request.chat, run, key);
        }
        if let Some(key) = open {
            self.begin_turn(key, pending, opened);
        }
    }

    fn answer_sender(&mut self, id: ConnId, answer: Answer, chat: &ChatId, run: RunId, key: Option<RunKey>) {
        match (answer, key) {
            (Answer::Accepted, _) => self.answer(id, 202, &reply::accepted(chat, run)),
            (Answer::Stream(flavour), Some(key)) => {
                self.attach(id, key, flavour, Seq::ZERO);
                if let Some(observer) = self.observer_mut(id) {
                    observer.stops = flavour == Flavour::Legacy;
                }
                self.send_snapshot(id);
            }
            (Answer::Stream(_), None) => {
                let message = "the turn is over and no longer retained; its answer is in the history";
                self.refuse(id, &Refusal::new(503, "run_gone", message));
            }
        }
    }

    /// A run is about to be cut off: who asked for its turn and wants its stream gets its end there.
    pub(super) fn attach_sender(&mut self, key: RunKey) {
        let run = self.registry.run(key).id;
        if let Some(pending) = self.openings.get_mut(&run)
            && matches!(pending.answer, Answer::Stream(_))
            && let Some(conn) = pending.conn.take()
        {
            let answer = pending.answer;
            let chat = pending.plan.request.chat.clone();
            self.answer_sender(conn, answer, &chat, run, Some(key));
        }
    }

    /// The message is in the history: the agent is asked.
    fn begin_turn(&mut self, key: RunKey, pending: Pending, opened: Opened) {
        let agent = self.config.agents.iter().find(|agent| agent.name == opened.runtime).cloned();
        let Some(agent) = agent else {
            let message = format!(
                "this chat is held with the agent {:?}, which this server does not have any more",
                opened.runtime
            );
            return self.end_producer(key, Ending::Broken, "agent_error", &message);
        };
        let request = &pending.plan.request;
        let mut prompt = pending.message.as_deref().map(turn::prompt).unwrap_or_default();
        if prompt.is_empty() {
            prompt.push(PromptPart::Text(request.unspoken()));
        }
        let run = self.registry.run(key);
        let order = TurnOrder {
            turn: pending.turn,
            run: run.id,
            chat: run.chat.clone(),
            input: request.input(&pending.agent_run, &opened.messages),
            agent_run: pending.agent_run,
            agent,
            prompt,
            has_history: opened.has_history,
        };
        self.enqueue(key, order);
    }

    /// The client of a request that started a turn is gone. In the legacy format that stops the turn.
    pub(super) fn sender_left(&mut self, id: ConnId) {
        let Some(conn) = self.conn(id) else { return };
        let run = match &conn.role {
            Role::Observer(observer) if observer.stops => Some(self.registry.run(observer.run).id),
            Role::Waiting(Wait::Opening(run)) => {
                let legacy = self
                    .openings
                    .get(run)
                    .is_some_and(|pending| pending.answer == Answer::Stream(Flavour::Legacy));
                legacy.then_some(*run)
            }
            Role::Reading
            | Role::Body(_)
            | Role::Push(_)
            | Role::Waiting(_)
            | Role::Observer(_)
            | Role::Bus(_)
            | Role::Control(_)
            | Role::Answered
            | Role::Closing(_)
            | Role::Gone => None,
        };
        if let Some(key) = run.and_then(|run| self.registry.of_id(run))
            && self.registry.run(key).state.is_open()
        {
            self.end_producer(key, Ending::Broken, "stopped", "the client that asked closed its connection");
        }
    }

    pub(super) fn forget_opening(&mut self, id: ConnId, run: RunId) {
        if let Some(pending) = self.openings.get_mut(&run)
            && pending.conn == Some(id)
        {
            pending.conn = None;
        }
    }

    pub(super) fn stop_requested(&mut self, id: ConnId, body: &[u8]) -> Result<(), Refusal> {
        let turn::Stop { chat, reason } = turn::stop(body)?;
        self.permit(id, Right::Send, &chat)?;
        self.evict();
        let key = self.registry.of_chat(&chat).filter(|key| self.registry.run(*key).state.is_open());
        let key =
            key.ok_or_else(|| Refusal::new(404, "no_active_run", "there is no run of this chat to stop"))?;
        let run = self.registry.run(key).id;
        self.end_producer(key, Ending::Broken, "stopped", reason.as_deref().unwrap_or("stopped by the user"));
        self.await_outcome(id, run);
        Ok(())
    }
}

impl Plan {
    /// The message that the turn begins with.
    fn begin(&self, id: &str) -> Option<OpeningMessage> {
        match (&self.retries, &self.request.text) {
            (Some((_, old)), Some(text)) => {
                Some(OpeningMessage { id: id.as_bytes().to_vec(), json: turn::edited(old, id, text) })
            }
            (Some((_, old)), None) => {
                Some(OpeningMessage { id: turn::message_id(old).unwrap_or_default(), json: old.clone() })
            }
            (None, _) => self.request.message(id),
        }
    }

    /// Whether it may take the place of a run that goes on, and of one that is being saved.
    pub(super) fn replaces(&self) -> (bool, bool) {
        let heartbeat = self.request.trigger == Trigger::Heartbeat;
        (!heartbeat && (self.steers || self.retries.is_some()), !heartbeat && self.retries.is_some())
    }
}

fn read_form(body: &[u8], boundary: &str) -> Result<TurnRequest, Refusal> {
    let parts = multipart::parts(body, boundary).map_err(|fault| BadRequest(fault.to_string()))?;
    let parts: Vec<FormPart<'_>> = parts
        .iter()
        .map(|part| FormPart {
            name: &part.name,
            file_name: part.file_name.as_deref(),
            media_type: part.content_type.as_deref(),
            bytes: part.bytes,
        })
        .collect();
    Ok(turn::form(&parts)?)
}
