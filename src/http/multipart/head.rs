//! A part's head: the few fields that a form's part has (RFC 7578, sections 4.2 to 4.8).

use memchr::memmem;

use super::fault::PartFault;
use super::{PART_HEAD_BYTES_MAX, Part, parameters};
use crate::http::scan::is_token;

/// The encodings that change nothing.
const PLAIN_ENCODINGS: [&str; 3] = ["binary", "8bit", "7bit"];

/// Reads what stands between two delimiters.
pub(super) fn part(bytes: &[u8]) -> Result<Part<'_>, PartFault> {
    let (head, content) = split(bytes)?;
    let head = std::str::from_utf8(head).map_err(|_| PartFault::NotUtf8)?;
    let mut fields = Fields::default();
    for line in head.split_terminator("\r\n") {
        fields.take(line)?;
    }
    let disposition = fields.disposition.ok_or(PartFault::NoDisposition)?;
    let (name, file_name) = names(disposition)?;
    Ok(Part { name, file_name, content_type: fields.content_type.map(str::to_owned), bytes: content })
}

/// The head, with the line end of its last line, and the content behind the empty line.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), PartFault> {
    if let Some(content) = bytes.strip_prefix(b"\r\n") {
        return Ok((&[], content));
    }
    let window = bytes.get(..PART_HEAD_BYTES_MAX + 2).unwrap_or(bytes);
    match memmem::find(window, b"\r\n\r\n") {
        Some(end) => {
            let (head, content) = bytes.split_at_checked(end + 2).ok_or(PartFault::HeadOpen)?;
            Ok((head, content.strip_prefix(b"\r\n").unwrap_or(content)))
        }
        None if window.len() < bytes.len() => Err(PartFault::HeadTooLong),
        // A part without content may go without the empty line (RFC 2046, section 5.1.1).
        None if bytes.is_empty() || bytes.ends_with(b"\r\n") => Ok((bytes, &[])),
        None => Err(PartFault::HeadOpen),
    }
}

/// What the lines of a head have said so far.
#[derive(Default)]
struct Fields<'a> {
    disposition: Option<&'a str>,
    content_type: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn take(&mut self, line: &'a str) -> Result<(), PartFault> {
        let (name, value) = line.split_once(':').ok_or(PartFault::HeadLine)?;
        let control = |c: char| c.is_ascii_control() && c != '\t';
        if name.is_empty() || !name.bytes().all(is_token) || value.contains(control) {
            return Err(PartFault::HeadLine);
        }
        let value = value.trim_matches([' ', '\t']);
        let twice = if name.eq_ignore_ascii_case("content-disposition") {
            self.disposition.replace(value).map(|_| "Content-Disposition")
        } else if name.eq_ignore_ascii_case("content-type") {
            self.content_type.replace(value).map(|_| "Content-Type")
        } else if name.eq_ignore_ascii_case("content-transfer-encoding")
            && !PLAIN_ENCODINGS.iter().any(|plain| value.eq_ignore_ascii_case(plain))
        {
            return Err(PartFault::Encoded);
        } else {
            None
        };
        twice.map_or(Ok(()), |field| Err(PartFault::Twice(field)))
    }
}

/// The field's name and the file's, out of a Content-Disposition.
fn names(disposition: &str) -> Result<(String, Option<String>), PartFault> {
    let (kind, behind) = disposition.split_at(disposition.find(';').unwrap_or(disposition.len()));
    if !kind.trim_matches([' ', '\t']).eq_ignore_ascii_case("form-data") {
        return Err(PartFault::NotFormData);
    }
    let (mut name, mut file_name, mut extended) = (None, None, None);
    for (parameter, value) in parameters::parse(behind).ok_or(PartFault::Parameters)? {
        let slots = [("name", &mut name), ("filename", &mut file_name), ("filename*", &mut extended)];
        let slot = slots.into_iter().find(|(known, _)| parameter.eq_ignore_ascii_case(known));
        if let Some((known, slot)) = slot
            && slot.replace(value).is_some()
        {
            return Err(PartFault::Twice(known));
        }
    }
    let file_name = match (file_name, extended) {
        (None, Some(extended)) => Some(decode_extended(&extended).ok_or(PartFault::FileNameCoding)?),
        // A form may not use filename* at all (RFC 7578, section 4.2); a client that does so beside filename knows.
        (file_name, _) => file_name,
    };
    Ok((name.ok_or(PartFault::NoName)?, file_name))
}

/// Decodes `UTF-8'language'percent-encoded` (RFC 8187, section 3.2.1).
fn decode_extended(value: &str) -> Option<String> {
    let (charset, behind) = value.split_once('\'')?;
    let (_language, text) = behind.split_once('\'')?;
    if !charset.eq_ignore_ascii_case("utf-8") {
        return None;
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => {
                let (high, low) = (chars.next()?.to_digit(16)?, chars.next()?.to_digit(16)?);
                decoded.push(u8::try_from(high << 4 | low).ok()?);
            }
            plain => decoded.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    String::from_utf8(decoded).ok()
}
