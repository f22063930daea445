//! A user's message as AG-UI spells it: made, edited, and read for an agent that is prompted with plain parts.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Upload, quoted};
use crate::proto::turn::PromptPart;
use crate::wire::json::Raw;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    role: Option<Cow<'a, str>>,
    content: Option<&'a RawValue>,
}

/// A part of a message's content.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    text: Option<&'a RawValue>,
    source: Option<Source<'a>>,
    metadata: Option<Named>,
}

#[derive(Deserialize)]
struct Source<'a> {
    #[serde(borrow)]
    value: Option<Cow<'a, str>>,
    #[serde(rename = "mimeType")]
    media_type: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Named {
    filename: Option<String>,
}

/// The inside of a JSON string, decoded for reading: half a surrogate pair becomes U+FFFD.
pub(super) fn decoded(inside: &str) -> String {
    let raw = Raw { bytes: inside.as_bytes(), escaped: inside.contains('\\') };
    String::from_utf8_lossy(&raw.decoded()).into_owned()
}

fn string(value: &RawValue) -> Option<String> {
    Some(decoded(value.get().strip_prefix('"')?.strip_suffix('"')?))
}

/// The message's id, decoded.
pub fn id(json: &[u8]) -> Option<Vec<u8>> {
    let message: Message<'_> = serde_json::from_slice(json).ok()?;
    let inside = message.id?.get().strip_prefix('"')?.strip_suffix('"')?;
    Some(Raw { bytes: inside.as_bytes(), escaped: inside.contains('\\') }.decoded().into_owned())
}

/// Whether a message is a user's.
pub fn is_user_message(json: &[u8]) -> bool {
    serde_json::from_slice::<Message<'_>>(json).is_ok_and(|message| message.role.as_deref() == Some("user"))
}

/// A user's message. `text` is a JSON string as it was written.
pub fn user_message(id: &str, text: Option<&str>, files: &[Upload]) -> Vec<u8> {
    let parts: Vec<String> = files.iter().map(file_part).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    written(id, text, &parts)
}

fn written(id: &str, text: Option<&str>, parts: &[&str]) -> Vec<u8> {
    let content = match text {
        Some(text) if parts.is_empty() => text.to_owned(),
        text => {
            let text = text.map(|text| format!("{{\"type\":\"text\",\"text\":{text}}}"));
            let all: Vec<&str> = text.as_deref().into_iter().chain(parts.iter().copied()).collect();
            format!("[{}]", all.join(","))
        }
    };
    format!("{{\"id\":\"{id}\",\"role\":\"user\",\"content\":{content}}}").into_bytes()
}

fn file_part(file: &Upload) -> String {
    let kind = match file.media_type.split('/').next() {
        Some(kind @ ("image" | "audio" | "video")) => kind,
        Some(_) | None => "document",
    };
    let text = |text: &str| String::from_utf8(quoted(text)).unwrap_or_default();
    format!(
        "{{\"type\":\"{kind}\",\"source\":{{\"type\":\"data\",\"value\":\"{}\",\"mimeType\":{}}},\"metadata\":{{\"filename\":{}}}}}",
        file.base64,
        text(&file.media_type),
        text(&file.name)
    )
}

/// The message with another text; its files stay.
pub fn edited(json: &[u8], id: &str, text: &str) -> Vec<u8> {
    let message = serde_json::from_slice::<Message<'_>>(json).ok();
    let content = message.and_then(|message| message.content);
    let parts: Vec<&RawValue> =
        content.and_then(|content| serde_json::from_str(content.get()).ok()).unwrap_or_default();
    let files: Vec<&str> = parts
        .into_iter()
        .map(RawValue::get)
        .filter(|part| {
            serde_json::from_str::<Part<'_>>(part).is_ok_and(|part| part.kind.as_deref() != Some("text"))
        })
        .collect();
    written(id, Some(text), &files)
}

/// A message as parts of a prompt.
pub fn prompt(json: &[u8]) -> Vec<PromptPart> {
    let Ok(message) = serde_json::from_slice::<Message<'_>>(json) else { return Vec::new() };
    let Some(content) = message.content else { return Vec::new() };
    if let Some(text) = string(content) {
        return vec![PromptPart::Text(text)];
    }
    let parts: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    parts.into_iter().filter_map(|part| prompt_part(part.get())).collect()
}

fn prompt_part(json: &str) -> Option<PromptPart> {
    let part: Part<'_> = serde_json::from_str(json).ok()?;
    if let Some(text) = part.text {
        return string(text).map(PromptPart::Text);
    }
    let source = part.source?;
    Some(PromptPart::File {
        name: part.metadata.and_then(|named| named.filename).unwrap_or_else(|| "file".to_owned()),
        media_type: source.media_type?.into_owned(),
        base64: source.value?.into_owned(),
    })
}
