//! The rules for delta events.

use crate::{all, args, check, reasoning, text, thinking, unchanged};

const CUSTOM: &str = r#"{"type":"CUSTOM","name":"n","value":1}"#;

/// Compacts text deltas of message `m` with these members beside the usual ones.
fn with_members(deltas: &[(&str, &str)], compact: &[(&str, &str)]) {
    let spelled = |list: &[(&str, &str)]| -> Vec<String> {
        list.iter()
            .map(|(members, delta)| {
                format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m",{members}"delta":"{delta}"}}"#)
            })
            .collect()
    };
    check(&all(&spelled(deltas)), &all(&spelled(compact)));
}

#[test]
fn deltas_of_every_kind_are_joined() {
    check(&all(&[text("m", "a"), text("m", "b"), text("m", "c")]), &all(&[text("m", "abc")]));
    check(&all(&[reasoning("m", "a"), reasoning("m", "b")]), &all(&[reasoning("m", "ab")]));
    check(&all(&[args("c", "a"), args("c", "b")]), &all(&[args("c", "ab")]));
    check(&all(&[thinking("a"), thinking("b")]), &all(&[thinking("ab")]));
}

#[test]
fn a_single_delta_and_an_empty_one_stay_what_they_are() {
    unchanged(&all(&[text("m", "a")]));
    unchanged(&all(&[text("m", "")]));
    check(&all(&[text("m", ""), text("m", "a"), text("m", "")]), &all(&[text("m", "a")]));
}

#[test]
fn interleaved_targets_are_joined_in_order_of_first_appearance() {
    check(
        &all(&[
            args("a", "1"),
            args("b", "2"),
            args("a", "3"),
            args("c", "4"),
            args("b", "5"),
            args("a", "6"),
        ]),
        &all(&[args("a", "136"), args("b", "25"), args("c", "4")]),
    );
    check(
        &all(&[
            text("m", "1"),
            reasoning("r", "2"),
            args("m", "3"),
            thinking("4"),
            text("m", "5"),
            thinking("6"),
        ]),
        &all(&[text("m", "15"), reasoning("r", "2"), args("m", "3"), thinking("46")]),
    );
}

#[test]
fn any_other_event_ends_the_stretch() {
    for boundary in [
        CUSTOM,
        r#"{"type":"RAW","event":{}}"#,
        r#"{"type":"TEXT_MESSAGE_START","messageId":"x","role":"assistant"}"#,
        r#"{"type":"STATE_DELTA","delta":[]}"#,
        r#"{"type":"NOBODY_KNOWS_ME","delta":"text"}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"x","delta":"y"}"#,
    ] {
        let (a, b, c) = (text("m", "a"), text("m", "b"), text("m", "c"));
        check(&[&a, &b, boundary, &c], &[&text("m", "ab"), boundary, &c]);
        unchanged(&[&a, &args("t", "1"), boundary, &args("t", "2"), &c]);
    }
}

#[test]
fn text_and_reasoning_of_one_message_end_each_others_stretch() {
    unchanged(&all(&[text("m", "a"), reasoning("m", "b"), text("m", "c")]));
    unchanged(&all(&[reasoning("m", "a"), text("m", "b"), reasoning("m", "c")]));
    // Also where the other one is not the entry before, and whatever else the stretch held ends with it.
    check(
        &all(&[
            text("m", "a"),
            args("t", "1"),
            text("m", "b"),
            reasoning("m", "c"),
            args("t", "2"),
            text("x", "d"),
        ]),
        &all(&[text("m", "ab"), args("t", "1"), reasoning("m", "c"), args("t", "2"), text("x", "d")]),
    );
    check(
        &all(&[text("n", "a"), text("m", "b"), reasoning("n", "c"), text("m", "d")]),
        &all(&[text("n", "a"), text("m", "b"), reasoning("n", "c"), text("m", "d")]),
    );
}

#[test]
fn a_tool_call_may_share_an_id_with_a_message() {
    check(
        &all(&[text("m", "a"), args("m", "b"), reasoning("r", "c"), args("m", "d"), text("m", "e")]),
        &all(&[text("m", "ae"), args("m", "bd"), reasoning("r", "c")]),
    );
}

#[test]
fn a_delta_that_cannot_be_joined_is_kept_and_the_next_joins_it() {
    with_members(
        &[("", "a"), (r#""x":1,"#, "b"), (r#""x":1,"#, "c"), ("", "d"), ("", "e")],
        &[("", "a"), (r#""x":1,"#, "bc"), ("", "de")],
    );
    // The entry before the last one is out of reach, though it would fit.
    with_members(
        &[(r#""x":1,"#, "a"), (r#""x":2,"#, "b"), (r#""x":1,"#, "c")],
        &[(r#""x":1,"#, "a"), (r#""x":2,"#, "b"), (r#""x":1,"#, "c")],
    );
}

#[test]
fn members_are_compared_by_their_bytes_in_any_order() {
    with_members(&[(r#""x":1,"y":2,"#, "a"), (r#""y":2,"x":1,"#, "b")], &[(r#""x":1,"y":2,"#, "ab")]);
    with_members(&[(r#""x":1,"#, "a"), (r#""x":1.0,"#, "b")], &[(r#""x":1,"#, "a"), (r#""x":1.0,"#, "b")]);
    with_members(
        &[(r#""x":"é","#, "a"), (r#""x":"\u00e9","#, "b")],
        &[(r#""x":"é","#, "a"), (r#""x":"\u00e9","#, "b")],
    );
    with_members(
        &[(r#""toolCallId":"t","#, "a"), (r#""toolCallId":"u","#, "b")],
        &[(r#""toolCallId":"t","#, "a"), (r#""toolCallId":"u","#, "b")],
    );
}

#[test]
fn the_first_timestamp_and_raw_event_are_kept() {
    with_members(
        &[(r#""timestamp":1,"#, "a"), (r#""timestamp":2,"#, "b"), ("", "c")],
        &[(r#""timestamp":1,"#, "abc")],
    );
    with_members(
        &[(r#""rawEvent":{"n":1},"#, "a"), (r#""rawEvent":{"n":2},"timestamp":2,"#, "b")],
        &[(r#""rawEvent":{"n":1},"#, "ab")],
    );
    with_members(&[("", "a"), (r#""timestamp":2,"#, "b")], &[("", "ab")]);
}

/// Compacts text deltas of message `m` with these values of `metadata`; it stands behind the joined delta.
fn with_metadata(deltas: &[(&str, &str)], compact: &[(&str, &str)]) {
    let spelled = |list: &[(&str, &str)]| -> Vec<String> {
        list.iter()
            .map(|(metadata, delta)| {
                let metadata =
                    if metadata.is_empty() { String::new() } else { format!(r#","metadata":{metadata}"#) };
                format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"{delta}"{metadata}}}"#)
            })
            .collect()
    };
    check(&all(&spelled(deltas)), &all(&spelled(compact)));
}

#[test]
fn metadata_is_merged_and_the_last_write_wins() {
    with_metadata(
        &[(r#"{"a":1,"b":1}"#, "x"), (r#"{"b":2,"c":3}"#, "y")],
        &[(r#"{"a":1,"b":2,"c":3}"#, "xy")],
    );
    with_metadata(&[("", "x"), (r#"{"a":1}"#, "y"), ("", "z")], &[(r#"{"a":1}"#, "xyz")]);
    with_metadata(&[("{}", "x"), ("", "y")], &[("{}", "xy")]);
    // Shallow: an object inside is replaced as a whole. Keys are compared decoded.
    with_metadata(
        &[(r#"{"a":{"b":1}}"#, "x"), (r#"{"\u0061":{"c":2}}"#, "y")],
        &[(r#"{"\u0061":{"c":2}}"#, "xy")],
    );
    with_metadata(&[(r#"{"a":1,"a":2}"#, "x"), ("", "y")], &[(r#"{"a":2}"#, "xy")]);
}

#[test]
fn metadata_that_is_no_object_passes_unchanged_and_ends_the_stretch() {
    for metadata in ["null", "1", r#""text""#, "[]"] {
        with_metadata(
            &[("", "a"), (metadata, "b"), ("", "c"), ("", "d")],
            &[("", "a"), (metadata, "b"), ("", "cd")],
        );
    }
}

#[test]
fn delta_stands_before_metadata_wherever_it_stood() {
    check(
        &[
            r#"{"delta":"a","metadata":{"k":1},"messageId":"m","type":"TEXT_MESSAGE_CONTENT"}"#,
            r#"{"metadata":{"l":2},"type":"TEXT_MESSAGE_CONTENT","delta":"b","messageId":"m"}"#,
        ],
        &[r#"{"messageId":"m","type":"TEXT_MESSAGE_CONTENT","delta":"ab","metadata":{"k":1,"l":2}}"#],
    );
}

#[test]
fn types_and_ids_are_compared_decoded() {
    check(
        &[
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"a"}"#,
            r#"{"t\u0079pe":"TEXT_MESSAGE_\u0043ONTENT","messageId":"m\u0031","delta":"b"}"#,
        ],
        &[r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"ab"}"#],
    );
    check(
        &[&text("\\ud83d\\udc69", "a"), &text("👩", "b"), &text("\\ud83d", "c"), &text("\\uD83D", "d")],
        &[&text("\\ud83d\\udc69", "ab"), &text("\\ud83d", "cd")],
    );
}

#[test]
fn a_delta_event_that_is_odd_passes_unchanged_and_ends_the_stretch() {
    let (a, b) = (text("m", "a"), text("m", "b"));
    for odd in [
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x","delta":"y"}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","messageId":"m","delta":"y"}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"y","x":1,"x":1}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","d\u0065lta":"x","delta":"y"}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":7,"delta":"y"}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","delta":"y"}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":null}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m"}"#,
        r#"{"type":"TOOL_CALL_ARGS","messageId":"m","delta":"y"}"#,
        r#"{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":{}}"#,
    ] {
        unchanged(&[&a, odd, &b]);
    }
}

#[test]
fn any_json_escape_stays_valid_when_joined() {
    let pieces =
        [r"\u00e9", r"\ud83d\udc69", r"\/", r#"\""#, r"\\", r"\b\f\n\r\t", "日本", r"\u0000", r"\u2028"];
    let deltas: Vec<String> = pieces.iter().map(|piece| text("m", piece)).collect();
    check(&all(&deltas), &[&text("m", &pieces.concat())]);
}

#[test]
fn halves_of_a_surrogate_pair_become_the_character_when_joined() {
    let halves = [text("m", r"x\ud83d"), text("m", r"\udc69y")];
    check(&all(&halves), &[&text("m", r"x\ud83d\udc69y")]);
    let joined = r#""x\ud83d\udc69y""#;
    assert_eq!(serde_json::from_str::<String>(joined).unwrap(), "x👩y");
    unchanged(&[&text("m", r"\udc69 alone \ud83d")]);
}

#[test]
fn line_breaks_between_tokens_are_removed_and_other_white_space_stays() {
    check(
        &["{\r\n  \"type\": \"CUSTOM\",\n  \"name\": \"a b\"\n}\r\n", "{\n\"type\":\"X\"\n}"],
        &["{  \"type\": \"CUSTOM\",  \"name\": \"a b\"}", "{\"type\":\"X\"}"],
    );
    check(
        &[
            "{\n \"type\":\"TEXT_MESSAGE_CONTENT\",\n \"messageId\":\"m\",\n \"delta\":\"a\"\n}",
            &text("m", "b"),
        ],
        &["{ \"type\":\"TEXT_MESSAGE_CONTENT\", \"messageId\":\"m\", \"delta\":\"ab\"}"],
    );
}

#[test]
fn a_snapshot_does_not_end_the_stretch() {
    let mut gathered = crate::Gathered::new();
    for event in [args("a", "1"), args("b", "2")] {
        gathered.add(&event);
        gathered.snapshot();
    }
    gathered.add(&args("a", "3"));
    let expected = format!("[{},{}]", args("a", "13"), args("b", "2"));
    assert_eq!(String::from_utf8(gathered.snapshot()).unwrap(), expected);
}
