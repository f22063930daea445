//! The AG-UI events that a turn writes. Strings that came from the agent are written as it spelled them: they are JSON
//! already, and half a surrogate pair has no other spelling.

use serde::Serialize;
use serde_json::value::RawValue;

/// An event, about to be written (AG-UI specification, "Events").
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub(super) enum Event<'a> {
    RunStarted {
        thread_id: &'a str,
        run_id: &'a str,
    },
    RunFinished {
        thread_id: &'a str,
        run_id: &'a str,
        result: RunResult<'a>,
    },
    TextMessageStart {
        message_id: &'a str,
        role: &'static str,
    },
    TextMessageContent {
        message_id: &'a str,
        delta: &'a RawValue,
    },
    TextMessageEnd {
        message_id: &'a str,
    },
    ReasoningStart {
        message_id: &'a str,
    },
    ReasoningMessageStart {
        message_id: &'a str,
        role: &'static str,
    },
    ReasoningMessageContent {
        message_id: &'a str,
        delta: &'a RawValue,
    },
    ReasoningMessageEnd {
        message_id: &'a str,
    },
    ReasoningEnd {
        message_id: &'a str,
    },
    ToolCallStart {
        tool_call_id: &'a RawValue,
        tool_call_name: &'a RawValue,
    },
    /// The delta is JSON in a JSON string.
    ToolCallArgs {
        tool_call_id: &'a RawValue,
        delta: &'a str,
    },
    ToolCallEnd {
        tool_call_id: &'a RawValue,
    },
    ToolCallResult {
        message_id: &'a str,
        tool_call_id: &'a RawValue,
        content: &'a RawValue,
        role: &'static str,
    },
    Custom {
        name: &'static str,
        value: Custom<'a>,
    },
}

/// A run's result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunResult<'a> {
    pub(super) stop_reason: &'a RawValue,
}

/// What AG-UI has no word for.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Custom<'a> {
    /// An agent's `session/update`.
    Update(&'a RawValue),
    /// The agent does not know what was said before.
    Reset { session_id: &'a str },
    /// A `session/request_permission`.
    Permission {
        request_id: &'a str,
        session_id: &'a RawValue,
        tool_call: &'a RawValue,
        options: &'a RawValue,
    },
    /// An `elicitation/create` with a form.
    #[serde(rename_all = "camelCase")]
    Form {
        #[serde(rename = "request_id")]
        request_id: &'a str,
        #[serde(rename = "session_id", skip_serializing_if = "Option::is_none")]
        session_id: Option<&'a RawValue>,
        #[serde(rename = "tool_call_id", skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<&'a RawValue>,
        message: &'a RawValue,
        requested_schema: &'a RawValue,
    },
}

impl Event<'_> {
    /// The event as one line of JSON.
    pub(super) fn json(&self) -> Vec<u8> {
        let mut json =
            serde_json::to_vec(self).expect("neither keys that are no strings nor a writer that fails");
        // An agent may end its lines with both characters, and put one between tokens.
        json.retain(|byte| *byte != b'\r');
        json
    }
}
