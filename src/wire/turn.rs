//! Turn requests: what a chat's front end asks of the agent, and what the agent is told.
//!
//! Text stays as it was written, escapes and all: what a person typed is put into the history and handed to the agent
//! without being decoded on the way. Shapes follow the AG-UI specification (`@ag-ui/core` 1.0.0: `RunAgentInput`,
//! `UserMessage`, `ResumeEntry`).

mod message;
mod respond;
#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::proto::history::{OpeningMessage, Trigger};
use crate::proto::id::ChatId;
use crate::wire::request::BadRequest;

pub use message::{edited, id as message_id, is_user_message, prompt, user_message};
pub use respond::{Respond, Stop, decided, question_resolved, respond, stop};

/// A request for a turn.
#[derive(Clone, Debug)]
pub struct TurnRequest {
    /// The conversation.
    pub chat: ChatId,
    /// What started it.
    pub trigger: Trigger,
    /// The agent that is asked for by name.
    pub runtime: Option<String>,
    /// The frames of protocol 1 are asked for.
    pub protocol1: bool,
    /// What the person wrote: a JSON string as it was written, quotes and all.
    pub text: Option<String>,
    /// Files that go with it.
    pub files: Vec<Upload>,
    /// Where a retry takes the conversation up again, if not at its last turn.
    pub message_index: Option<u64>,
    /// What is handed on to the agent.
    pub passed: Passed,
    /// A whole `RunAgentInput`, handed on as it is, with its messages.
    pub input: Option<AgentInput>,
}

/// A file that goes with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Its name.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Its bytes in base64.
    pub base64: String,
}

/// JSON that is handed on to the agent unread.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    state: Option<String>,
    tools: Option<String>,
    context: Option<String>,
    forwarded: Option<String>,
    payload: Option<String>,
    resume: Option<String>,
}

/// A `RunAgentInput` of a client that takes this server for its agent.
#[derive(Clone, Debug)]
pub struct AgentInput {
    /// Its bytes.
    pub json: Vec<u8>,
    /// Its messages.
    pub messages: Vec<OpeningMessage>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    chat_id: Option<&'a RawValue>,
    protocol: Option<&'a RawValue>,
    message: Option<&'a RawValue>,
    trigger: Option<&'a RawValue>,
    payload: Option<&'a RawValue>,
    runtime: Option<&'a RawValue>,
    files: Option<&'a RawValue>,
    config: Option<&'a RawValue>,
    resume: Option<&'a RawValue>,
    message_index: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Config<'a> {
    #[serde(borrow)]
    state: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
    context: Option<&'a RawValue>,
    #[serde(rename = "forwardedProps")]
    forwarded: Option<&'a RawValue>,
}

/// Reads the body of `POST /chat/send`, `/chat/steer-send`, `/chat/retry` and `/chat`.
pub fn turn(body: &[u8]) -> Result<TurnRequest, BadRequest> {
    let body: Body<'_> = object(body)?;
    let given = |value: Option<&RawValue>| {
        value.filter(|value| value.get() != "null").map(|raw| raw.get().to_owned())
    };
    let config = match body.config {
        Some(config) => read::<Config<'_>>("config", config, "an object")?,
        None => Config { state: None, tools: None, context: None, forwarded: None },
    };
    for (name, value) in
        [("config.tools", config.tools), ("config.context", config.context), ("resume", body.resume)]
    {
        if let Some(value) = value {
            read::<Vec<&RawValue>>(name, value, "an array")?;
        }
    }
    let request = TurnRequest {
        chat: chat_id(body.chat_id)?,
        trigger: trigger(body.trigger)?,
        runtime: body.runtime.map(|name| read("runtime", name, "a string")).transpose()?,
        protocol1: protocol(body.protocol)?,
        text: text(body.message)?,
        files: files(body.files)?,
        message_index: body
            .message_index
            .map(|index| read("message_index", index, "a whole number from 0 on"))
            .transpose()?,
        passed: Passed {
            state: given(config.state),
            tools: given(config.tools),
            context: given(config.context),
            forwarded: given(config.forwarded),
            payload: given(body.payload),
            resume: given(body.resume),
        },
        input: None,
    };
    request.passed.check()?;
    Ok(request)
}

/// A field or a file of a form: its name, the file's name and media type, and the bytes.
#[derive(Clone, Copy, Debug)]
pub struct FormPart<'a> {
    /// The field's name.
    pub name: &'a str,
    /// The file's name, if it is one.
    pub file_name: Option<&'a str>,
    /// The file's media type.
    pub media_type: Option<&'a str>,
    /// What was sent.
    pub bytes: &'a [u8],
}

/// Reads a form: the members of a JSON body as fields, files as files. Fields that are no text in JSON hold JSON.
pub fn form(parts: &[FormPart<'_>]) -> Result<TurnRequest, BadRequest> {
    let mut members = Vec::new();
    let mut files = Vec::new();
    for part in parts {
        if let Some(name) = part.file_name {
            files.push(upload(name, part.media_type, part.bytes));
            continue;
        }
        let text = std::str::from_utf8(part.bytes)
            .map_err(|_| bad(format!("the field \"{}\" must be UTF-8", part.name)))?;
        let value = match part.name {
            "payload" | "config" | "resume" | "message_index" | "protocol" => {
                serde_json::from_str::<&RawValue>(text)
                    .map_err(|fault| bad(format!("the field \"{}\" must be JSON: {fault}", part.name)))?;
                text.as_bytes().to_vec()
            }
            _ => quoted(text),
        };
        members.push([&quoted(part.name), &b":"[..], &value].concat());
    }
    let mut request = turn(&[&b"{"[..], &members.join(&b','), b"}"].concat())?;
    request.files.extend(files);
    Ok(request)
}

fn upload(name: &str, media_type: Option<&str>, bytes: &[u8]) -> Upload {
    use base64::Engine as _;
    Upload {
        name: name.to_owned(),
        media_type: media_type.unwrap_or("application/octet-stream").to_owned(),
        base64: base64::engine::general_purpose::STANDARD.encode(bytes),
    }
}

/// Reads a `RunAgentInput` (`POST /agui`).
pub fn agent_input(body: &[u8]) -> Result<TurnRequest, BadRequest> {
    #[derive(Deserialize)]
    struct Input<'a> {
        #[serde(borrow, rename = "threadId")]
        thread: Option<&'a RawValue>,
        #[serde(default)]
        messages: Vec<&'a RawValue>,
    }
    let input: Input<'_> = object(body)?;
    let Some(thread) = input.thread else { return Err(bad("\"threadId\" is missing: it names the chat")) };
    let messages = input
        .messages
        .iter()
        .map(|message| {
            let id = message::id(message.get().as_bytes());
            let id = id.ok_or_else(|| bad("every message needs a string member \"id\""))?;
            Ok(OpeningMessage { id, json: one_line(message.get()) })
        })
        .collect::<Result<_, BadRequest>>()?;
    Ok(TurnRequest {
        chat: chat_id(Some(thread))?,
        trigger: Trigger::User,
        runtime: None,
        protocol1: false,
        text: None,
        files: Vec::new(),
        message_index: None,
        passed: Passed::default(),
        input: Some(AgentInput { json: body.to_vec(), messages }),
    })
}

impl TurnRequest {
    /// Why the agent can't be asked: there is nothing to ask it.
    pub fn is_empty(&self) -> bool {
        let reason = match self.trigger {
            Trigger::Heartbeat => true,
            Trigger::Canvas => self.passed.payload.is_some(),
            Trigger::User | Trigger::Schedule => false,
        };
        let asked = self.text.is_some() || !self.files.is_empty() || self.input.is_some();
        !(reason || asked || self.passed.resume.is_some())
    }

    /// The user's message, if there is one.
    pub fn message(&self, id: &str) -> Option<OpeningMessage> {
        if self.text.is_none() && self.files.is_empty() {
            return None;
        }
        let json = user_message(id, self.text.as_deref(), &self.files);
        Some(OpeningMessage { id: id.as_bytes().to_vec(), json })
    }

    /// The `RunAgentInput` for the agent. `messages` are those of the conversation, joined by commas.
    pub fn input(&self, run: &str, messages: &[u8]) -> Vec<u8> {
        if let Some(input) = &self.input {
            return input.json.clone();
        }
        let mut out = b"{\"threadId\":".to_vec();
        out.extend(quoted(self.chat.as_str()));
        out.extend_from_slice(format!(",\"runId\":\"{run}\",\"messages\":[").as_bytes());
        out.extend_from_slice(messages);
        out.push(b']');
        let passed = &self.passed;
        let forwarded = passed.forwarded_props(self.trigger);
        let members = [
            ("state", passed.state.as_deref().unwrap_or("{}")),
            ("tools", passed.tools.as_deref().unwrap_or("[]")),
            ("context", passed.context.as_deref().unwrap_or("[]")),
            ("forwardedProps", forwarded.as_str()),
        ];
        for (name, json) in
            members.into_iter().chain(passed.resume.as_deref().map(|resume| ("resume", resume)))
        {
            out.extend_from_slice(format!(",\"{name}\":").as_bytes());
            out.extend_from_slice(json.as_bytes());
        }
        out.push(b'}');
        out
    }

    /// What to ask an agent that takes no `payload`, if nobody wrote anything.
    pub fn unspoken(&self) -> String {
        self.passed.payload.clone().unwrap_or_else(|| format!("({})", self.trigger.name()))
    }
}

impl Passed {
    /// `forwardedProps` can take up a payload only if it is an object.
    fn check(&self) -> Result<(), BadRequest> {
        match &self.forwarded {
            Some(forwarded) if self.payload.is_some() && !forwarded.starts_with('{') => {
                Err(bad("\"config.forwardedProps\" must be an object, so that \"payload\" can go with it"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The client's own, with the payload and the trigger of the turn beside them.
    fn forwarded_props(&self, trigger: Trigger) -> String {
        let own = self.forwarded.as_deref().unwrap_or("{}");
        let mut added = Vec::new();
        if trigger != Trigger::User {
            added.push(format!("\"trigger\":\"{}\"", trigger.name()));
        }
        if let Some(payload) = &self.payload {
            added.push(format!("\"payload\":{payload}"));
        }
        match own.strip_suffix('}') {
            Some(open) if !added.is_empty() && own.starts_with('{') => {
                let comma = if open.trim_end().ends_with('{') { "" } else { "," };
                format!("{open}{comma}{}}}", added.join(","))
            }
            Some(_) | None => own.to_owned(),
        }
    }
}

fn bad(message: impl Into<String>) -> BadRequest {
    BadRequest(message.into())
}

fn object<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, BadRequest> {
    if body.trim_ascii().first() != Some(&b'{') {
        return Err(bad("the body must be a JSON object"));
    }
    serde_json::from_slice(body).map_err(|fault| bad(format!("the body can't be read: {fault}")))
}

fn read<'a, T: Deserialize<'a>>(name: &str, value: &'a RawValue, what: &str) -> Result<T, BadRequest> {
    serde_json::from_str(value.get()).map_err(|_| bad(format!("\"{name}\" must be {what}")))
}

fn chat_id(value: Option<&RawValue>) -> Result<ChatId, BadRequest> {
    let value = value.ok_or_else(|| bad("\"chat_id\" is missing"))?;
    let text: String = read("chat_id", value, "a string")?;
    ChatId::parse(&text)
        .ok_or_else(|| bad("\"chat_id\" must have 1 to 256 bytes of UTF-8 without control characters"))
}

fn trigger(value: Option<&RawValue>) -> Result<Trigger, BadRequest> {
    let Some(value) = value else { return Ok(Trigger::User) };
    let name: String = read("trigger", value, "a string")?;
    Trigger::parse(&name)
        .ok_or_else(|| bad(format!("\"trigger\" must be user, heartbeat, canvas or schedule, not {name:?}")))
}

fn protocol(value: Option<&RawValue>) -> Result<bool, BadRequest> {
    match value.map(RawValue::get) {
        None => Ok(false),
        Some("1") => Ok(true),
        Some(other) => {
            Err(bad(format!("\"protocol\" must be 1, not {other}; leave it out for the legacy format")))
        }
    }
}

/// What a person wrote; white space alone is nothing.
fn text(value: Option<&RawValue>) -> Result<Option<String>, BadRequest> {
    let Some(value) = value.filter(|value| value.get() != "null") else { return Ok(None) };
    let inside = value.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let inside = inside.ok_or_else(|| bad("\"message\" must be a string"))?;
    let decoded = message::decoded(inside);
    Ok((!decoded.trim().is_empty()).then(|| value.get().to_owned()))
}

fn files(value: Option<&RawValue>) -> Result<Vec<Upload>, BadRequest> {
    #[derive(Deserialize)]
    struct File {
        name: String,
        #[serde(default = "octets")]
        mime_type: String,
        data: String,
    }
    fn octets() -> String {
        "application/octet-stream".to_owned()
    }
    use base64::Engine as _;
    let Some(value) = value else { return Ok(Vec::new()) };
    let files: Vec<File> =
        read("files", value, "an array of {\"name\",\"mime_type\",\"data\"}, data in base64")?;
    files
        .into_iter()
        .map(|file| {
            base64::engine::general_purpose::STANDARD
                .decode(&file.data)
                .map_err(|_| bad(format!("the data of the file {:?} must be base64", file.name)))?;
            Ok(Upload { name: file.name, media_type: file.mime_type, base64: file.data })
        })
        .collect()
}

/// JSON on one line: raw line breaks stand between its tokens only.
fn one_line(json: &str) -> Vec<u8> {
    json.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect()
}

fn quoted(text: &str) -> Vec<u8> {
    // Serialising a string into memory does not fail.
    serde_json::to_vec(text).unwrap_or_default()
}
