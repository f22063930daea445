//! What the reducer makes of events is compared with what `@ag-ui/client` 1.0.0 made of the same: tests/data holds
//! its answers.

use super::*;
use serde_json::Value;

fn run() -> RunId {
    RunId::from_bits(7)
}

fn reduced(events: &str) -> String {
    let all: Vec<String> =
        messages(events.as_bytes(), run()).into_iter().map(|m| String::from_utf8(m.json).unwrap()).collect();
    format!("[{}]", all.join(","))
}

/// Compares as JSON values: the order of members is nobody's business.
fn check(name: &str, events: &str, want: &str) {
    let got = reduced(events);
    let parsed: Value = serde_json::from_str(&got).unwrap_or_else(|error| panic!("{name}: {error} in {got}"));
    assert_eq!(parsed, serde_json::from_str::<Value>(want).unwrap(), "{name}");
}

/// Compares byte by byte, for what no JSON value can hold.
fn check_bytes(events: &str, want: &str) {
    assert_eq!(reduced(events), want, "{events}");
}

#[test]
fn cases_come_out_as_in_the_client() {
    #[derive(serde::Deserialize)]
    struct Case<'a> {
        name: String,
        #[serde(borrow)]
        events: &'a RawValue,
        messages: &'a RawValue,
    }
    let cases: Vec<Case<'_>> =
        serde_json::from_str(include_str!("../../../tests/data/messages.json")).unwrap();
    assert!(cases.len() > 30);
    for case in cases {
        check(&case.name, case.events.get(), case.messages.get());
    }
}

#[test]
fn a_real_agents_traces_come_out_as_in_the_client() {
    for (name, trace, want) in [
        (
            "hello",
            include_str!("../../../tests/data/traces/pydantic-ai-hello.sse"),
            include_str!("../../../tests/data/traces/pydantic-ai-hello.messages.json"),
        ),
        (
            "tools",
            include_str!("../../../tests/data/traces/pydantic-ai-tools.sse"),
            include_str!("../../../tests/data/traces/pydantic-ai-tools.messages.json"),
        ),
        (
            "utf8",
            include_str!("../../../tests/data/traces/pydantic-ai-utf8.sse"),
            include_str!("../../../tests/data/traces/pydantic-ai-utf8.messages.json"),
        ),
        (
            "boom",
            include_str!("../../../tests/data/traces/pydantic-ai-boom.sse"),
            include_str!("../../../tests/data/traces/pydantic-ai-boom.messages.json"),
        ),
    ] {
        let events: Vec<&str> = trace.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert!(events.len() > 3);
        check(name, &format!("[{}]", events.join(",")), want);
    }
}

#[test]
fn text_stays_as_the_producer_escaped_it() {
    for (deltas, want) in [
        (r#"["\ud83d","\ude00"]"#, r"\ud83d\ude00"),
        (r#"["lone \ud83d","!"]"#, r"lone \ud83d!"),
        (r#"["\u0041\/","\"\\"]"#, r#"\u0041\/\"\\"#),
        ("[\"\u{2028}\",\"日本\"]", "\u{2028}日本"),
    ] {
        let deltas: Vec<&RawValue> = serde_json::from_str(deltas).unwrap();
        let contents: Vec<String> = deltas
            .iter()
            .map(|delta| format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":{delta}}}"#))
            .collect();
        check_bytes(
            &format!(r#"[{{"type":"TEXT_MESSAGE_START","messageId":"\u006d"}},{}]"#, contents.join(",")),
            &format!(r#"[{{"id":"\u006d","role":"assistant","content":"{want}"}}]"#),
        );
    }
}

#[test]
fn numbers_keep_their_digits_and_nesting_its_depth() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for value in ["12345678901234567890123", "1.50e3", &deep, r#""\udc00""#] {
        check_bytes(
            &format!(
                r#"[{{"type":"TEXT_MESSAGE_START","messageId":"m","metadata":{{"k":{value}}}}},
                   {{"type":"ACTIVITY_SNAPSHOT","messageId":"p","activityType":"T","content":{{"a":{value}}}}},
                   {{"type":"ACTIVITY_DELTA","messageId":"p","patch":[{{"op":"add","path":"/b","value":{value}}}]}}]"#
            ),
            &format!(
                r#"[{{"id":"m","role":"assistant","content":"","metadata":{{"k":{value}}}}},{{"id":"p","role":"activity","activityType":"T","content":{{"a":{value},"b":{value}}}}}]"#
            ),
        );
    }
}

#[test]
fn what_makes_no_sense_is_skipped() {
    for bad in [
        "",
        "{}",
        "[",
        "[1,null,\"x\",[]]",
        "[{}]",
        r#"[{"type":1},{"type":"NOBODY_KNOWS"},{"type":"\ud800"}]"#,
        r#"[{"type":"TEXT_MESSAGE_START"},{"type":"TEXT_MESSAGE_START","messageId":null}]"#,
        r#"[{"type":"TEXT_MESSAGE_CHUNK","delta":"x"},{"type":"TOOL_CALL_CHUNK","toolCallId":"c","delta":"x"}]"#,
        r#"[{"type":"MESSAGES_SNAPSHOT"},{"type":"MESSAGES_SNAPSHOT","messages":[1,{"role":"user"}]}]"#,
        r#"[{"type":"ACTIVITY_SNAPSHOT","messageId":"p"},{"type":"ACTIVITY_DELTA","messageId":"p","patch":1}]"#,
        r#"[{"type":"TOOL_CALL_RESULT","messageId":"m"},{"type":"REASONING_ENCRYPTED_VALUE","entityId":"m"}]"#,
    ] {
        check_bytes(bad, "[]");
    }
    // Text survives members of the wrong kind around it.
    check_bytes(
        r#"[{"type":"TEXT_MESSAGE_START","messageId":"m","role":7,"name":[],"metadata":"x"},
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":5},
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"kept","metadata":[]}]"#,
        r#"[{"id":"m","role":"assistant","content":"kept"}]"#,
    );
}

#[test]
fn chunks_that_contradict_are_skipped() {
    check_bytes(
        r#"[{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a"},
            {"type":"TEXT_MESSAGE_CHUNK","role":"user","delta":"b"},
            {"type":"TEXT_MESSAGE_CHUNK","messageId":"m","subagentRunId":"s","delta":"c"},
            {"type":"TEXT_MESSAGE_CHUNK","delta":"d"}]"#,
        r#"[{"id":"m","role":"assistant","content":"ad"}]"#,
    );
    // Two subagents have a text open and the agent has none: the chunk could mean either.
    check_bytes(
        r#"[{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","subagentRunId":"s","delta":"a"},
            {"type":"TEXT_MESSAGE_CHUNK","messageId":"n","subagentRunId":"t","delta":"b"},
            {"type":"TEXT_MESSAGE_CHUNK","delta":"c"}]"#,
        r#"[{"id":"m","role":"assistant","content":"a","subagentRunId":"s"},{"id":"n","role":"assistant","content":"b","subagentRunId":"t"}]"#,
    );
}

#[test]
fn old_thinking_events_become_reasoning() {
    check_bytes(
        r#"[{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"lost"},
            {"type":"THINKING_START"},{"type":"THINKING_TEXT_MESSAGE_START"},
            {"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"a"},{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"b"},
            {"type":"THINKING_TEXT_MESSAGE_END"},{"type":"THINKING_TEXT_MESSAGE_START"},
            {"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"c"}]"#,
        &format!(
            r#"[{{"id":"{0}-thinking-1","role":"reasoning","content":"ab"}},{{"id":"{0}-thinking-2","role":"reasoning","content":"c"}}]"#,
            run()
        ),
    );
}

#[test]
fn what_a_snapshot_repeats_is_marked() {
    let events = br#"[{"type":"TEXT_MESSAGE_START","messageId":"mine"},
        {"type":"MESSAGES_SNAPSHOT","messages":[{"id":"old","role":"user"},{"id":"more","role":"assistant"},
            {"id":"mine","role":"assistant","content":"x"}]},
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"more","delta":"y"}]"#;
    let marks: Vec<(String, bool)> = messages(events, run())
        .into_iter()
        .map(|message| (String::from_utf8(message.id).unwrap(), message.restated))
        .collect();
    assert_eq!(marks, [("mine".to_owned(), false), ("old".to_owned(), true), ("more".to_owned(), false)]);
}

#[test]
fn a_turn_yields_a_bounded_number_of_messages() {
    let starts: Vec<String> = (0..thread::TURN_MESSAGES_MAX + 10)
        .map(|n| format!(r#"{{"type":"TEXT_MESSAGE_START","messageId":"{n}"}}"#))
        .collect();
    let made = messages(format!("[{}]", starts.join(",")).as_bytes(), run());
    assert_eq!(made.len(), thread::TURN_MESSAGES_MAX);
}
