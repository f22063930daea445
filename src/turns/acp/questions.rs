//! What an agent asks a person: permissions and forms. Pure: requests in, questions and answers out.

use agent_client_protocol_schema::v1 as acp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::events::{Custom, Event};
use super::mapping::{is_readable, string};
use super::rpc;
use crate::turns::{Decision, Question, QuestionKind};

/// A question that waits for its answer.
#[derive(Debug)]
struct Open {
    /// Its name within the run.
    request: String,
    /// The id of the agent's request.
    id: Box<RawValue>,
    asks: Asks,
}

#[derive(Clone, Copy, Debug)]
enum Asks {
    Permission,
    Form,
}

/// The questions of a turn.
#[derive(Debug, Default)]
pub(super) struct Questions {
    last: u64,
    open: Vec<Open>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionRequest<'a> {
    #[serde(borrow)]
    session_id: &'a RawValue,
    #[serde(borrow)]
    tool_call: &'a RawValue,
    #[serde(borrow)]
    options: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionOption {
    option_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FormRequest<'a> {
    #[serde(borrow)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    mode: &'a RawValue,
    #[serde(borrow)]
    message: &'a RawValue,
    #[serde(borrow)]
    requested_schema: &'a RawValue,
}

/// The schema crate's type takes a form's content apart; here it stays as it was written.
#[derive(Serialize)]
struct AcceptedForm<'a> {
    action: &'static str,
    content: &'a RawValue,
}

impl Questions {
    /// Whether anything waits for an answer.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// A `session/request_permission` becomes a question; none if it can't be read.
    pub(super) fn permission(&mut self, id: &RawValue, params: &RawValue) -> Option<Question> {
        let PermissionRequest { session_id, tool_call, options } = serde_json::from_str(params.get()).ok()?;
        let ids = serde_json::from_str::<Vec<PermissionOption>>(options.get()).ok()?;
        let request = self.name("perm");
        let value = Custom::Permission { request_id: &request, session_id, tool_call, options };
        let event = Event::Custom { name: "acp.permission_request", value }.json();
        let kind = QuestionKind::Permission(ids.into_iter().map(|option| option.option_id).collect());
        self.ask(id, Question { request, event, kind }, Asks::Permission)
    }

    /// An `elicitation/create` becomes a question; none if it can't be read or does not ask for a form.
    pub(super) fn form(&mut self, id: &RawValue, params: &RawValue) -> Option<Question> {
        let FormRequest { session_id, tool_call_id, mode, message, requested_schema } =
            serde_json::from_str(params.get()).ok()?;
        let message = string(Some(message)).filter(|_| mode.get() == "\"form\"")?;
        let request = self.name("form");
        let value =
            Custom::Form { request_id: &request, session_id, tool_call_id, message, requested_schema };
        let event = Event::Custom { name: "acp.elicitation_request", value }.json();
        self.ask(id, Question { request, event, kind: QuestionKind::Form }, Asks::Form)
    }

    /// The line that brings an answer to the agent; none if the question is not open.
    pub(super) fn answer(&mut self, request: &str, decision: &Decision) -> Option<Vec<u8>> {
        let place = self.open.iter().position(|open| open.request == request)?;
        Some(self.open.remove(place).answer(decision))
    }

    /// The lines that tell the agent that nobody will answer any more.
    pub(super) fn close(&mut self) -> Vec<Vec<u8>> {
        self.open.drain(..).map(|open| open.answer(&Decision::Cancelled)).collect()
    }

    fn name(&mut self, what: &str) -> String {
        self.last += 1;
        format!("{what}-{}", self.last)
    }

    fn ask(&mut self, id: &RawValue, question: Question, asks: Asks) -> Option<Question> {
        if !is_readable(&question.event) {
            return None;
        }
        self.open.push(Open { request: question.request.clone(), id: id.to_owned(), asks });
        Some(question)
    }
}

impl Open {
    fn answer(&self, decision: &Decision) -> Vec<u8> {
        match self.asks {
            Asks::Permission => rpc::result(&self.id, &permission_answer(decision)),
            Asks::Form => form_answer(&self.id, decision),
        }
    }
}

/// The line that answers a `session/request_permission` with nobody's decision.
pub(super) fn no_permission(id: &RawValue) -> Vec<u8> {
    rpc::result(id, &permission_answer(&Decision::Cancelled))
}

/// The line that answers an `elicitation/create` with nobody's decision.
pub(super) fn no_form(id: &RawValue) -> Vec<u8> {
    form_answer(id, &Decision::Cancelled)
}

fn permission_answer(decision: &Decision) -> acp::RequestPermissionResponse {
    let outcome = match decision {
        Decision::Selected(option) => {
            acp::RequestPermissionOutcome::Selected(acp::SelectedPermissionOutcome::new(option.clone()))
        }
        Decision::Accepted(_) | Decision::Declined | Decision::Cancelled => {
            acp::RequestPermissionOutcome::Cancelled
        }
    };
    acp::RequestPermissionResponse::new(outcome)
}

fn form_answer(id: &RawValue, decision: &Decision) -> Vec<u8> {
    let action = match decision {
        Decision::Accepted(content) => match serde_json::from_str::<&RawValue>(content) {
            Ok(content) => return rpc::result(id, &AcceptedForm { action: "accept", content }),
            Err(_) => acp::ElicitationAction::Cancel,
        },
        Decision::Declined => acp::ElicitationAction::Decline,
        Decision::Selected(_) | Decision::Cancelled => acp::ElicitationAction::Cancel,
    };
    rpc::result(id, &acp::CreateElicitationResponse::new(action))
}
