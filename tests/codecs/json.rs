//! `wire::json` and the strings that `wire::event` writes.

use proptest::prelude::*;
use rejoin::limits::JSON_DEPTH_MAX;
use rejoin::wire::event::escape_into;
use rejoin::wire::json::{self, JsonFault, Member, Raw, Value};
use serde_json::value::RawValue;

use crate::generate::rng::Rng;
use crate::generate::spelling;
use crate::material::{self, spoil};
use crate::opinion;

/// Checks that both readers say the same about these bytes.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    let shown = bytes.escape_ascii();
    let read: Result<Vec<Member<'_>>, JsonFault> = json::members(bytes).and_then(Iterator::collect);
    match (read, opinion::object(bytes)) {
        (Ok(members), Some(pairs)) => {
            prop_assert_eq!(members.len(), pairs.len(), "{}", shown);
            for (number, (member, pair)) in members.iter().zip(&pairs).enumerate() {
                check_member(bytes, member, *pair)?;
                prop_assert_eq!(member.last, number + 1 == pairs.len(), "{}", shown);
            }
        }
        (Err(fault), None) => check_fault(bytes, fault)?,
        (read, pairs) => prop_assert!(false, "{read:?}, but {pairs:?}: {shown}"),
    }
    Ok(())
}

fn check_member(bytes: &[u8], member: &Member<'_>, (key, value): (&str, &str)) -> Result<(), TestCaseError> {
    let quoted = |raw: Raw<'_>| [b"\"", raw.bytes, b"\""].concat();
    prop_assert_eq!(quoted(member.key), key.as_bytes());
    prop_assert!(member.bytes.starts_with(key.as_bytes()) && member.bytes.ends_with(value.as_bytes()));
    check_text(member.key, key)?;
    match member.value {
        Value::Text(raw) => {
            prop_assert_eq!(quoted(raw), value.as_bytes());
            prop_assert!(bytes[member.value_offset + 1..].starts_with(raw.bytes));
            prop_assert_eq!(bytes[member.value_offset], b'"');
            check_text(raw, value)?;
        }
        Value::Object(raw) => prop_assert_eq!((raw, raw[0]), (value.as_bytes(), b'{')),
        Value::Other(raw) => {
            prop_assert_eq!(raw, value.as_bytes());
            prop_assert_ne!(raw[0], b'{');
        }
    }
    Ok(())
}

fn check_text(raw: Raw<'_>, json: &str) -> Result<(), TestCaseError> {
    prop_assert_eq!(raw.escaped, json.contains('\\'));
    if let Some(text) = opinion::text(json) {
        prop_assert_eq!(&*raw.decoded(), text.as_bytes());
    }
    Ok(())
}

fn check_fault(bytes: &[u8], fault: JsonFault) -> Result<(), TestCaseError> {
    match fault {
        JsonFault::Syntax(at) => check_place(bytes, at)?,
        JsonFault::NotUtf8(at) => {
            prop_assert_eq!(std::str::from_utf8(bytes).map_err(|fault| fault.valid_up_to()), Err(at));
        }
        JsonFault::NotObject => prop_assert_ne!(bytes.trim_ascii_start()[0], b'{'),
        JsonFault::TooDeep => {
            let opened = bytes.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
            prop_assert!(opened > JSON_DEPTH_MAX);
        }
    }
    Ok(())
}

/// What is before a fault is JSON or could become some; with the byte at fault it can't. An escape is at fault as a
/// whole, and serde_json blames the byte before a raw control character.
fn check_place(bytes: &[u8], at: usize) -> Result<(), TestCaseError> {
    let shown = bytes.escape_ascii();
    prop_assert!(at <= bytes.len(), "offset {} of {}", at, shown);
    // serde_json does not count a number that lacks a digit as unfinished.
    let before = &bytes[..at];
    prop_assert!(
        can_go_on(before) || can_go_on(&[before, b"0"].concat()),
        "the fault is before offset {} of {}",
        at,
        shown
    );
    let escape = bytes.get(at) == Some(&b'\\');
    let control = bytes.get(at + 1).is_some_and(|byte| *byte < b' ' && !can_go_on(&bytes[..at + 2]));
    prop_assert!(
        at == bytes.len() || escape || control || !can_go_on(&bytes[..=at]),
        "the fault is behind offset {} of {}",
        at,
        shown
    );
    Ok(())
}

fn can_go_on(bytes: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(bytes).map_or_else(|fault| fault.is_eof(), |_| true)
}

/// UTF-16 as it is decoded here: half a pair is the three bytes that UTF-8 does not know.
fn decoded(units: &[u16]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok(letter) => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(half) => {
                let [high, low] = half.unpaired_surrogate().to_be_bytes();
                bytes.extend([0xe0 | high >> 4, 0x80 | (high & 0xf) << 2 | low >> 6, 0x80 | low & 0x3f]);
            }
        }
    }
    bytes
}

/// Text in UTF-16, rich in halves of surrogate pairs and in what must be escaped.
fn units() -> impl Strategy<Value = Vec<u16>> {
    let unit = prop_oneof![
        4 => 0x20..0x7f_u16,
        2 => 0..0x20_u16,
        2 => prop::sample::select(vec![0x22, 0x5c, 0x2f, 0x7f, 0x2028, 0xfeff, 0xfffd, 0xffff]),
        2 => 0xd800..0xe000_u16,
        2 => prop::sample::select(vec![0xd800, 0xdbff, 0xdc00, 0xdfff]),
        1 => any::<u16>(),
    ];
    prop::collection::vec(unit, 0..40)
}

#[test]
fn a_fault_is_told_where_it_is() {
    for (json, at) in [
        ("", 0),
        ("{\"a\":", 5),
        ("{\"a\":[1,", 8),
        ("{\"a\":[1,x]}", 8),
        ("{\"a\":[\n1,\n  x]}", 12),
        ("{\"a\":\"\n\",\"b\":[]}", 6),
        ("{\n\"a\":\n[1\n2]}", 10),
        ("[1,\nx]", 4),
    ] {
        let read = json::members(json.as_bytes()).and_then(|members| members.collect::<Result<Vec<_>, _>>());
        assert_eq!(read.err(), Some(JsonFault::Syntax(at)), "{json:?}");
    }
}

#[test]
fn nesting_is_taken_up_to_the_limit() {
    for levels in [1, JSON_DEPTH_MAX - 1, JSON_DEPTH_MAX, JSON_DEPTH_MAX + 1, 1_000] {
        for (open, close) in [("[", "]"), (r#"{"]":"#, "}")] {
            let inner = if open == "[" { "" } else { "\"}\"" };
            let value = format!("{}{inner}{}", open.repeat(levels - 1), close.repeat(levels - 1));
            let value = if value.is_empty() { "1".to_owned() } else { value };
            let json = format!(r#"{{"type":"X","b":"[[[","a":{value}}}"#);
            let read: Result<Vec<_>, _> = json::members(json.as_bytes()).and_then(Iterator::collect);
            assert_eq!(read.is_ok(), levels <= JSON_DEPTH_MAX, "{levels} levels of {open}");
            check(json.as_bytes()).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn serde_json_reads_the_same_in_events(event in material::event()) {
        check(event.as_bytes())?;
        prop_assert!(opinion::event(event.as_bytes()).is_some());
    }

    #[test]
    fn serde_json_reads_the_same_in_broken_events(event in material::event(), faults in material::faults()) {
        check(&spoil(event.into_bytes(), &faults))?;
    }

    #[test]
    fn serde_json_reads_the_same_in_noise(noise in material::noise()) {
        check(&noise)?;
        check(&[b"{\"a\":", noise.as_slice(), b"}"].concat())?;
        check(&[b"{\"a\":\"", noise.as_slice(), b"\"}"].concat())?;
        check(&[b"{\"a\":[\n", noise.as_slice(), b"]}"].concat())?;
    }

    #[test]
    fn strings_are_read_as_meant_and_written_as_read(units in units(), seed in any::<u64>(), percent in 0..101_usize) {
        let spelled = spelling::string(&mut Rng::new(seed), &units, percent);
        let raw = Raw { bytes: &spelled.as_bytes()[1..spelled.len() - 1], escaped: spelled.contains('\\') };
        let meant = raw.decoded().into_owned();
        prop_assert_eq!(&meant, &decoded(&units), "{}", spelled);

        let mut written = Vec::new();
        escape_into(&meant, &mut written);
        let json = String::from_utf8([b"\"", written.as_slice(), b"\""].concat()).unwrap();
        prop_assert!(serde_json::from_str::<&RawValue>(&json).is_ok(), "{}", json);
        let again = Raw { bytes: &written, escaped: true }.decoded().into_owned();
        prop_assert_eq!(&again, &meant, "{}", json);
        if let Ok(text) = std::str::from_utf8(&meant) {
            prop_assert_eq!(opinion::text(&json), Some(text.to_owned()));
        }
    }
}
