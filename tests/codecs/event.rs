//! `wire::event`: which bytes are an event, and what becomes of them.

use proptest::prelude::*;
use rejoin::proto::event::Kind;
use rejoin::wire::event::pattern::Patterns;
use rejoin::wire::event::{self, EventFault};

use crate::material::{self, spoil};
use crate::opinion;

/// Checks what is read against the second opinion.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    let shown = bytes.escape_ascii();
    let mut scratch = Vec::new();
    let read = event::read(bytes, &mut scratch);
    prop_assert_eq!(read.is_ok(), opinion::event(bytes).is_some(), "{:?}: {}", read, shown);
    let read = match read {
        Ok(read) => read,
        Err(fault) => {
            prop_assert!(!fault.message().is_empty());
            prop_assert_eq!(
                fault == EventFault::NoType,
                opinion::object(bytes).is_some(),
                "{:?}: {}",
                fault,
                shown
            );
            return Ok(());
        }
    };
    prop_assert_eq!(read.line, on_one_line(bytes), "{}", shown);
    let (mut scratch, line) = (Vec::new(), read.line.to_vec());
    let again = event::read(&line, &mut scratch).unwrap();
    prop_assert_eq!((again.line, &again.kind), (read.line, &read.kind), "read again: {}", shown);
    check_kind(read.line, &read.kind)
}

/// The event without the white space around it and without its line breaks, all of which stand between tokens.
fn on_one_line(bytes: &[u8]) -> Vec<u8> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let from = bytes.iter().position(|byte| !is_space(byte)).unwrap();
    let to = bytes.iter().rposition(|byte| !is_space(byte)).unwrap();
    bytes[from..=to].iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect()
}

/// What a delta or a chunk is taken apart into is the event again, its text last and a delta's metadata apart.
fn check_kind(line: &[u8], kind: &Kind<'_>) -> Result<(), TestCaseError> {
    let (head, text, apart) = match kind {
        Kind::Delta(delta) => (&delta.head, delta.text, delta.attributes.is_some()),
        Kind::Chunk(chunk) => (&chunk.head, chunk.text, false),
        Kind::Boundary(_) => return Ok(()),
    };
    let again = [head, text, b"\"}"].concat();
    let mut again = opinion::object(&again).expect("parts of an event make an event").clone();
    let mut whole = opinion::object(line).expect("an event was read");
    let named = |key: &str, name: &str| opinion::text(key).as_deref() == Some(name);
    prop_assert!(named(again.last().unwrap().0, "delta"));
    whole.retain(|(key, _)| !apart || !named(key, "metadata"));
    // The key may be spelled anew where the text is moved; its place may change.
    let at = whole.iter().position(|(key, _)| named(key, "delta")).unwrap();
    let (delta, moved) = (whole.remove(at), again.pop().unwrap());
    prop_assert_eq!((delta.1, whole), (moved.1, again), "{}", line.escape_ascii());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn an_event_is_read_and_kept_byte_for_byte(event in material::event()) {
        prop_assert!(event::read(event.as_bytes(), &mut Vec::new()).is_ok());
        check(event.as_bytes())?;
    }

    #[test]
    fn white_space_around_an_event_is_dropped(
        before in "[ \t\r\n\x0c\u{b}\u{a0}\u{feff}]{0,3}",
        event in material::event(),
        behind in "[ \t\r\n\x0c\u{b}\u{a0}\u{feff}]{0,3}",
    ) {
        check([before, event, behind].concat().as_bytes())?;
    }

    #[test]
    fn serde_json_agrees_on_broken_events(event in material::event(), faults in material::faults()) {
        check(&spoil(event.into_bytes(), &faults))?;
    }

    /// A line that fits a pattern is read as it would be without, whatever came before, whatever was done to it and whatever
    /// follows it.
    #[test]
    fn patterns_change_nothing(
        events in prop::collection::vec(material::event(), 1..4),
        order in prop::collection::vec((any::<prop::sample::Index>(), material::faults(), any::<bool>()), 1..12),
        behind in "(\n.{0,20})?",
    ) {
        let mut patterns = Patterns::default();
        for (which, faults, spoilt) in order {
            let mut line = which.get(&events).clone().into_bytes();
            if spoilt {
                line = spoil(line, &faults);
            }
            let mut scratch = Vec::new();
            let plain = event::read(&line, &mut scratch);
            let input = [&line, behind.as_bytes()].concat();
            match patterns.fit(&input).filter(|fit| fit.end == line.len()) {
                Some(fit) => {
                    let fitted = patterns.event(&input, fit);
                    let plain = plain.map_err(|fault| TestCaseError::fail(format!("{fault:?} in {}", line.escape_ascii())))?;
                    prop_assert_eq!((fitted.line, fitted.kind), (plain.line, plain.kind));
                }
                None => plain.iter().for_each(|event| patterns.learn(event)),
            }
        }
    }

    #[test]
    fn serde_json_agrees_on_noise(noise in material::noise()) {
        check(&noise)?;
        check(&[b"{\"type\":\"X\",", noise.as_slice(), b"}"].concat())?;
        check(&[b"{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"", noise.as_slice(), b"\",\"delta\":\"\"}"].concat())?;
    }
}
