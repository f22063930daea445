//! `client::sse` and `client::frame`: what a client makes of a stream, wherever it is cut, and whether it and the server
//! mean the same by a server-sent event.

use proptest::prelude::*;
use proptest::sample::Index;
use rejoin::client::frame::Frame;
use rejoin::client::sse::{Item, Parser, TooLong};
use rejoin::wire::body::{EventReader, Format};

use crate::material::{self, Cuts, spoil};

/// Messages in order, comments as `None`, and whether it ended as too long.
pub(crate) fn read(bytes_max: usize, pieces: &[&[u8]]) -> (Vec<Option<Vec<u8>>>, bool) {
    let mut parser = Parser::new(bytes_max);
    let mut seen = Vec::new();
    for piece in pieces {
        let mut input = *piece;
        loop {
            match parser.next(&mut input) {
                Ok(Some(Item::Message(data))) => seen.push(Some(data.to_vec())),
                Ok(Some(Item::LifeSign)) => seen.push(None),
                Ok(None) => break,
                Err(TooLong) => return (seen, true),
            }
        }
        assert!(input.is_empty(), "all of the input was taken");
    }
    (seen, false)
}

/// Checks that the cuts change nothing.
fn check(bytes_max: usize, stream: &[u8], cuts: &Cuts) -> Result<(), TestCaseError> {
    let whole = read(bytes_max, &[stream]);
    let shown = stream.escape_ascii();
    prop_assert_eq!(&read(bytes_max, &cuts.pieces(stream)), &whole, "{}", shown);
    prop_assert_eq!(
        &read(bytes_max, &stream.chunks(1).collect::<Vec<_>>()),
        &whole,
        "byte by byte: {}",
        shown
    );
    Ok(())
}

/// Checks that the reader of producers' bodies finds the same messages in a stream that ends in an empty line. That
/// one skips what is blank and the `[DONE]` of another format.
fn check_agreement(stream: &[u8]) -> Result<(), TestCaseError> {
    let stream = [stream, b"\n\n"].concat();
    let is_event = |data: &Vec<u8>| !data.trim_ascii().is_empty() && data.trim_ascii() != b"[DONE]";
    let ours: Vec<Vec<u8>> = read(1 << 20, &[&stream]).0.into_iter().flatten().filter(is_event).collect();
    let mut reader = EventReader::new(Format::Sse, 1 << 20);
    let mut theirs = Vec::new();
    let mut input = stream.as_slice();
    while let Some(item) = reader.next(&mut input) {
        theirs.push(item.unwrap().bytes.to_vec());
    }
    prop_assert_eq!(ours, theirs, "{}", stream.escape_ascii());
    Ok(())
}

/// Messages as a stream, each line end as the choices say.
fn write(messages: &[String], choices: &[Index]) -> Vec<u8> {
    let mut choices = choices.iter().cycle();
    let mut pick = |from: &[&'static str]| *choices.next().unwrap().get(from);
    let mut stream = pick(&["", "\u{feff}"]).to_owned();
    for message in messages {
        stream += pick(&["", "", "id: 1\n", "event: message\r\n", "retry: 5\r"]);
        let end = pick(&["\n", "\r\n", "\r"]);
        for line in message.split('\n') {
            stream += &[pick(&["data: ", "data: ", "data:"]), line, end].concat();
        }
        stream += end;
        stream += pick(&["", "", ": keep-alive\n\n"]);
    }
    stream.into_bytes()
}

/// Text whose lines do not begin with a space, which a missing one behind `data:` would take for its own.
fn messages() -> impl Strategy<Value = Vec<String>> {
    let line = "([a-z{\"é日👩\u{2028}\u{feff}:][a-z {\"é日👩\u{2028}\u{feff}\u{0}\t:]{0,8})?";
    let message = prop::collection::vec(line, 1..4).prop_map(|lines| lines.join("\n"));
    prop::collection::vec(message, 0..6)
}

fn choices() -> impl Strategy<Value = Vec<Index>> {
    prop::collection::vec(any::<Index>(), 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn messages_come_out_as_they_went_in(messages in messages(), choices in choices(), cuts in material::cuts()) {
        let stream = write(&messages, &choices);
        let (seen, too_long) = read(1 << 20, &cuts.pieces(&stream));
        let seen: Vec<String> = seen.into_iter().flatten().map(|data| String::from_utf8(data).unwrap()).collect();
        prop_assert!(!too_long);
        prop_assert_eq!(seen, messages, "{}", stream.escape_ascii());
        check_agreement(&stream)?;
    }

    #[test]
    fn cuts_change_nothing_in_broken_streams(
        messages in messages(),
        choices in choices(),
        faults in material::faults(),
        cuts in material::cuts(),
        bytes_max in prop_oneof![Just(1 << 20), 8..60_usize],
    ) {
        let stream = spoil(write(&messages, &choices), &faults);
        check(bytes_max, &stream, &cuts)?;
        check_agreement(&stream)?;
    }

    #[test]
    fn cuts_change_nothing_in_noise(noise in material::noise(), cuts in material::cuts(), bytes_max in 1..60_usize) {
        check(bytes_max, &noise, &cuts)?;
        check_agreement(&noise)?;
    }

    #[test]
    fn no_message_makes_the_reader_of_frames_panic(
        noise in material::noise(),
        event in material::event(),
        faults in material::faults(),
    ) {
        prop_assert!(Frame::read(&noise).is_err());
        let run = "a".repeat(26);
        let frame = format!(r#"{{"type":"STREAM_EVENT","run_id":"{run}","seq":7,"event":{event}}}"#);
        let _ = Frame::read(&spoil(frame.into_bytes(), &faults));
    }
}
