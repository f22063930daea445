//! What an agent is asked, as ACP's content blocks. A file goes in the best form that the agent says it can take; if it
//! takes none, it at least reads that there was one.

use agent_client_protocol_schema::v1 as acp;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::turns::PromptPart;

/// The blocks of a prompt.
pub(super) fn blocks(parts: &[PromptPart], can: &acp::PromptCapabilities) -> Vec<acp::ContentBlock> {
    let block = |part: &PromptPart| match part {
        PromptPart::Text(text) => text_block(text.clone()),
        PromptPart::File { name, media_type, base64 } => file_block(name, media_type, base64, can),
    };
    parts.iter().map(block).collect()
}

fn text_block(text: String) -> acp::ContentBlock {
    acp::ContentBlock::Text(acp::TextContent::new(text))
}

fn file_block(
    name: &str,
    media_type: &str,
    base64: &str,
    can: &acp::PromptCapabilities,
) -> acp::ContentBlock {
    if can.image && media_type.starts_with("image/") {
        acp::ContentBlock::Image(acp::ImageContent::new(base64, media_type).uri(uri(name)))
    } else if can.audio && media_type.starts_with("audio/") {
        acp::ContentBlock::Audio(acp::AudioContent::new(base64, media_type))
    } else if can.embedded_context {
        acp::ContentBlock::Resource(acp::EmbeddedResource::new(resource(name, media_type, base64)))
    } else {
        text_block(format!(
            "[The file {name} ({media_type}) was attached here, but you take no files of this kind.]"
        ))
    }
}

fn resource(name: &str, media_type: &str, base64: &str) -> acp::EmbeddedResourceResource {
    let text = is_text(media_type).then(|| BASE64_STANDARD.decode(base64).ok()).flatten();
    match text.and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(text) => acp::EmbeddedResourceResource::TextResourceContents(
            acp::TextResourceContents::new(text, uri(name)).mime_type(media_type.to_owned()),
        ),
        None => acp::EmbeddedResourceResource::BlobResourceContents(
            acp::BlobResourceContents::new(base64, uri(name)).mime_type(media_type.to_owned()),
        ),
    }
}

/// Whether a file is worth trying as text; what is no UTF-8 is sent as bytes all the same.
fn is_text(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.starts_with("text/")
        || ["json", "xml", "yaml", "javascript"].iter().any(|kind| {
            essence.strip_suffix(kind).is_some_and(|rest| rest.ends_with('/') || rest.ends_with('+'))
        })
}

/// A URI for a file that exists nowhere but in the prompt.
fn uri(name: &str) -> String {
    let mut uri = "attachment:///".to_owned();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(part: PromptPart, can: &acp::PromptCapabilities, expected: Value) {
        assert_eq!(serde_json::to_value(blocks(&[part], can)).unwrap(), json!([expected]));
    }

    fn file(name: &str, media_type: &str, bytes: &[u8]) -> PromptPart {
        let base64 = BASE64_STANDARD.encode(bytes);
        PromptPart::File { name: name.to_owned(), media_type: media_type.to_owned(), base64 }
    }

    #[test]
    fn a_file_goes_in_the_best_form_that_the_agent_takes() {
        let none = acp::PromptCapabilities::new();
        let all = none.clone().image(true).audio(true).embedded_context(true);
        check(PromptPart::Text("hi".to_owned()), &none, json!({"type": "text", "text": "hi"}));
        check(
            file("a b.png", "image/png", b"p"),
            &all,
            json!({"type": "image", "data": "cA==", "mimeType": "image/png", "uri": "attachment:///a%20b.png"}),
        );
        check(
            file("a.mp3", "audio/mpeg", b"p"),
            &all,
            json!({"type": "audio", "data": "cA==", "mimeType": "audio/mpeg"}),
        );
        for (media_type, bytes, content) in [
            ("text/plain", "ä".as_bytes(), json!({"text": "ä"})),
            ("application/ld+json; charset=utf-8", b"{}", json!({"text": "{}"})),
            ("text/plain", b"\xff", json!({"blob": "/w=="})),
            ("application/pdf", b"p", json!({"blob": "cA=="})),
        ] {
            let mut resource = json!({"uri": "attachment:///f", "mimeType": media_type});
            resource.as_object_mut().unwrap().extend(content.as_object().unwrap().clone());
            let expected = json!({"type": "resource", "resource": resource});
            check(file("f", media_type, bytes), &all, expected);
        }
        let words = "[The file x.png (image/png) was attached here, but you take no files of this kind.]";
        check(file("x.png", "image/png", b"p"), &none, json!({"type": "text", "text": words}));
    }
}
