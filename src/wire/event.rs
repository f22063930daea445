//! Reading AG-UI events: what an event is to compaction and to the run's life. The event itself is passed on byte
//! for byte; only line breaks between its tokens are taken out, since a frame is one line.
//!
//! Event names and members follow the AG-UI specification, "Events" (`@ag-ui/core` 1.0.0).

pub mod pattern;

use std::borrow::Cow;

use crate::proto::accumulator::Punctuation;
use crate::proto::event::{Attribute, Chunk, ChunkKind, Delta, DeltaKind, Kind, Mark, Part};
use crate::wire::json::{self, JsonFault, Member, Raw, Value};

/// How joined events are written: JSON objects with commas between them.
pub const PUNCTUATION: Punctuation = Punctuation {
    separator: b",",
    text_end: b"\"",
    attributes_start: b",\"metadata\":{",
    attribute_separator: b",",
    attributes_end: b"}",
    entry_end: b"}",
};

/// One event, read.
#[derive(Debug)]
pub struct Event<'a> {
    /// The event on one line.
    pub line: &'a [u8],
    /// What it is to compaction.
    pub kind: Kind<'a>,
}

/// Why bytes are no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFault {
    /// The JSON is wrong.
    Json(JsonFault),
    /// There is no member `type`, or it is no string.
    NoType,
}

impl EventFault {
    /// What to tell the producer.
    pub fn message(&self) -> String {
        match self {
            EventFault::Json(JsonFault::Syntax(at)) => {
                format!("not JSON: unexpected byte or end at offset {at}")
            }
            EventFault::Json(JsonFault::NotObject) => "an event must be a JSON object".to_string(),
            EventFault::Json(JsonFault::NotUtf8(at)) => format!("not UTF-8 at offset {at}"),
            EventFault::Json(JsonFault::TooDeep) => {
                format!("nested more than {} levels deep", crate::limits::JSON_DEPTH_MAX)
            }
            EventFault::NoType => "an event needs a string member \"type\"".to_string(),
        }
    }
}

impl From<JsonFault> for EventFault {
    fn from(fault: JsonFault) -> EventFault {
        EventFault::Json(fault)
    }
}

/// Reads an event. `scratch` takes the event's line if that differs from `bytes`.
pub fn read<'a>(bytes: &'a [u8], scratch: &'a mut Vec<u8>) -> Result<Event<'a>, EventFault> {
    if memchr::memchr2(b'\r', b'\n', bytes).is_none() {
        let bytes = json::trim(bytes);
        return Ok(Event { line: bytes, kind: classify(bytes)? });
    }
    // Valid JSON has no raw line break inside a string, so all that are there stand between tokens.
    classify(bytes)?;
    scratch.clear();
    scratch.extend(json::trim(bytes).iter().filter(|byte| !matches!(byte, b'\r' | b'\n')));
    let line = scratch.as_slice();
    Ok(Event { line, kind: classify(line)? })
}

/// The members that matter, where they stand.
#[derive(Default)]
struct Fields<'a> {
    kind: Option<Raw<'a>>,
    message_id: Option<Member<'a>>,
    tool_call_id: Option<Member<'a>>,
    delta: Option<Member<'a>>,
    metadata: Option<Value<'a>>,
    /// `timestamp` and `rawEvent`: the first of joined deltas is kept.
    noted: u32,
    /// Members that have to be equal for two deltas to be joined.
    others: Vec<Member<'a>>,
    /// A member stands twice, or `type` is no string.
    odd: bool,
    seen: u8,
}

const TYPE: u8 = 1;
const MESSAGE_ID: u8 = 2;
const TOOL_CALL_ID: u8 = 4;
const DELTA: u8 = 8;
const METADATA: u8 = 16;
const TIMESTAMP: u8 = 32;
const RAW_EVENT: u8 = 64;

impl<'a> Fields<'a> {
    fn read(bytes: &'a [u8]) -> Result<Fields<'a>, JsonFault> {
        let mut fields = Fields::default();
        for member in json::members(bytes)? {
            fields.take(member?);
        }
        if fields.others.len() > 1 {
            fields.others.sort_by(|a, b| a.key.decoded().cmp(&b.key.decoded()));
            fields.odd |= fields.others.windows(2).any(|pair| match pair {
                [a, b] => a.key.decoded() == b.key.decoded(),
                _ => false,
            });
        }
        Ok(fields)
    }

    #[inline]
    fn take(&mut self, member: Member<'a>) {
        let bit = if member.key.escaped {
            self.place(&member.key.decoded(), member)
        } else {
            self.place(member.key.bytes, member)
        };
        self.odd |= self.seen & bit != 0;
        self.seen |= bit;
    }

    /// Puts a member where it belongs; returns its bit.
    #[inline(always)]
    fn place(&mut self, key: &[u8], member: Member<'a>) -> u8 {
        match key {
            b"type" => {
                self.kind = match member.value {
                    Value::Text(raw) => Some(raw),
                    Value::Object(_) | Value::Other(_) => None,
                };
                TYPE
            }
            b"messageId" => {
                self.message_id = Some(member);
                MESSAGE_ID
            }
            b"toolCallId" => {
                self.tool_call_id = Some(member);
                TOOL_CALL_ID
            }
            b"delta" => {
                self.delta = Some(member);
                DELTA
            }
            b"metadata" => {
                self.metadata = Some(member.value);
                METADATA
            }
            b"timestamp" => {
                self.noted += 1;
                TIMESTAMP
            }
            b"rawEvent" => {
                self.noted += 1;
                RAW_EVENT
            }
            _ => {
                self.others.push(member);
                0
            }
        }
    }

    fn delta_text(&self) -> Option<&'a [u8]> {
        match self.delta?.value {
            Value::Text(raw) => Some(raw.bytes),
            Value::Object(_) | Value::Other(_) => None,
        }
    }
}

fn text(member: Option<Member<'_>>) -> Option<Cow<'_, [u8]>> {
    match member?.value {
        Value::Text(raw) => Some(raw.decoded()),
        Value::Object(_) | Value::Other(_) => None,
    }
}

fn classify(bytes: &[u8]) -> Result<Kind<'_>, EventFault> {
    let fields = Fields::read(bytes)?;
    let name = fields.kind.ok_or(EventFault::NoType)?.decoded();
    let delta_kind = match &*name {
        b"TEXT_MESSAGE_CONTENT" => DeltaKind::Text,
        b"REASONING_MESSAGE_CONTENT" => DeltaKind::Reasoning,
        b"THINKING_TEXT_MESSAGE_CONTENT" => DeltaKind::Thinking,
        b"TOOL_CALL_ARGS" => DeltaKind::ToolArgs,
        _ => return Ok(undelta(&name, bytes, &fields)),
    };
    let delta = read_delta(delta_kind, bytes, &fields);
    Ok(delta.map_or(Kind::Boundary(Mark::Plain), Kind::Delta))
}

/// A delta event that can be joined; `None` if it has to pass as it is.
fn read_delta<'a>(kind: DeltaKind, bytes: &'a [u8], fields: &Fields<'a>) -> Option<Delta<'a>> {
    let text_bytes = fields.delta_text()?;
    let id = match kind {
        DeltaKind::Text | DeltaKind::Reasoning => text(fields.message_id)?,
        DeltaKind::ToolArgs => text(fields.tool_call_id)?,
        DeltaKind::Thinking => Cow::Borrowed(&b""[..]),
    };
    if fields.odd {
        return None;
    }
    let attributes = match fields.metadata {
        None => None,
        Some(Value::Object(object)) => Some(attributes(object)?),
        Some(Value::Text(_) | Value::Other(_)) => return None,
    };
    let head = head(bytes, fields.delta?, fields.metadata.is_some());
    Some(Delta { kind, id, text: text_bytes, head, same: same(kind, fields), attributes })
}

/// The metadata's members, each key once: within one object, too, the last write wins.
fn attributes(object: &[u8]) -> Option<Vec<Attribute<'_>>> {
    json::members(object)
        .ok()?
        .map(|member| {
            let member = member.ok()?;
            Some(Attribute { key: member.key.decoded(), member: Cow::Borrowed(member.bytes) })
        })
        .collect()
}

/// The event up to the text of its delta, which is moved behind all other members.
fn head<'a>(bytes: &'a [u8], delta: Member<'a>, drop_metadata: bool) -> Cow<'a, [u8]> {
    if delta.last && !drop_metadata {
        return Cow::Borrowed(bytes.get(..delta.value_offset + 1).unwrap_or_default());
    }
    let mut head = b"{".to_vec();
    for member in json::members(bytes).into_iter().flatten().flatten() {
        let key = member.key.decoded();
        if &*key == b"delta" || drop_metadata && &*key == b"metadata" {
            continue;
        }
        head.extend_from_slice(member.bytes);
        head.push(b',');
    }
    head.extend_from_slice(b"\"delta\":\"");
    Cow::Owned(head)
}

/// What has to be equal beside type and id, in the order of the keys.
fn same<'a>(kind: DeltaKind, fields: &Fields<'a>) -> Cow<'a, [u8]> {
    // An id of another family of events is a member like any other.
    let (message_id, tool_call_id) = match kind {
        DeltaKind::Text | DeltaKind::Reasoning => (None, fields.tool_call_id),
        DeltaKind::ToolArgs => (fields.message_id, None),
        DeltaKind::Thinking => (fields.message_id, fields.tool_call_id),
    };
    let mut same = Vec::new();
    for member in message_id.iter().chain(&tool_call_id).chain(&fields.others) {
        same.extend_from_slice(member.bytes);
        same.push(b'\n');
    }
    Cow::Owned(same)
}

/// An event that is no delta.
fn undelta<'a>(name: &[u8], bytes: &'a [u8], fields: &Fields<'a>) -> Kind<'a> {
    let (part, opens) = match name {
        b"TEXT_MESSAGE_CHUNK" => return chunk(ChunkKind::Text, fields.message_id, bytes, fields),
        b"REASONING_MESSAGE_CHUNK" => return chunk(ChunkKind::Reasoning, fields.message_id, bytes, fields),
        b"TOOL_CALL_CHUNK" => return chunk(ChunkKind::ToolCall, fields.tool_call_id, bytes, fields),
        b"RUN_STARTED" => return Kind::Boundary(Mark::RunStarted),
        b"RUN_FINISHED" => return Kind::Boundary(Mark::RunFinished),
        b"RUN_ERROR" => return Kind::Boundary(Mark::RunError),
        b"TEXT_MESSAGE_START" => (Part::Text, true),
        b"TEXT_MESSAGE_END" => (Part::Text, false),
        b"REASONING_MESSAGE_START" => (Part::ReasoningMessage, true),
        b"REASONING_MESSAGE_END" => (Part::ReasoningMessage, false),
        b"REASONING_START" => (Part::ReasoningSpan, true),
        b"REASONING_END" => (Part::ReasoningSpan, false),
        b"THINKING_TEXT_MESSAGE_START" => (Part::ThinkingMessage, true),
        b"THINKING_TEXT_MESSAGE_END" => (Part::ThinkingMessage, false),
        b"THINKING_START" => (Part::ThinkingSpan, true),
        b"THINKING_END" => (Part::ThinkingSpan, false),
        b"TOOL_CALL_START" => (Part::ToolCall, true),
        b"TOOL_CALL_END" => (Part::ToolCall, false),
        _ => return Kind::Boundary(Mark::Plain),
    };
    let id = match part {
        Part::Text | Part::ReasoningMessage | Part::ReasoningSpan => text(fields.message_id),
        Part::ToolCall => text(fields.tool_call_id),
        Part::ThinkingMessage | Part::ThinkingSpan => Some(Cow::Borrowed(&b""[..])),
    };
    Kind::Boundary(match id {
        None => Mark::Plain,
        Some(id) if opens => Mark::Opened(part, id),
        Some(id) => Mark::Closed(part, id),
    })
}

fn chunk<'a>(kind: ChunkKind, id: Option<Member<'a>>, bytes: &'a [u8], fields: &Fields<'a>) -> Kind<'a> {
    let tagged = fields.others.iter().any(|member| &*member.key.decoded() == b"subagentRunId");
    let unjoined = if tagged { Mark::TaggedChunk } else { Mark::Plain };
    let readable_id = match id {
        None => Some(None),
        Some(member) => text(Some(member)).map(Some),
    };
    let (Some(id), Some(delta), Some(text_bytes)) = (readable_id, fields.delta, fields.delta_text()) else {
        return Kind::Boundary(unjoined);
    };
    if fields.odd {
        return Kind::Boundary(unjoined);
    }
    let foreign_id = match kind {
        ChunkKind::Text | ChunkKind::Reasoning => fields.tool_call_id,
        ChunkKind::ToolCall => fields.message_id,
    };
    let bare = fields.others.is_empty() && fields.noted == 0;
    let plain = bare && foreign_id.is_none() && fields.metadata.is_none();
    Kind::Chunk(Chunk { kind, id, text: text_bytes, head: head(bytes, delta, false), plain, tagged })
}

/// The event that ends an open part.
pub fn part_end(part: Part, id: &[u8]) -> Vec<u8> {
    let (name, key) = match part {
        Part::Text => ("TEXT_MESSAGE_END", "messageId"),
        Part::ReasoningMessage => ("REASONING_MESSAGE_END", "messageId"),
        Part::ReasoningSpan => ("REASONING_END", "messageId"),
        Part::ThinkingMessage => ("THINKING_TEXT_MESSAGE_END", ""),
        Part::ThinkingSpan => ("THINKING_END", ""),
        Part::ToolCall => ("TOOL_CALL_END", "toolCallId"),
    };
    let mut event = format!("{{\"type\":\"{name}\"").into_bytes();
    if !key.is_empty() {
        event.extend_from_slice(format!(",\"{key}\":\"").as_bytes());
        escape_into(id, &mut event);
        event.push(b'"');
    }
    event.push(b'}');
    event
}

/// The event that ends a run which did not end well.
pub fn run_error(code: &str, message: &str) -> Vec<u8> {
    let mut event = b"{\"type\":\"RUN_ERROR\",\"message\":\"".to_vec();
    escape_into(message.as_bytes(), &mut event);
    event.extend_from_slice(b"\",\"code\":\"");
    escape_into(code.as_bytes(), &mut event);
    event.extend_from_slice(b"\"}");
    event
}

/// Writes decoded text as the inside of a JSON string. Half a surrogate pair (three bytes that UTF-8 does not know)
/// becomes its escape again.
pub fn escape_into(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return,
            [0xed, second @ 0xa0..=0xbf, third, tail @ ..] => {
                let code = 0xd000 | u32::from(second & 0x3f) << 6 | u32::from(third & 0x3f);
                out.extend_from_slice(format!("\\u{code:04x}").as_bytes());
                tail
            }
            [byte, tail @ ..] => {
                match byte {
                    b'"' | b'\\' => out.extend([b'\\', *byte]),
                    b'\n' => out.extend_from_slice(b"\\n"),
                    b'\r' => out.extend_from_slice(b"\\r"),
                    b'\t' => out.extend_from_slice(b"\\t"),
                    0..=0x1f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                    _ => out.push(*byte),
                }
                tail
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(event: &str) -> Kind<'static> {
        let (bytes, scratch) = (event.as_bytes().to_vec().leak(), Box::leak(Box::default()));
        read(bytes, scratch).unwrap().kind
    }

    fn delta(event: &str) -> Delta<'static> {
        match kind(event) {
            Kind::Delta(delta) => delta,
            other => panic!("{event} is {other:?}"),
        }
    }

    #[test]
    fn a_delta_is_found_in_any_member_order() {
        let orders = [
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x\n"}"#,
            r#"{"delta":"x\n","messageId":"m","type":"TEXT_MESSAGE_CONTENT"}"#,
            r#" { "delta" : "x\n" , "type":"TEXT_MESSAGE_CONTENT", "messageId":"\u006d" } "#,
            r#"{"t\u0079pe":"TEXT_MESSAGE_\u0043ONTENT","messageId":"m","delta":"x\n"}"#,
        ];
        for order in orders {
            let delta = delta(order);
            assert_eq!(
                (delta.kind, &*delta.id, delta.text),
                (DeltaKind::Text, &b"m"[..], &br"x\n"[..]),
                "{order}"
            );
            assert_eq!(&*delta.same, b"", "{order}");
            let joined = format!("{}{}\"}}", String::from_utf8_lossy(&delta.head), r"x\n");
            let original: serde_json::Value = serde_json::from_str(order).unwrap();
            assert_eq!(serde_json::from_str::<serde_json::Value>(&joined).unwrap(), original, "{order}");
        }
    }

    #[test]
    fn what_cannot_be_joined_passes_as_it_is() {
        let odd = [
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x","delta":"y"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","messageI\u0064":"m","delta":"x"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x","z":1,"z":1}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","delta":"x"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":1,"delta":"x"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":null}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x","metadata":null}"#,
            r#"{"type":"TOOL_CALL_ARGS","messageId":"m","delta":"x"}"#,
            r#"{"type":"NO_SUCH_TYPE","messageId":"m","delta":"x"}"#,
        ];
        for event in odd {
            assert_eq!(kind(event), Kind::Boundary(Mark::Plain), "{event}");
        }
    }

    #[test]
    fn what_is_no_event_is_refused_with_a_reason() {
        let cases = [
            ("[]", EventFault::Json(JsonFault::NotObject)),
            ("x", EventFault::Json(JsonFault::Syntax(0))),
            ("{\"type\":\"A\nB\"}", EventFault::Json(JsonFault::Syntax(10))),
            ("{}", EventFault::NoType),
            (r#"{"type":1}"#, EventFault::NoType),
        ];
        for (bytes, fault) in cases {
            assert_eq!(read(bytes.as_bytes(), &mut Vec::new()).err(), Some(fault), "{bytes}");
            assert!(!fault.message().is_empty());
        }
    }

    #[test]
    fn line_breaks_between_tokens_are_taken_out() {
        let mut scratch = Vec::new();
        let event = read(b"{\r\n \"type\":\r\"X\",\n\"a\":\"\\n\"\n}\r\n", &mut scratch).unwrap();
        assert_eq!(event.line, br#"{ "type":"X","a":"\n"}"#);
    }

    #[test]
    fn only_bare_chunks_are_plain() {
        let plain = |event: &str| match kind(event) {
            Kind::Chunk(chunk) => chunk.plain,
            other => panic!("{event} is {other:?}"),
        };
        assert!(plain(r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"x"}"#));
        assert!(plain(r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x"}"#));
        assert!(!plain(r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"assistant","delta":"x"}"#));
        assert!(!plain(r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"m","delta":"x","timestamp":1}"#));
        assert!(!plain(r#"{"type":"TOOL_CALL_CHUNK","messageId":"m","delta":"x"}"#));
    }

    #[test]
    fn ids_survive_being_decoded_and_written_again() {
        for id in [r"a\u0000b", r"\ud83d", r"\ude00 x", "é\u{2028}", r#"\"\\"#] {
            let decoded = Raw { bytes: id.as_bytes(), escaped: true }.decoded().into_owned();
            let end = String::from_utf8(part_end(Part::Text, &decoded)).unwrap();
            let Kind::Boundary(Mark::Closed(Part::Text, again)) = kind(&end) else { panic!("{end}") };
            assert_eq!(&*again, decoded, "{id}");
        }
    }
}
