//! Bodies of all formats: as one piece, cut in two at every byte, and byte by byte.

use proptest::prelude::*;

use super::{BodyFault, EventReader, Format};

/// What came out: `line:event` each, then the fault, if any.
fn run(format: Format, event_bytes_max: usize, pieces: &[&[u8]]) -> Vec<String> {
    let mut reader = EventReader::new(format, event_bytes_max);
    let mut log = Vec::new();
    let mut note = |got: Result<super::Item, BodyFault>| {
        log.push(match got {
            Ok(item) => format!("{}:{}", item.line, item.bytes.escape_ascii()),
            Err(fault) => {
                assert!(fault.message().starts_with(&format!("line {}: ", fault.line())));
                format!("{fault:?}")
            }
        });
    };
    for &piece in pieces {
        let mut input = piece;
        while let Some(got) = reader.next(&mut input) {
            note(got);
        }
        assert!(input.is_empty(), "None means that all was taken");
        assert!(reader.kept.capacity() <= event_bytes_max, "kept more than an event");
    }
    if let Some(got) = reader.finish() {
        note(got);
    }
    assert!(reader.finish().is_none() && reader.next(&mut &b"{}\n\n"[..]).is_none(), "the end is the end");
    log
}

fn check_limited(format: Format, event_bytes_max: usize, body: &[u8], expected: &[&str]) {
    let shown = body.escape_ascii().to_string();
    assert_eq!(run(format, event_bytes_max, &[body]), expected, "{shown}");
    for cut in 0..=body.len() {
        let (left, right) = body.split_at(cut);
        assert_eq!(run(format, event_bytes_max, &[left, right]), expected, "cut at {cut}: {shown}");
    }
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(run(format, event_bytes_max, &bytes), expected, "in single bytes: {shown}");
}

/// Events are compared as `escape_ascii` writes them.
fn check(format: Format, body: impl AsRef<[u8]>, expected: &[&str]) {
    check_limited(format, 1000, body.as_ref(), expected);
}

#[test]
fn formats_are_found_by_their_type() {
    for (content_type, expected) in [
        ("application/x-ndjson", Some(Format::Ndjson)),
        ("Application/NDJSON ; charset=utf-8", Some(Format::Ndjson)),
        ("text/event-stream;charset=utf-8", Some(Format::Sse)),
        ("application/json", Some(Format::Json)),
        ("application/json-seq", None),
        ("text/plain", None),
        ("multipart/form-data; boundary=application/json", None),
        ("", None),
    ] {
        assert_eq!(Format::from_content_type(content_type), expected, "{content_type:?}");
    }
}

#[test]
fn ndjson_lines() {
    let check = |body: &str, expected: &[&str]| check(Format::Ndjson, body, expected);
    check("", &[]);
    check("{}\n{\"a\":1}\n", &["1:{}", "2:{\\\"a\\\":1}"]);
    check("{}\r\n\r\n \t\r\n\n{}\n", &["1:{}", "5:{}"]);
    check("{1}\n{2}", &["1:{1}", "2:{2}"]);
    check("{1}\r\n{2}\r", &["1:{1}", "2:{2}"]);
    check("{\r}\n\r\r\n {} \n", &["1:{\\r}", "3: {} "]);
    check("\u{feff}{}\n\u{feff}{}\n", &["1:{}", "2:\\xef\\xbb\\xbf{}"]);
    check("\u{feff}", &[]);
    check("not json\n日\u{2028}\n", &["1:not json", "2:\\xe6\\x97\\xa5\\xe2\\x80\\xa8"]);
}

#[test]
fn server_sent_events() {
    let check = |body: &str, expected: &[&str]| check(Format::Sse, body, expected);
    check("", &[]);
    check("data: {}\n\ndata:{}\n\n", &["1:{}", "3:{}"]);
    check("data: {}\r\n\r\ndata: {}\r\n\r\n", &["1:{}", "3:{}"]);
    check("data: {}\r\rdata: {}\r\r", &["1:{}", "3:{}"]);
    check("data: {}\n\r\ndata: {}\r\n\rdata: {}\r\n\n", &["1:{}", "3:{}", "5:{}"]);
    check("data:  {} \n\n", &["1: {} "]);
    check("data: {\ndata\ndata:\ndata: }\n\n", &["1:{\\n\\n\\n}"]);
    check("data\ndata: {}\n\n", &["1:\\n{}"]);
    check("data:\ndata: {}\n\n", &["1:\\n{}"]);
    check("data\n\ndata:\n\ndata: \ndata:\n\n", &[]);
    check(": hi\n\n:\nid: 1\nevent: data: x\ndata: {}\nretry: 5\ndatax: no\ndat\n data: no\n\n", &["6:{}"]);
    check("id: 1\n\nevent: e\n\n", &[]);
    check("data: {1}\n: still open\ndata: {2}\n\n", &["1:{1}\\n{2}"]);
    check("data: {}\n\ndata: [DONE]\n\n", &["1:{}"]);
    check("data:[DONE]", &[]);
    check("data: {1}\n\ndata: {2}\n", &["1:{1}", "3:{2}"]);
    check("data: {1}\n\ndata: {2}", &["1:{1}", "3:{2}"]);
    check("data: {1}\n\ndata: {2}\ndata", &["1:{1}", "3:{2}\\n"]);
    check("data: {1}\n\ndat", &["1:{1}"]);
    check("\u{feff}data: {}\n\n\u{feff}data: no\n\n", &["1:{}"]);
    check("\u{feff}\n\u{feff}: \ndata: {}\n\n", &["3:{}"]);
    check("\u{feff}\u{feff}data: no\n\n", &[]);
    check("data: 日\u{2028}\u{85}\n\n", &["1:\\xe6\\x97\\xa5\\xe2\\x80\\xa8\\xc2\\x85"]);
    check_limited(Format::Sse, 9, b"\xef\xbbdata: no\n\xef\rdata: {}\n\n", &["3:{}"]);
}

#[test]
fn json_values() {
    let check = |body: &str, expected: &[&str]| check(Format::Json, body, expected);
    check("{}", &["1:{}"]);
    check(" \r\n{\"a\":[{}]}\n", &["2:{\\\"a\\\":[{}]}"]);
    check("[]", &[]);
    check(" [ ] ", &[]);
    check("[{},{}]", &["1:{}", "1:{}"]);
    check("[\n  {\n    \"a\": 1\n  },\n  {}\n]\n", &["2:{\\n    \\\"a\\\": 1\\n  }", "5:{}"]);
    check(r#"[{"a":"}]\"{\\"},{}]"#, &[r#"1:{\"a\":\"}]\\\"{\\\\\"}"#, "1:{}"]);
    check("\u{feff}[{}]", &["1:{}"]);
    check("{not json}", &["1:{not json}"]);
    check("{]", &["1:{]"]);
}

#[test]
fn json_bodies_that_are_none() {
    for (body, expected) in [
        ("", &["Unfinished { line: 1 }"][..]),
        ("\n\n", &["Unfinished { line: 3 }"]),
        ("{\"a\":1", &["Unfinished { line: 1 }"]),
        ("[{},\n{}", &["1:{}", "2:{}", "Unfinished { line: 2 }"]),
        ("[{}\n,", &["1:{}", "Unfinished { line: 2 }"]),
        ("[", &["Unfinished { line: 1 }"]),
        ("x", &["NotJson { line: 1 }"]),
        ("}", &["NotJson { line: 1 }"]),
        ("]", &["NotJson { line: 1 }"]),
        ("\n'a'", &["NotJson { line: 2 }"]),
        ("\u{feff}\u{feff}{}", &["NotJson { line: 1 }"]),
        ("1", &["NotObject { line: 1 }"]),
        ("\"a\"", &["NotObject { line: 1 }"]),
        ("null", &["NotObject { line: 1 }"]),
        ("[{},\n\n[]]", &["1:{}", "NotObject { line: 3 }"]),
        ("[{},\n-1]", &["1:{}", "NotObject { line: 2 }"]),
        ("[[{}]]", &["NotObject { line: 1 }"]),
        ("[{}\n{}]", &["1:{}", "MissingComma { line: 2 }"]),
        ("[{}}", &["1:{}", "MissingComma { line: 1 }"]),
        ("[,{}]", &["ExtraComma { line: 1 }"]),
        ("[{},,{}]", &["1:{}", "ExtraComma { line: 1 }"]),
        ("[{},\n]", &["1:{}", "ExtraComma { line: 2 }"]),
        ("{}\n{}", &["1:{}", "Trailing { line: 2 }"]),
        ("{},", &["1:{}", "Trailing { line: 1 }"]),
        ("[{}]]", &["1:{}", "Trailing { line: 1 }"]),
        ("{}\0", &["1:{}", "Trailing { line: 1 }"]),
    ] {
        check(Format::Json, body, expected);
    }
}

#[test]
fn events_have_a_size_limit() {
    let fault = |line: u64| format!("TooLarge {{ line: {line}, max_bytes: 4 }}");
    let check = |format, body: &str, expected: &[&str]| check_limited(format, 4, body.as_bytes(), expected);
    check(Format::Ndjson, "{12}\r\n{12}\n{12}\r", &["1:{12}", "2:{12}", "3:{12}"]);
    check(Format::Ndjson, "{12}\n{123}\n{}\n", &["1:{12}", &fault(2)]);
    check(Format::Ndjson, "{12}\n{123}", &["1:{12}", &fault(2)]);
    check(Format::Ndjson, "{12}\r\r\n", &[&fault(1)]);
    check(Format::Sse, ": longer than that\ndata: {12}\nx: longer\n\n", &["2:{12}"]);
    check(Format::Sse, "data: {12}\n\n\ndata: {123}\n\n", &["1:{12}", &fault(4)]);
    check(Format::Sse, "data: {1\ndata: }\n\n", &["1:{1\\n}"]);
    check(Format::Sse, "data: {1\ndata: 2}\n\n", &[&fault(1)]);
    check(Format::Sse, "data\ndata\ndata\ndata\ndata\ndata\n", &[&fault(1)]);
    check(Format::Sse, "data: {12}\ndata", &[&fault(1)]);
    check(Format::Json, "[          {12},\n{12}   ]", &["1:{12}", "2:{12}"]);
    check(Format::Json, "[{12},\n{1\n3},{}]", &["1:{12}", &fault(2)]);
    check(Format::Json, "[{12345", &[&fault(1)]);
}

#[test]
fn whole_events_are_borrowed() {
    for (format, body) in [
        (Format::Ndjson, "\u{feff}{}\r\n{}\n\n{}\n"),
        (Format::Sse, "\u{feff}data: {}\n\nid: 1\ndata: {}\n: x\n\ndata: {}\r\n\r\n"),
        (Format::Json, "[{}, {}, {}]"),
    ] {
        let mut reader = EventReader::new(format, 10);
        let mut input = body.as_bytes();
        let mut count = 0;
        while let Some(item) = reader.next(&mut input) {
            assert!(body.as_bytes().as_ptr_range().contains(&item.unwrap().bytes.as_ptr()), "{format:?}");
            count += 1;
        }
        assert_eq!((count, reader.kept.capacity()), (3, 0), "{format:?}");
    }
}

#[test]
fn memory_comes_back_after_a_large_event() {
    for (format, before, behind) in
        [(Format::Ndjson, "", "\n"), (Format::Sse, "data: ", "\n\n"), (Format::Json, "[{", "},")]
    {
        let event_bytes_max = 1_000_000;
        let mut reader = EventReader::new(format, event_bytes_max);
        assert!(reader.next(&mut before.as_bytes()).is_none());
        for _ in 0..900 {
            assert!(reader.next(&mut &[b'x'; 1000][..]).is_none());
        }
        assert!(reader.kept.capacity() <= event_bytes_max);
        let mut input = behind.as_bytes();
        assert!(reader.next(&mut input).unwrap().unwrap().bytes.len() >= 900_000);
        assert!(reader.next(&mut input).is_none());
        assert_eq!(reader.kept.capacity(), 0, "{format:?}");
    }
}

#[test]
fn deep_nesting_is_only_counted() {
    let deep = "{\"a\":".repeat(200_000) + "1" + &"}".repeat(200_000);
    assert_eq!(run(Format::Json, deep.len(), &[deep.as_bytes()]).len(), 1);
    assert_eq!(run(Format::Json, deep.len() - 1, &[deep.as_bytes()]).len(), 1);
    let open = "[".repeat(200_000);
    assert_eq!(run(Format::Json, 100, &[open.as_bytes()]), ["NotObject { line: 1 }"]);
}

/// A body of any format, rich in what ends, joins and hides things, as pieces.
fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let token = prop::sample::select(vec![
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "data",
        ":",
        " ",
        "data: ",
        "data:{\"a\":1}\n\n",
        ": c\n",
        "[DONE]",
        "id: 1\n",
        "\u{feff}",
        "[",
        "]",
        "{",
        "}",
        ",",
        "{}",
        "{},",
        "{\"b\": \"}\\\"\\\\\"}",
        "\"",
        "\\",
        "日本",
        "\u{2028}",
        "x",
        "0123456789",
    ]);
    (prop::collection::vec(token, 0..40), prop::collection::vec(1..9_usize, 1..30)).prop_map(
        |(tokens, lengths)| {
            let body = tokens.concat().into_bytes();
            let mut rest = body.as_slice();
            let mut pieces = Vec::new();
            for length in lengths {
                let (piece, behind) = rest.split_at(length.min(rest.len()));
                pieces.push(piece.to_vec());
                rest = behind;
            }
            pieces.push(rest.to_vec());
            pieces
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn cuts_change_nothing(pieces in pieces(), array in any::<bool>(), event_bytes_max in 4..40_usize) {
        for format in [Format::Ndjson, Format::Sse, Format::Json] {
            let mut pieces = pieces.clone();
            if format == Format::Json && array {
                pieces.insert(0, b"[{}".to_vec());
            }
            let cut: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let body = pieces.concat();
            prop_assert_eq!(run(format, event_bytes_max, &[&body]), run(format, event_bytes_max, &cut));
        }
    }
}
