//! The page: what a person sees of a run, made from its events.
//!
//! A page is a fold over events, so a snapshot's page begins with what is already on the screen, and only the rest
//! has to be printed. Where it does not, the whole page is printed again below a separator.

use std::io::{self, Write};

use rejoin::client::Notice;
use rejoin::proto::id::RunId;
use rejoin::wire::json::{self, Value};

/// Terminal codes for dim and ordinary text (ECMA-48, SGR 2 and 0).
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

const SEPARATOR: &str = "\n\n--- the answer so far ---\n\n";

/// Prints a run's page as it grows.
pub(super) struct Printer<W> {
    out: W,
    terminal: bool,
    run: Option<RunId>,
    page: Page,
    /// Bytes of the page that were printed.
    printed: usize,
    /// Whether what was printed ends in dim text.
    dim: bool,
}

impl<W: Write> Printer<W> {
    pub(super) fn new(out: W, terminal: bool) -> Printer<W> {
        Printer { out, terminal, run: None, page: Page::new(terminal), printed: 0, dim: false }
    }

    /// Prints what a notice adds to the page.
    pub(super) fn show(&mut self, notice: &Notice) -> io::Result<()> {
        match notice {
            Notice::Event(event) => {
                self.run = Some(event.run);
                self.page.apply(event.event.get().as_bytes());
                self.print()
            }
            Notice::Snapshot(snapshot) => {
                let mut page = Page::new(self.terminal);
                for event in &snapshot.events {
                    page.apply(event.get().as_bytes());
                }
                let shown = self.page.text.get(..self.printed).unwrap_or_default();
                let same_run = self.run.is_none_or(|run| run == snapshot.run);
                if self.printed > 0 && !(same_run && page.text.starts_with(shown)) {
                    self.out.write_all(SEPARATOR.as_bytes())?;
                    self.printed = 0;
                    self.dim = false;
                }
                self.run = Some(snapshot.run);
                self.page = page;
                self.print()
            }
            _ => Ok(()),
        }
    }

    /// Whether the cursor of a terminal stands behind text.
    pub(super) fn in_mid_line(&self) -> bool {
        !self.page.at_line_start()
    }

    fn print(&mut self) -> io::Result<()> {
        let rest = self.page.text.get(self.printed..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        // The terminal is never left dim: the process may be stopped at any time.
        let before = if self.dim { DIM } else { "" };
        let after = if self.page.dim { PLAIN } else { "" };
        write!(self.out, "{before}{rest}{after}")?;
        self.dim = self.page.dim;
        self.printed = self.page.text.len();
        self.out.flush()
    }
}

/// Who writes on the page.
#[derive(PartialEq)]
enum Voice {
    Nobody,
    Text(Vec<u8>),
    Reasoning(Vec<u8>),
}

struct Page {
    text: String,
    terminal: bool,
    dim: bool,
    voice: Voice,
    /// The first half of a surrogate pair, whose other half has yet to come.
    half: Option<u16>,
    /// The tool call that was named last.
    tool: Vec<u8>,
}

/// The members of an event that matter here, decoded.
#[derive(Default)]
struct Members {
    kind: Vec<u8>,
    message: Option<Vec<u8>>,
    delta: Vec<u8>,
    tool: Vec<u8>,
    tool_name: Option<Vec<u8>>,
    error: Vec<u8>,
}

impl Members {
    /// Whatever can't be read is not there: a page shows what it understands.
    fn of(event: &[u8]) -> Members {
        let mut found = Members::default();
        for member in json::members(event).into_iter().flatten().map_while(Result::ok) {
            let Value::Text(text) = member.value else { continue };
            let text = || text.decoded().into_owned();
            match &*member.key.decoded() {
                b"type" => found.kind = text(),
                b"messageId" => found.message = Some(text()),
                b"delta" => found.delta = text(),
                b"toolCallId" => found.tool = text(),
                b"toolCallName" => found.tool_name = Some(text()),
                b"message" => found.error = text(),
                _ => {}
            }
        }
        found
    }
}

impl Page {
    fn new(terminal: bool) -> Page {
        let (text, tool) = (String::new(), Vec::new());
        Page { text, terminal, dim: false, voice: Voice::Nobody, half: None, tool }
    }

    fn apply(&mut self, event: &[u8]) {
        let members = Members::of(event);
        match members.kind.as_slice() {
            b"TEXT_MESSAGE_CONTENT" | b"TEXT_MESSAGE_CHUNK" => {
                let voice = match (members.message, &self.voice) {
                    (Some(id), _) => Voice::Text(id),
                    (None, Voice::Text(id)) => Voice::Text(id.clone()),
                    (None, _) => Voice::Text(Vec::new()),
                };
                self.delta(voice, &members.delta);
            }
            b"REASONING_MESSAGE_CONTENT" | b"REASONING_MESSAGE_CHUNK" | b"THINKING_TEXT_MESSAGE_CONTENT"
                if self.terminal =>
            {
                let voice = match (members.message, &self.voice) {
                    (Some(id), _) => Voice::Reasoning(id),
                    (None, Voice::Reasoning(id)) => Voice::Reasoning(id.clone()),
                    (None, _) => Voice::Reasoning(Vec::new()),
                };
                self.delta(voice, &members.delta);
            }
            b"TOOL_CALL_START" | b"TOOL_CALL_CHUNK" => {
                if let Some(name) = members.tool_name
                    && self.tool != members.tool
                {
                    self.remark("tool", &name);
                    self.tool = members.tool;
                }
            }
            b"RUN_ERROR" => self.remark("error:", &members.error),
            _ => {}
        }
    }

    fn delta(&mut self, voice: Voice, delta: &[u8]) {
        if delta.is_empty() {
            return;
        }
        if self.voice != voice {
            self.speak(voice);
        }
        self.decoded(delta);
    }

    /// A line of its own that says what happened.
    fn remark(&mut self, what: &str, name: &[u8]) {
        self.speak(Voice::Nobody);
        self.push(&format!("[{what} {}]", String::from_utf8_lossy(name)).replace('\n', " "));
        self.text.push('\n');
    }

    /// Another voice begins, on a line of its own.
    fn speak(&mut self, voice: Voice) {
        self.drop_half();
        let dim = matches!(voice, Voice::Reasoning(_));
        if self.dim && !dim {
            self.text += PLAIN;
        }
        if !self.at_line_start() {
            self.text.push('\n');
        }
        if dim && !self.dim {
            self.text += DIM;
        }
        self.dim = dim;
        self.voice = voice;
    }

    fn at_line_start(&self) -> bool {
        let text = self.text.strip_suffix(PLAIN).unwrap_or(&self.text);
        text.is_empty() || text.ends_with('\n')
    }

    /// Text whose halves of surrogate pairs are three bytes each: two that meet are a character.
    fn decoded(&mut self, mut text: &[u8]) {
        if let Some(high) = self.half
            && let Some((low @ 0xdc00..=0xdfff, rest)) = surrogate(text)
        {
            self.half = None;
            text = rest;
            let pair = [high, low];
            self.text.extend(char::decode_utf16(pair).filter_map(Result::ok));
        }
        self.drop_half();
        if let Some((rest, end)) = text.split_last_chunk::<3>()
            && let Some((high @ 0xd800..=0xdbff, _)) = surrogate(end)
        {
            self.half = Some(high);
            text = rest;
        }
        self.push(&String::from_utf8_lossy(text));
    }

    fn drop_half(&mut self) {
        if self.half.take().is_some() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// An agent's text must not steer the terminal.
    fn push(&mut self, text: &str) {
        let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        if self.terminal && text.contains(steers) {
            self.text += &text.replace(steers, "\u{fffd}");
        } else {
            self.text += text;
        }
    }
}

/// The half of a surrogate pair that a text begins with, and what is behind it.
fn surrogate(text: &[u8]) -> Option<(u16, &[u8])> {
    match text {
        [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, rest @ ..] => {
            let half = 0xd000 | (u16::from(second & 0x3f) << 6) | u16::from(third & 0x3f);
            Some((half, rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rejoin::client::frame::{Event, Snapshot};
    use rejoin::proto::id::Seq;
    use serde_json::value::RawValue;

    use super::*;

    fn raw(event: &str) -> Box<RawValue> {
        RawValue::from_string(event.to_owned()).unwrap()
    }

    fn text(id: &str, delta: &str) -> String {
        format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"{id}","delta":"{delta}"}}"#)
    }

    fn thought(delta: &str) -> String {
        format!(r#"{{"type":"REASONING_MESSAGE_CONTENT","messageId":"r","delta":"{delta}"}}"#)
    }

    fn event(event: &str) -> Notice {
        Notice::Event(Event { run: RunId::from_bits(1), seq: Seq(1), event: raw(event) })
    }

    fn snapshot(run: u128, events: &[String]) -> Notice {
        let events = events.iter().map(|event| raw(event)).collect();
        Notice::Snapshot(Snapshot { run: RunId::from_bits(run), seq: Seq(1), events })
    }

    fn check(terminal: bool, notices: &[Notice], expected: &str) {
        let mut printer = Printer::new(Vec::new(), terminal);
        for notice in notices {
            printer.show(notice).unwrap();
        }
        assert_eq!(String::from_utf8(printer.out).unwrap(), expected);
    }

    #[test]
    fn text_is_printed_as_it_is() {
        let chunk = r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"c\u001b"}"#;
        check(false, &[event(&text("a", "a\\n\\u0062")), event(chunk)], "a\nbc\x1b");
        check(true, &[event(&text("a", "a")), event(chunk)], "ac\u{fffd}");
    }

    #[test]
    fn messages_and_tool_calls_have_their_own_lines() {
        let tool = r#"{"type":"TOOL_CALL_START","toolCallId":"t","toolCallName":"look"}"#;
        let error = r#"{"type":"RUN_ERROR","message":"no\nluck"}"#;
        let notices =
            [text("a", "one"), text("b", "two"), tool.to_owned(), text("b", "three"), error.to_owned()]
                .map(|json| event(&json));
        check(false, &notices, "one\ntwo\n[tool look]\nthree\n[error: no luck]\n");
    }

    #[test]
    fn reasoning_is_dim_on_a_terminal_only() {
        let notices = [thought("h"), thought("m"), text("a", "x")].map(|json| event(&json));
        check(false, &notices, "x");
        check(true, &notices, "\x1b[2mh\x1b[0m\x1b[2mm\x1b[0m\x1b[2m\x1b[0m\nx");
    }

    #[test]
    fn a_snapshot_continues_what_is_there() {
        for terminal in [false, true] {
            let before = [text("a", "Hel"), text("a", "lo")].map(|json| event(&json));
            let again = snapshot(1, &[text("a", "Hello wor")]);
            let notices = [before.to_vec(), vec![again, event(&text("a", "ld"))]].concat();
            check(terminal, &notices, "Hello world");
        }
        let notices = [event(&thought("h")), snapshot(1, &[thought("hm"), text("a", "x")])];
        check(true, &notices, "\x1b[2mh\x1b[0m\x1b[2mm\x1b[0m\nx");
    }

    #[test]
    fn a_snapshot_that_differs_is_printed_whole() {
        for other in [snapshot(1, &[text("a", "Help")]), snapshot(2, &[text("a", "Help")])] {
            let notices = [event(&text("a", "Hello")), other];
            check(false, &notices, &format!("Hello{SEPARATOR}Help"));
        }
    }

    #[test]
    fn halves_of_a_character_are_put_together() {
        check(false, &[event(&text("a", "x\\ud83d")), event(&text("a", "\\ude00y"))], "x😀y");
        check(false, &[event(&text("a", "x\\ud83d")), event(&text("a", "y"))], "x\u{fffd}y");
    }
}
