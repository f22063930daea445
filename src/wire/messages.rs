//! The *messages* of a turn: what its AG-UI events amount to, as `@ag-ui/client` 1.0.0 reduces them from an empty
//! state (its `defaultApplyEvents` behind its chunk transform).
//!
//! This only reads: an event that makes no sense is skipped, never an error, and no text is decoded, so that halves of
//! surrogate pairs, long numbers and deep nesting come out as they went in. Three things are the history's own:
//! - MESSAGES_SNAPSHOT and RUN_STARTED's `input` repeat earlier turns; what only they brought is marked as
//!   [`Message::restated`], so that the store can tell it from what the turn itself said.
//! - The deprecated THINKING_TEXT_MESSAGE_… events become reasoning messages whose ids are made from the run id
//!   (the client makes random ones).
//! - A turn yields a bounded number of messages and patches, see `thread` and `patch`.

mod chunks;
mod json;
mod patch;
mod thread;

use crate::proto::id::RunId;
use chunks::{Kind, Lanes};
use json::{Event, decoded};
use serde_json::value::RawValue;
use std::borrow::Cow;
use thread::{Common, Thread};

/// One AG-UI message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The message's id, decoded (WTF-8 if it holds half a surrogate pair).
    pub id: Vec<u8>,
    /// The message object as JSON.
    pub json: Vec<u8>,
    /// Only a snapshot or the run's input brought it; no event of this turn built it or added to it.
    pub restated: bool,
}

/// Reduces a turn's compacted events (the text of a JSON array) to its messages, in order.
pub fn messages(events: &[u8], run: RunId) -> Vec<Message> {
    let Ok(events) = serde_json::from_slice::<Vec<&RawValue>>(events) else { return Vec::new() };
    let mut reducer = Reducer { run, thread: Thread::default(), lanes: Lanes::default(), thoughts: 0 };
    for event in events.into_iter().filter_map(|raw| Event::parse(raw.get())) {
        reducer.apply(&event);
    }
    reducer.thread.into_messages()
}

struct Reducer<'a> {
    run: RunId,
    thread: Thread<'a>,
    lanes: Lanes<'a>,
    /// THINKING_TEXT_MESSAGE_START events so far; the last one's message takes the thoughts that follow.
    thoughts: u64,
}

impl<'a> Reducer<'a> {
    fn apply(&mut self, event: &Event<'a>) {
        let Some(kind) = event.text("type").map(decoded) else { return };
        match &*kind {
            b"TEXT_MESSAGE_CHUNK" => return self.lanes.chunk(Kind::Text, event, &mut self.thread),
            b"TOOL_CALL_CHUNK" => return self.lanes.chunk(Kind::Tool, event, &mut self.thread),
            b"REASONING_MESSAGE_CHUNK" => return self.lanes.chunk(Kind::Reasoning, event, &mut self.thread),
            b"RUN_STARTED" | b"RUN_FINISHED" | b"RUN_ERROR" | b"MESSAGES_SNAPSHOT" => self.lanes.close_all(),
            b"SUBAGENT_FINISHED" | b"SUBAGENT_ERROR" => self.lanes.close_subagent(event),
            kind if CLOSES_ITS_LANE.contains(&kind) => self.lanes.close(event),
            _ => {}
        }
        let common = Common::of(event);
        match &*kind {
            b"TEXT_MESSAGE_START" => {
                let Some(id) = event.text("messageId") else { return };
                let role = event.text("role").unwrap_or("\"assistant\"");
                self.thread.start(Cow::Borrowed(id), role, event.text("name"), common);
            }
            b"REASONING_MESSAGE_START" => {
                let Some(id) = event.text("messageId") else { return };
                self.thread.start(Cow::Borrowed(id), "\"reasoning\"", None, common);
            }
            b"TEXT_MESSAGE_CONTENT" | b"REASONING_MESSAGE_CONTENT" => {
                let (Some(id), Some(delta)) = (event.text("messageId"), event.text("delta")) else { return };
                self.thread.append(id, delta, common.metadata);
            }
            b"TEXT_MESSAGE_END" | b"REASONING_MESSAGE_END" => {
                let Some(id) = event.text("messageId") else { return };
                self.thread.end(id, common.metadata);
            }
            b"TOOL_CALL_START" => {
                let Some(id) = event.text("toolCallId") else { return };
                let name = event.text("toolCallName").unwrap_or("\"\"");
                self.thread.start_call(id, name, event.text("parentMessageId"), common);
            }
            b"TOOL_CALL_ARGS" => {
                let (Some(id), Some(delta)) = (event.text("toolCallId"), event.text("delta")) else { return };
                self.thread.append_call(id, delta, common.metadata);
            }
            b"TOOL_CALL_END" => {
                let Some(id) = event.text("toolCallId") else { return };
                self.thread.end_call(id, common.metadata);
            }
            b"TOOL_CALL_RESULT" => self.thread.result(event),
            b"REASONING_ENCRYPTED_VALUE" => self.thread.encrypted(event),
            b"ACTIVITY_SNAPSHOT" => self.thread.activity(event),
            b"ACTIVITY_DELTA" => self.thread.patch_activity(event),
            b"MESSAGES_SNAPSHOT" => self.thread.snapshot(event),
            b"RUN_STARTED" => self.thread.input(event),
            thinking => self.think(thinking, event, common),
        }
    }

    /// The deprecated form of reasoning, which names no message.
    fn think(&mut self, kind: &[u8], event: &Event<'a>, common: Common<'a>) {
        if kind == b"THINKING_TEXT_MESSAGE_START" {
            self.thoughts += 1;
        }
        let id = format!("\"{}-thinking-{}\"", self.run, self.thoughts);
        match kind {
            b"THINKING_TEXT_MESSAGE_START" => {
                self.thread.start(Cow::Owned(id), "\"reasoning\"", None, common);
            }
            b"THINKING_TEXT_MESSAGE_CONTENT" => {
                let Some(delta) = event.text("delta") else { return };
                self.thread.append(&id, delta, common.metadata);
            }
            b"THINKING_TEXT_MESSAGE_END" => self.thread.end(&id, common.metadata),
            _ => {}
        }
    }
}

/// The events that end what chunks were assembling in their lane; the others pass by it.
const CLOSES_ITS_LANE: [&[u8]; 17] = [
    b"TEXT_MESSAGE_START",
    b"TEXT_MESSAGE_CONTENT",
    b"TEXT_MESSAGE_END",
    b"TOOL_CALL_START",
    b"TOOL_CALL_ARGS",
    b"TOOL_CALL_END",
    b"TOOL_CALL_RESULT",
    b"STATE_SNAPSHOT",
    b"STATE_DELTA",
    b"CUSTOM",
    b"STEP_STARTED",
    b"STEP_FINISHED",
    b"REASONING_START",
    b"REASONING_MESSAGE_START",
    b"REASONING_MESSAGE_CONTENT",
    b"REASONING_MESSAGE_END",
    b"REASONING_END",
];

#[cfg(test)]
mod tests;
