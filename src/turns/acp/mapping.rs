//! From ACP's `session/update` to AG-UI's events. Pure: updates in, events out.
//!
//! The schema crate's types are not used for updates: a kind that they don't know, or half a surrogate pair, would make
//! them refuse the whole update. Here everything that is not understood is passed on as it was written.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::events::{Custom, Event};
use super::tools::Tools;
use crate::wire::event;

/// The kinds of updates that tell of a session's state, not of an answer.
const STATE_KINDS: [&str; 5] = [
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
];

/// The members of an update that are looked at.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Update<'a> {
    #[serde(borrow)]
    session_update: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    message_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) title: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) kind: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) status: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) locations: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) raw_input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) raw_output: Option<&'a RawValue>,
}

/// A content block, as far as it is text.
#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// What is said aloud and what is thought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voice {
    Text,
    Reasoning,
}

/// A message that was started and not ended.
#[derive(Debug)]
struct Message {
    voice: Voice,
    id: String,
    /// The agent's own id of it, if it gives any, as it is spelled.
    agents_id: Option<Box<RawValue>>,
}

/// Makes the ids of messages: unique, since a turn's id is.
#[derive(Debug)]
pub(super) struct MessageIds {
    turn: String,
    last: u64,
}

impl MessageIds {
    pub(super) fn next(&mut self) -> String {
        self.last += 1;
        format!("{}-{}", self.turn, self.last)
    }
}

/// A turn's answer on its way from ACP to AG-UI.
#[derive(Debug)]
pub(super) struct Mapper {
    ids: MessageIds,
    message: Option<Message>,
    tools: Tools,
}

impl Mapper {
    /// For a turn, by AG-UI's id of it.
    pub(super) fn new(agent_run: &str) -> Mapper {
        let ids = MessageIds { turn: agent_run.to_owned(), last: 0 };
        Mapper { ids, message: None, tools: Tools::default() }
    }

    /// The events of an update that is part of the answer.
    pub(super) fn update(&mut self, update: &RawValue) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        match serde_json::from_str::<Update<'_>>(update.get()) {
            Ok(read) => self.map(&read, update, &mut events),
            Err(_) => pass_on(update, &mut events),
        }
        events
    }

    /// The events of an update that came outside an answer: one of an earlier answer, or of a conversation that is being
    /// loaded. Only what tells of the session's state is shown.
    pub(super) fn state_update(update: &RawValue) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        let kind =
            serde_json::from_str::<Update<'_>>(update.get()).map(|read| read.session_update.into_owned());
        if kind.is_ok_and(|kind| STATE_KINDS.contains(&kind.as_str())) {
            pass_on(update, &mut events);
        }
        events
    }

    /// Ends everything that was started.
    pub(super) fn close(&mut self) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        self.end_message(&mut events);
        self.tools.close(&mut events);
        events
    }

    fn map(&mut self, update: &Update<'_>, raw: &RawValue, events: &mut Vec<Vec<u8>>) {
        match &*update.session_update {
            "user_message_chunk" => {}
            "agent_message_chunk" => self.say(Voice::Text, update, raw, events),
            "agent_thought_chunk" => self.say(Voice::Reasoning, update, raw, events),
            "tool_call" | "tool_call_update" => match string(update.tool_call_id) {
                Some(id) => self.use_tool(id, update, raw, events),
                None => pass_on(raw, events),
            },
            _ => pass_on(raw, events),
        }
    }

    fn say(&mut self, voice: Voice, update: &Update<'_>, raw: &RawValue, events: &mut Vec<Vec<u8>>) {
        let Some(delta) = update.content.and_then(block_text) else {
            pass_on(raw, events);
            return;
        };
        if delta.get() == "\"\"" {
            return; // AG-UI has no empty deltas.
        }
        let agents_id = string(update.message_id);
        let goes_on = self.message.as_ref().is_some_and(|message| {
            let same = |id: &RawValue| message.agents_id.as_ref().is_some_and(|own| own.get() == id.get());
            message.voice == voice && agents_id.is_none_or(same)
        });
        if !goes_on {
            self.end_message(events);
            self.start_message(voice, agents_id, events);
        }
        if let Some(Message { id: message_id, .. }) = &self.message {
            let content = match voice {
                Voice::Text => Event::TextMessageContent { message_id, delta },
                Voice::Reasoning => Event::ReasoningMessageContent { message_id, delta },
            };
            events.push(content.json());
        }
    }

    fn start_message(&mut self, voice: Voice, agents_id: Option<&RawValue>, events: &mut Vec<Vec<u8>>) {
        let id = self.ids.next();
        let message_id = &*id;
        match voice {
            Voice::Text => events.push(Event::TextMessageStart { message_id, role: "assistant" }.json()),
            Voice::Reasoning => {
                events.push(Event::ReasoningStart { message_id }.json());
                events.push(Event::ReasoningMessageStart { message_id, role: "reasoning" }.json());
            }
        }
        self.message = Some(Message { voice, id, agents_id: agents_id.map(RawValue::to_owned) });
    }

    fn end_message(&mut self, events: &mut Vec<Vec<u8>>) {
        let Some(Message { voice, id, .. }) = self.message.take() else { return };
        let message_id = &*id;
        match voice {
            Voice::Text => events.push(Event::TextMessageEnd { message_id }.json()),
            Voice::Reasoning => {
                events.push(Event::ReasoningMessageEnd { message_id }.json());
                events.push(Event::ReasoningEnd { message_id }.json());
            }
        }
    }

    fn use_tool(&mut self, id: &RawValue, update: &Update<'_>, raw: &RawValue, events: &mut Vec<Vec<u8>>) {
        if !self.tools.knows(id) {
            // What is said after the call is a message of its own, or it would be shown before it.
            self.end_message(events);
        }
        self.tools.update(id, update, raw, &mut self.ids, events);
    }
}

/// Passes an update on as it is.
pub(super) fn pass_on(update: &RawValue, events: &mut Vec<Vec<u8>>) {
    let event = Event::Custom { name: "acp.session_update", value: Custom::Update(update) }.json();
    if is_readable(&event) {
        events.push(event);
    } else {
        tracing::warn!("an agent's session/update is nested too deeply for an event and was dropped");
    }
}

/// Whether an event that holds an agent's JSON is one to the engine. The agent's JSON is well formed; it may be too deep.
pub(super) fn is_readable(event: &[u8]) -> bool {
    event::read(event, &mut Vec::new()).is_ok()
}

/// The value, if it is a string.
pub(super) fn string(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|value| value.get().starts_with('"'))
}

/// The text of a content block, if it has any: a JSON string.
pub(super) fn block_text(block: &RawValue) -> Option<&RawValue> {
    let Block { kind, text } = serde_json::from_str(block.get()).ok()?;
    string(text).filter(|_| kind == "text")
}

#[cfg(test)]
mod tests;
