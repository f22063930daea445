//! Most deltas differ from an earlier one of their run in their text alone, or in text and timestamp. What was read
//! once around the text need not be read again: a pattern holds it, and bytes that fit are a delta of the same
//! target with the text in between.
//!
//! Bytes fit only if [`super::read`] would give the very same, so patterns save work and decide nothing.

use std::borrow::Cow;
use std::ops::Range;

use crate::proto::accumulator::EntryId;
use crate::proto::event::{Delta, DeltaKind, Kind};
use crate::wire::event::Event;
use crate::wire::json::{self, Value};

/// The patterns of one producer: parallel tool calls alternate between a few.
#[derive(Debug, Default)]
pub struct Patterns {
    /// At most [`PATTERNS_MAX`].
    known: Vec<Pattern>,
    /// The one that fitted or came last.
    recent: usize,
}

const PATTERNS_MAX: usize = 4;

impl Patterns {
    /// Whether `input` begins with an event that fits a pattern, and how. What follows the event is not looked at.
    #[inline]
    pub fn fit(&mut self, input: &[u8]) -> Option<Fit> {
        let recent = self.known.get(self.recent)?;
        if let Some(fit) = recent.fit(input, self.recent) {
            return Some(fit);
        }
        let others = self.known.iter().enumerate().filter(|(number, _)| *number != self.recent);
        let fit = others.filter_map(|(number, pattern)| pattern.fit(input, number)).next()?;
        self.recent = fit.pattern;
        Some(fit)
    }

    /// The event that `input` begins with and that fits.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a fit belongs to its input and to these patterns")]
    pub fn event<'a>(&'a self, input: &'a [u8], fit: Fit) -> Event<'a> {
        let pattern = &self.known[fit.pattern];
        let kind = Kind::Delta(Delta {
            kind: pattern.kind,
            id: Cow::Borrowed(&pattern.id),
            text: &input[fit.text_start..fit.text_end],
            head: Cow::Borrowed(&input[..fit.text_start]),
            same: Cow::Borrowed(&pattern.same),
            attributes: None,
        });
        Event { line: &input[..fit.end], kind }
    }

    /// The entry of the run's text that took the last event of this fit's pattern.
    #[inline]
    pub fn entry(&self, fit: Fit) -> Option<EntryId> {
        self.known.get(fit.pattern)?.entry
    }

    /// Takes note of the entry that took the event of a fit.
    #[inline]
    pub fn note_entry(&mut self, fit: Fit, entry: Option<EntryId>) {
        if let Some(pattern) = self.known.get_mut(fit.pattern) {
            pattern.entry = entry;
        }
    }

    /// Takes note of an event that fitted none; the patterns take turns in making room.
    pub fn learn(&mut self, event: &Event<'_>) {
        if let Kind::Delta(delta) = &event.kind
            && let Some(pattern) = Pattern::of(event.line, delta)
        {
            if self.known.len() < PATTERNS_MAX {
                self.recent = self.known.len();
                return self.known.push(pattern);
            }
            self.recent = (self.recent + 1) % PATTERNS_MAX;
            if let Some(older) = self.known.get_mut(self.recent) {
                *older = pattern;
            }
        }
    }
}

/// Which pattern an event fits, and where its text is.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    pattern: usize,
    /// Offset of the text.
    pub text_start: usize,
    /// Offset behind the text.
    pub text_end: usize,
    /// Offset behind the event.
    pub end: usize,
}

/// One delta event without its text and timestamp.
#[derive(Debug)]
struct Pattern {
    /// Up to the timestamp's digits; up to the text if there is no timestamp before it.
    start: Box<[u8]>,
    /// From behind the timestamp to the text, if there is a timestamp.
    middle: Option<Box<[u8]>>,
    /// From the quote behind the text on.
    end: Box<[u8]>,
    kind: DeltaKind,
    id: Box<[u8]>,
    same: Box<[u8]>,
    /// Where the last of these deltas went in the run's text; the producer writes one run only.
    entry: Option<EntryId>,
}

impl Pattern {
    /// The pattern of a delta whose text stands last and that has no metadata: its entry starts with its own bytes.
    fn of(line: &[u8], delta: &Delta<'_>) -> Option<Pattern> {
        let Cow::Borrowed(head) = delta.head else { return None };
        if delta.attributes.is_some() {
            return None;
        }
        let (start, middle) = match timestamp(line) {
            Some(digits) if digits.end <= head.len() => (head.get(..digits.start)?, head.get(digits.end..)),
            Some(_) | None => (head, None),
        };
        Some(Pattern {
            start: start.into(),
            middle: middle.map(Box::from),
            end: line.get(head.len() + delta.text.len()..)?.into(),
            kind: delta.kind,
            id: Box::from(&*delta.id),
            same: Box::from(&*delta.same),
            entry: None,
        })
    }

    #[inline]
    fn fit(&self, input: &[u8], number: usize) -> Option<Fit> {
        let mut rest = input.strip_prefix(&*self.start)?;
        if let Some(middle) = &self.middle {
            rest = behind_digits(rest)?.strip_prefix(&**middle)?;
        }
        let text_start = input.len() - rest.len();
        let text_end = json::text_end(input, text_start)?;
        input.get(text_end..)?.starts_with(&self.end).then_some(Fit {
            pattern: number,
            text_start,
            text_end,
            end: text_end + self.end.len(),
        })
    }
}

/// Where the digits of a timestamp are that is a plain whole number.
fn timestamp(line: &[u8]) -> Option<Range<usize>> {
    let mut digits = None;
    for member in json::members(line).ok()? {
        let member = member.ok()?;
        if let (b"timestamp", Value::Other(value)) = (&*member.key.decoded(), member.value) {
            behind_digits(value)?.is_empty().then_some(())?;
            digits = Some(member.value_offset..member.value_offset + value.len());
        }
    }
    digits
}

/// What follows a whole number as JSON writes it.
#[inline]
fn behind_digits(bytes: &[u8]) -> Option<&[u8]> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || bytes.starts_with(b"0") {
        return None;
    }
    bytes.get(digits..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::event;

    /// Reads all lines with patterns and without; tells how many fitted one.
    fn fitting(lines: &[&str]) -> usize {
        let mut patterns = Patterns::default();
        let mut fitted = 0;
        for line in lines {
            let (mut scratch, line) = (Vec::new(), line.as_bytes());
            let plain = event::read(line, &mut scratch);
            match patterns.fit(line).filter(|fit| fit.end == line.len()) {
                Some(fit) => {
                    let event = patterns.event(line, fit);
                    let plain = plain.unwrap_or_else(|fault| panic!("{line:?}: {fault:?}"));
                    assert_eq!((event.line, event.kind), (plain.line, plain.kind));
                    fitted += 1;
                }
                None => {
                    if let Ok(event) = &plain {
                        patterns.learn(event);
                    }
                }
            }
        }
        fitted
    }

    #[test]
    fn what_differs_in_text_and_timestamp_fits() {
        assert_eq!(
            fitting(&[
                r#"{"type":"TEXT_MESSAGE_CONTENT","timestamp":1796093391300,"messageId":"m","delta":"a"}"#,
                r#"{"type":"TEXT_MESSAGE_CONTENT","timestamp":1,"messageId":"m","delta":"\u00e9 \"é\""}"#,
                r#"{"type":"TEXT_MESSAGE_CONTENT","timestamp":22,"messageId":"m","delta":""}"#,
            ]),
            2
        );
        assert_eq!(
            fitting(&[
                r#"{"delta":"a","type":"TOOL_CALL_ARGS","toolCallId":"t"}"#,
                r#"{"type":"TOOL_CALL_ARGS","toolCallId":"t","delta":"x"}"#,
                r#"{"type":"TOOL_CALL_ARGS","toolCallId":"u","delta":"x"}"#,
                r#"{"type":"TOOL_CALL_ARGS","toolCallId":"t","delta":"y"}"#,
                r#"{"type":"TOOL_CALL_ARGS","toolCallId":"u","delta":"y"}"#,
            ]),
            2
        );
    }

    #[test]
    fn what_differs_in_more_does_not() {
        let begins = r#"{"type":"TEXT_MESSAGE_CONTENT","timestamp":12,"messageId":"m","n":{"timestamp":7},"delta":"a"}"#;
        let others = [
            begins.replace(":12,", ":012,"),
            begins.replace(":12,", ":1.5,"),
            begins.replace(":12,", ":,"),
            begins.replace(":12,", ":null,"),
            begins.replace(":7}", ":8}"),
            begins.replace("\"a\"", "\"a\",\"delta\":\"b\""),
            begins.replace("\"a\"", "\"\\\""),
            begins.replace("\"a\"", "\"\\x\""),
            begins.replace("\"a\"", "\"\u{1}\""),
            begins.replace("\"a\"", ""),
            begins.replace("\"a\"", "\""),
        ];
        for other in &others {
            assert_eq!(fitting(&[begins, other]), 0, "{other}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_fit_nothing() {
        let begins = br#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}"#;
        let mut scratch = Vec::new();
        let mut patterns = Patterns::default();
        patterns.learn(&event::read(begins, &mut scratch).unwrap());
        let mut broken = begins.to_vec();
        let at = broken.iter().rposition(|byte| *byte == b'a').unwrap();
        broken[at] = 0xff;
        assert!(patterns.fit(begins).is_some() && patterns.fit(&broken).is_none());
    }
}
