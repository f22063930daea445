//! The rules for the CHUNK forms: they open and close messages by their order, so only neighbours are joined.

use crate::{all, check, text, unchanged};

fn chunk(members: &str, delta: &str) -> String {
    format!(r#"{{"type":"TEXT_MESSAGE_CHUNK",{members}"delta":"{delta}"}}"#)
}

const M: &str = r#""messageId":"m","#;
const N: &str = r#""messageId":"n","#;

#[test]
fn neighbours_of_one_message_are_joined() {
    for kind in [
        ("TEXT_MESSAGE_CHUNK", "messageId"),
        ("REASONING_MESSAGE_CHUNK", "messageId"),
        ("TOOL_CALL_CHUNK", "toolCallId"),
    ] {
        let of =
            |members: &str, delta: &str| format!(r#"{{"type":"{}",{members}"delta":"{delta}"}}"#, kind.0);
        let id = format!(r#""{}":"m","#, kind.1);
        let first = of(&format!(r#"{id}"role":"assistant","#), "a");
        check(
            &[&first, &of(&id, "b"), &of("", "c"), &of(&id, "d")],
            &[&of(&format!(r#"{id}"role":"assistant","#), "abcd")],
        );
        check(&[&of("", "a"), &of("", "b")], &[&of("", "ab")]);
    }
}

#[test]
fn another_id_or_an_id_after_none_is_not_joined() {
    unchanged(&all(&[chunk(M, "a"), chunk(N, "b"), chunk(M, "c")]));
    unchanged(&all(&[chunk("", "a"), chunk(M, "b")]));
    // One without an id belongs to the message before it.
    check(&all(&[chunk(M, "a"), chunk(N, "b"), chunk("", "c")]), &all(&[chunk(M, "a"), chunk(N, "bc")]));
}

#[test]
fn a_later_chunk_with_any_other_member_is_not_joined() {
    for members in
        [r#""role":"assistant","#, r#""timestamp":1,"#, r#""metadata":{},"#, r#""rawEvent":1,"#, r#""x":1,"#]
    {
        unchanged(&all(&[chunk(M, "a"), chunk(&format!("{M}{members}"), "b")]));
        check(
            &all(&[chunk(&format!("{M}{members}"), "a"), chunk(M, "b")]),
            &all(&[chunk(&format!("{M}{members}"), "ab")]),
        );
    }
    unchanged(&all(&[chunk(M, "a"), chunk(r#""messageId":"m","toolCallId":"t","#, "b")]));
}

#[test]
fn both_need_a_string_delta() {
    let bare = r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m"}"#;
    let null = r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":null}"#;
    for odd in [bare, null] {
        unchanged(&[&chunk(M, "a"), odd, &chunk(M, "b")]);
    }
    unchanged(&all(&[chunk(r#""messageId":5,"#, "a"), chunk("", "b")]));
}

#[test]
fn any_event_between_keeps_them_apart_and_they_end_a_stretch() {
    let custom = r#"{"type":"CUSTOM","name":"n","value":1}"#;
    unchanged(&[&chunk(M, "a"), custom, &chunk(M, "b")]);
    unchanged(&[&chunk(M, "a"), &text("x", "t"), &chunk(M, "b")]);
    unchanged(&[&text("x", "t"), &chunk(M, "a"), &text("x", "u")]);
    let tool = r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"m","delta":"b"}"#;
    unchanged(&[&chunk(M, "a"), tool, &chunk(M, "c")]);
}

#[test]
fn a_subagents_chunk_without_id_belongs_to_its_own_message() {
    let tagged = r#""messageId":"s","subagentRunId":"sub","#;
    // Which message an untagged chunk without id goes on with can't be told from its neighbour any more.
    unchanged(&all(&[chunk(M, "a"), chunk(tagged, "b"), chunk("", "c")]));
    unchanged(&all(&[chunk(tagged, "a"), chunk(M, "b"), chunk("", "c")]));
    // With an id it can.
    check(
        &all(&[chunk(tagged, "a"), chunk(M, "b"), chunk(M, "c")]),
        &all(&[chunk(tagged, "a"), chunk(M, "bc")]),
    );
}

#[test]
fn ids_are_compared_decoded() {
    check(&all(&[chunk(M, "a"), chunk(r#""messageId":"\u006d","#, "b")]), &all(&[chunk(M, "ab")]));
}
