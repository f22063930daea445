//! `wire::body`: a producer's body is cut into the same events wherever the network cuts it, and the same fault is
//! found in the same line.

use proptest::prelude::*;
use proptest::sample::Index;
use rejoin::wire::body::{EventReader, Format};

use crate::material::{self, Cuts, spoil};

const FORMATS: [Format; 3] = [Format::Ndjson, Format::Sse, Format::Json];

/// What a body is read as: events with their lines, then the fault, if any.
type Seen = Vec<Result<(u64, Vec<u8>), (u64, String)>>;

fn read(format: Format, event_bytes_max: usize, pieces: &[&[u8]]) -> Seen {
    let mut reader = EventReader::new(format, event_bytes_max);
    let mut seen = Seen::new();
    for piece in pieces {
        let mut input = *piece;
        while let Some(item) = reader.next(&mut input) {
            seen.push(item.map(|item| (item.line, item.bytes.to_vec())).map_err(|f| (f.line(), f.message())));
        }
        assert!(input.is_empty(), "all of the input was taken");
    }
    if let Some(item) = reader.finish() {
        seen.push(item.map(|item| (item.line, item.bytes.to_vec())).map_err(|f| (f.line(), f.message())));
    }
    seen
}

/// Checks that the cuts change nothing.
fn check(format: Format, event_bytes_max: usize, body: &[u8], cuts: &Cuts) -> Result<(), TestCaseError> {
    let whole = read(format, event_bytes_max, &[body]);
    let shown = body.escape_ascii();
    prop_assert_eq!(&read(format, event_bytes_max, &cuts.pieces(body)), &whole, "{:?}: {}", format, shown);
    let single: Vec<&[u8]> = body.chunks(1).collect();
    prop_assert_eq!(&read(format, event_bytes_max, &single), &whole, "byte by byte, {:?}: {}", format, shown);
    for item in &whole {
        match item {
            Ok((_, bytes)) => prop_assert!(bytes.len() <= event_bytes_max),
            Err((line, message)) => {
                prop_assert_eq!(message.split(':').next(), Some(&*format!("line {line}")))
            }
        }
    }
    let faults = whole.iter().filter(|item| item.is_err()).count();
    prop_assert!(
        faults == 0 || faults == 1 && whole.last().is_some_and(Result::is_err),
        "a fault is the last"
    );
    Ok(())
}

/// A body that is built up line by line, with what has to be read from it.
#[derive(Default)]
struct Body {
    text: String,
    expected: Seen,
}

impl Body {
    /// An event begins at the end of what is there.
    fn expect(&mut self, lines: u64, event: &str) {
        self.expected.push(Ok((lines, event.as_bytes().to_vec())));
    }
}

/// Events as a body of this format, with what may stand between them; `choices` picks it.
fn write(format: Format, events: &[String], choices: &[Index]) -> Body {
    let mut choices = choices.iter().cycle();
    let mut pick = |from: &[&'static str]| *choices.next().unwrap().get(from);
    let mut body = Body { text: pick(&["", "\u{feff}"]).to_owned(), expected: Seen::new() };
    match format {
        Format::Ndjson => {
            for event in events {
                body.text += pick(&["", "", "\n", "\r\n", " \t\r\n"]);
                body.expect(1 + count_lines(&body.text, false), event);
                body.text += &[event, pick(&["\n", "\r\n"])].concat();
            }
        }
        Format::Sse => {
            for event in events {
                let end = pick(&["\n", "\r\n", "\r"]);
                body.text += pick(&["", "", ": note\n", "\n", "id: 7\r\nevent: data\r\n", "retry: 1\r"]);
                // A CR LF that two choices make is one line end, as it is for everybody.
                body.expect(
                    1 + count_lines(&body.text, true),
                    &event.replace("\r\n", "\n").replace('\r', "\n"),
                );
                for line in event.replace("\r\n", "\n").split(['\r', '\n']) {
                    // One space behind the colon is not the line's own.
                    let name = if line.starts_with(' ') { "data: " } else { pick(&["data: ", "data:"]) };
                    body.text += &[name, line, end].concat();
                }
                body.text += end;
            }
            body.text += pick(&["", "data: [DONE]\n\n"]);
        }
        Format::Json => {
            body.text += "[";
            for (number, event) in events.iter().enumerate() {
                body.text += if number > 0 { "," } else { "" };
                body.text += pick(&["", " ", "\n", "\r\n\t"]);
                body.expect(1 + count_lines(&body.text, false), event);
                body.text += &[event, pick(&["", "\n", " "])].concat();
            }
            body.text += &["]", pick(&["", "\n"])].concat();
        }
    }
    body
}

/// Line ends so far; a CR alone is one for server-sent events only.
fn count_lines(text: &str, cr_alone: bool) -> u64 {
    let text = text.replace("\r\n", "\n");
    text.bytes().filter(|byte| *byte == b'\n' || cr_alone && *byte == b'\r').count() as u64
}

fn choices() -> impl Strategy<Value = Vec<Index>> {
    prop::collection::vec(any::<Index>(), 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn events_come_out_as_they_went_in(events in material::events(true), choices in choices(), cuts in material::cuts()) {
        for format in FORMATS {
            let on_lines = format == Format::Ndjson;
            let events: Vec<String> =
                events.iter().map(|event| if on_lines { event.replace(['\r', '\n'], " ") } else { event.clone() }).collect();
            let Body { text, expected } = write(format, &events, &choices);
            prop_assert_eq!(&read(format, 1 << 20, &[text.as_bytes()]), &expected, "{:?}: {:?}", format, text);
            check(format, 1 << 20, text.as_bytes(), &cuts)?;
        }
    }

    #[test]
    fn one_event_is_a_json_body(event in material::event(), cuts in material::cuts()) {
        let body = format!("\r\n {event}\n");
        prop_assert_eq!(read(Format::Json, 1 << 20, &[body.as_bytes()]), [Ok((2, event.into_bytes()))]);
        check(Format::Json, 1 << 20, body.as_bytes(), &cuts)?;
    }

    #[test]
    fn cuts_change_no_fault_and_no_line(
        events in material::events(true),
        choices in choices(),
        faults in material::faults(),
        cuts in material::cuts(),
        event_bytes_max in prop_oneof![Just(1 << 20), 40..300_usize],
    ) {
        for format in FORMATS {
            let body = spoil(write(format, &events, &choices).text.into_bytes(), &faults);
            check(format, event_bytes_max, &body, &cuts)?;
        }
    }

    #[test]
    fn cuts_change_nothing_in_noise(noise in material::noise(), cuts in material::cuts(), event_bytes_max in 1..60_usize) {
        for format in FORMATS {
            check(format, event_bytes_max, &noise, &cuts)?;
        }
    }
}
