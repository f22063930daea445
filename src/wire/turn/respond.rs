//! Answers to an agent's questions, and stops.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{bad, chat_id, object, quoted, read};
use crate::proto::id::ChatId;
use crate::proto::turn::{Decision, QuestionKind};
use crate::wire::request::BadRequest;

/// A request to stop a chat's turn.
#[derive(Clone, Debug)]
pub struct Stop {
    /// The conversation.
    pub chat: ChatId,
    /// Why, for those who read along.
    pub reason: Option<String>,
}

/// An answer to an agent's question.
#[derive(Clone, Debug)]
pub struct Respond {
    /// The conversation.
    pub chat: ChatId,
    /// Which question.
    pub request: String,
    /// What was decided.
    pub decision: Decision,
}

/// Reads the body of `POST /chat/stop`.
pub fn stop(body: &[u8]) -> Result<Stop, BadRequest> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        chat_id: Option<&'a RawValue>,
        reason: Option<&'a RawValue>,
    }
    let body: Body<'_> = object(body)?;
    let reason = body.reason.filter(|reason| reason.get() != "null");
    Ok(Stop {
        chat: chat_id(body.chat_id)?,
        reason: reason.map(|reason| read("reason", reason, "a string")).transpose()?,
    })
}

/// Reads the body of `POST /chat/respond`: `option_id` answers a permission; `action` (accept, decline or cancel) with
/// `content` answers a form; `cancelled:true` answers either.
pub fn respond(body: &[u8]) -> Result<Respond, BadRequest> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        chat_id: Option<&'a RawValue>,
        request_id: Option<&'a RawValue>,
        option_id: Option<&'a RawValue>,
        action: Option<&'a RawValue>,
        content: Option<&'a RawValue>,
        cancelled: Option<&'a RawValue>,
    }
    let body: Body<'_> = object(body)?;
    let request = body.request_id.ok_or_else(|| bad("\"request_id\" is missing"))?;
    let cancelled =
        body.cancelled.map(|flag| read::<bool>("cancelled", flag, "true or false")).transpose()?
            == Some(true);
    let option = body.option_id.map(|option| read("option_id", option, "a string")).transpose()?;
    let action: Option<String> = body.action.map(|action| read("action", action, "a string")).transpose()?;
    let decision = match (option, action.as_deref(), cancelled) {
        (Some(option), None, false) => Decision::Selected(option),
        (None, Some("accept"), false) => Decision::Accepted(content(body.content)?),
        (None, Some("decline"), false) => Decision::Declined,
        (None, Some("cancel") | None, true) | (None, Some("cancel"), false) => Decision::Cancelled,
        (None, Some(other), _) => {
            return Err(bad(format!("\"action\" must be accept, decline or cancel, not {other:?}")));
        }
        (None, None, false) => {
            return Err(bad("answer with \"option_id\", with \"action\", or with \"cancelled\":true"));
        }
        (Some(_), _, _) => return Err(bad("answer with one of \"option_id\", \"action\" and \"cancelled\"")),
    };
    Ok(Respond { chat: chat_id(body.chat_id)?, request: read("request_id", request, "a string")?, decision })
}

fn content(value: Option<&RawValue>) -> Result<String, BadRequest> {
    match value.map(RawValue::get) {
        None => Ok("{}".to_owned()),
        Some(object) if object.starts_with('{') => Ok(object.replace(['\r', '\n'], "")),
        Some(_) => Err(bad("\"content\" must be an object: the form's fields")),
    }
}

/// What was decided, as members of a JSON object.
pub fn decided(decision: &Decision) -> String {
    match decision {
        Decision::Selected(option) => {
            let option = String::from_utf8(quoted(option)).unwrap_or_default();
            format!("\"outcome\":\"selected\",\"option_id\":{option}")
        }
        Decision::Accepted(content) => format!("\"outcome\":\"accepted\",\"content\":{content}"),
        Decision::Declined => "\"outcome\":\"declined\"".to_owned(),
        Decision::Cancelled => "\"outcome\":\"cancelled\"".to_owned(),
    }
}

/// The event that says that a question is answered: after it, no replay opens it again.
pub fn question_resolved(request: &str, kind: &QuestionKind, decision: &Decision) -> Vec<u8> {
    let name = match kind {
        QuestionKind::Permission(_) => "acp.permission_resolved",
        QuestionKind::Form => "acp.elicitation_resolved",
    };
    let request = String::from_utf8(quoted(request)).unwrap_or_default();
    format!(
        "{{\"type\":\"CUSTOM\",\"name\":\"{name}\",\"value\":{{\"request_id\":{request},{}}}}}",
        decided(decision)
    )
    .into_bytes()
}
