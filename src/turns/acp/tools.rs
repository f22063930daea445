//! Tool calls on their way from ACP to AG-UI.
//!
//! ACP tells of a call by one `tool_call` and any number of `tool_call_update`s, in which every member may be new. AG-UI
//! has a call's name, its arguments, its end and its result. What has no place there is passed on as an update besides.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::events::Event;
use super::mapping::{MessageIds, Update, block_text, pass_on, string};
use crate::wire::json::Raw;

/// What was told of a call's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arguments {
    Unknown,
    /// An empty object. Some agents announce a call with it before they know more.
    Empty,
    Sent,
}

/// A call that was started.
#[derive(Debug)]
struct Tool {
    /// The id that is meant: it can be spelled in more than one way.
    key: Vec<u8>,
    /// The id as it was spelled first: a JSON string.
    id: Box<RawValue>,
    arguments: Arguments,
    /// What it gave so far, for the result: a JSON string.
    content: Option<Box<RawValue>>,
    ended: bool,
}

/// The calls of one turn, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Tools {
    calls: Vec<Tool>,
}

/// One piece of what a call gave.
#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// What an update's content is to AG-UI.
#[derive(Default)]
struct Content {
    /// The texts in it, a line for each: a JSON string.
    text: Option<Box<RawValue>>,
    /// There is more in it than text.
    more: bool,
}

impl Tools {
    /// Whether this call was started.
    pub(super) fn knows(&self, id: &RawValue) -> bool {
        self.place(&meaning(id)).is_some()
    }

    /// Takes a `tool_call` or a `tool_call_update`; an unknown call is started with either. `raw` is the whole update.
    pub(super) fn update(
        &mut self,
        id: &RawValue,
        update: &Update<'_>,
        raw: &RawValue,
        ids: &mut MessageIds,
        events: &mut Vec<Vec<u8>>,
    ) {
        let key = meaning(id);
        let (place, is_new) = match self.place(&key) {
            Some(place) => (place, false),
            None => (self.start(key, id, update, events), true),
        };
        let call = &mut self.calls[place];
        if call.ended {
            pass_on(raw, events);
            return;
        }
        let arguments_told = call.take_arguments(update.raw_input, events);
        let content = update.content.map(read_content).unwrap_or_default();
        let more = content.more;
        let gave = content.text.is_some() || update.raw_output.is_some();
        let hidden = update.raw_output.is_some() && content.text.is_some();
        if let Some(text) = content.text.or_else(|| update.raw_output.map(as_text)) {
            call.content = Some(text);
        }
        let status = update.status.map_or("", RawValue::get);
        let ends = matches!(status, "\"completed\"" | "\"failed\"");
        let news = if is_new {
            is_telling(update.kind, "\"other\"") || (update.title.is_some() && update.name.is_some())
        } else {
            [update.title, update.name, update.kind].iter().any(Option::is_some)
                || (!ends && !status.is_empty())
        };
        let lost = is_telling(update.locations, "[]") || status == "\"failed\"" || (gave && !ends);
        if news || more || hidden || lost || !arguments_told {
            pass_on(raw, events);
        }
        if ends {
            call.end(events);
            call.give(ids, events);
        }
    }

    /// Ends every call that did not come to its end.
    pub(super) fn close(&mut self, events: &mut Vec<Vec<u8>>) {
        for call in self.calls.iter_mut().filter(|call| !call.ended) {
            call.end(events);
        }
    }

    fn place(&self, key: &[u8]) -> Option<usize> {
        // The last calls are the ones that are talked about.
        self.calls.iter().rposition(|call| call.key == key)
    }

    fn start(
        &mut self,
        key: Vec<u8>,
        id: &RawValue,
        update: &Update<'_>,
        events: &mut Vec<Vec<u8>>,
    ) -> usize {
        let unnamed = json_string("tool");
        let named = [update.title, update.name, update.kind].into_iter().filter_map(string);
        let tool_call_name = named.into_iter().find(|name| name.get() != "\"\"").unwrap_or(&unnamed);
        events.push(Event::ToolCallStart { tool_call_id: id, tool_call_name }.json());
        let (id, arguments) = (id.to_owned(), Arguments::Unknown);
        self.calls.push(Tool { key, id, arguments, content: None, ended: false });
        self.calls.len() - 1
    }
}

impl Tool {
    /// Whether an update's arguments, if it has any, are told by the call's events.
    fn take_arguments(&mut self, input: Option<&RawValue>, events: &mut Vec<Vec<u8>>) -> bool {
        match (input.map(RawValue::get), self.arguments) {
            (None, _) | (Some("{}"), Arguments::Empty) => true,
            (Some(_), Arguments::Sent) => false,
            (Some("{}"), Arguments::Unknown) => {
                self.arguments = Arguments::Empty;
                true
            }
            (Some(delta), Arguments::Unknown | Arguments::Empty) => {
                self.arguments = Arguments::Sent;
                events.push(Event::ToolCallArgs { tool_call_id: &self.id, delta }.json());
                true
            }
        }
    }

    fn end(&mut self, events: &mut Vec<Vec<u8>>) {
        self.ended = true;
        if self.arguments == Arguments::Empty {
            events.push(Event::ToolCallArgs { tool_call_id: &self.id, delta: "{}" }.json());
        }
        events.push(Event::ToolCallEnd { tool_call_id: &self.id }.json());
    }

    fn give(&mut self, ids: &mut MessageIds, events: &mut Vec<Vec<u8>>) {
        let content = self.content.take().unwrap_or_else(|| json_string(""));
        let message_id = &*ids.next();
        let result =
            Event::ToolCallResult { message_id, tool_call_id: &self.id, content: &content, role: "tool" };
        events.push(result.json());
    }
}

/// The bytes that a JSON string means.
fn meaning(string: &RawValue) -> Vec<u8> {
    let bytes = inside(string).as_bytes();
    Raw { bytes, escaped: bytes.contains(&b'\\') }.decoded().into_owned()
}

/// What stands between a JSON string's quotes.
fn inside(string: &RawValue) -> &str {
    let text = string.get();
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

/// Whether a member is there and says more than its default.
fn is_telling(member: Option<&RawValue>, default: &str) -> bool {
    member.is_some_and(|member| member.get() != default)
}

/// A string as it is; any other JSON as text.
fn as_text(value: &RawValue) -> Box<RawValue> {
    match string(Some(value)) {
        Some(string) => string.to_owned(),
        None => json_string(value.get()),
    }
}

fn json_string(text: &str) -> Box<RawValue> {
    serde_json::value::to_raw_value(text).expect("a string is JSON")
}

fn read_content(content: &RawValue) -> Content {
    let Ok(pieces) = serde_json::from_str::<Vec<&RawValue>>(content.get()) else {
        return Content { text: None, more: true };
    };
    let texts: Vec<&str> = pieces.iter().filter_map(|piece| piece_text(piece)).map(inside).collect();
    let more = texts.len() < pieces.len();
    let joined = format!("\"{}\"", texts.join("\\n"));
    Content { text: RawValue::from_string(joined).ok().filter(|_| !texts.is_empty()), more }
}

fn piece_text(piece: &RawValue) -> Option<&RawValue> {
    let Piece { content } = serde_json::from_str(piece.get()).ok()?;
    content.and_then(block_text)
}
