//! Updates in, events out: each case says what an agent sends and what observers see, to the byte.

use super::*;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

/// What the updates become, with what is closed at the end.
fn check(updates: &[&str], expected: &[&str]) {
    let mut mapper = Mapper::new("r");
    let mut events: Vec<Vec<u8>> = updates.iter().flat_map(|update| mapper.update(&raw(update))).collect();
    events.extend(mapper.close());
    let events: Vec<String> = events.into_iter().map(|event| String::from_utf8(event).unwrap()).collect();
    assert_eq!(events, expected, "{updates:#?}");
}

/// The event that passes an update on.
fn passed(update: &str) -> String {
    format!(r#"{{"type":"CUSTOM","name":"acp.session_update","value":{update}}}"#)
}

/// Updates that are passed on as they are, and become nothing else.
fn check_passed(updates: &[&str]) {
    for update in updates {
        check(&[update], &[&passed(update)]);
    }
}

const START: &str = r#"{"type":"TOOL_CALL_START","toolCallId":"t","toolCallName":"Read"}"#;
const END: &str = r#"{"type":"TOOL_CALL_END","toolCallId":"t"}"#;
const CALL: &str = r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"Read","status":"pending"}"#;

#[test]
fn chunks_of_text_are_one_message() {
    check(
        &[
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hel"}}"#,
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""}}"#,
            r#"{"sessionUpdate":"agent_message_chunk","content":{"text":"lo\n","type":"text"}}"#,
        ],
        &[
            r#"{"type":"TEXT_MESSAGE_START","messageId":"r-1","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"r-1","delta":"Hel"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"r-1","delta":"lo\n"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"r-1"}"#,
        ],
    );
    check(&[r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""}}"#], &[]);
}

#[test]
fn a_thought_and_what_is_said_are_two_messages() {
    check(
        &[
            r#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Hm"}}"#,
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Yes"}}"#,
        ],
        &[
            r#"{"type":"REASONING_START","messageId":"r-1"}"#,
            r#"{"type":"REASONING_MESSAGE_START","messageId":"r-1","role":"reasoning"}"#,
            r#"{"type":"REASONING_MESSAGE_CONTENT","messageId":"r-1","delta":"Hm"}"#,
            r#"{"type":"REASONING_MESSAGE_END","messageId":"r-1"}"#,
            r#"{"type":"REASONING_END","messageId":"r-1"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"r-2","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"r-2","delta":"Yes"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"r-2"}"#,
        ],
    );
}

#[test]
fn another_message_id_of_the_agent_begins_another_message() {
    check(
        &[
            r#"{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"1"}}"#,
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"2"}}"#,
            r#"{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"3"}}"#,
            r#"{"sessionUpdate":"agent_message_chunk","messageId":"b","content":{"type":"text","text":"4"}}"#,
        ],
        &[
            r#"{"type":"TEXT_MESSAGE_START","messageId":"r-1","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"r-1","delta":"1"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"r-1","delta":"2"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"r-1","delta":"3"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"r-1"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"r-2","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"r-2","delta":"4"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"r-2"}"#,
        ],
    );
}

#[test]
fn text_after_a_tool_call_is_a_message_of_its_own() {
    check(
        &[
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}"#,
            CALL,
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"b"}}"#,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}"#,
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"c"}}"#,
        ],
        &[
            r#"{"type":"TEXT_MESSAGE_START","messageId":"r-1","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"r-1","delta":"a"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"r-1"}"#,
            START,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"r-2","role":"assistant"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"r-2","delta":"b"}"#,
            END,
            r#"{"type":"TOOL_CALL_RESULT","messageId":"r-3","toolCallId":"t","content":"","role":"tool"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"r-2","delta":"c"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"r-2"}"#,
        ],
    );
}

#[test]
fn a_tool_call_has_arguments_an_end_and_a_result() {
    let done = r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","content":[
        {"type":"content","content":{"type":"text","text":"x\ud83d"}},{"type":"content","content":{"type":"text","text":"y"}}]}"#;
    let args = r#"{"type":"TOOL_CALL_ARGS","toolCallId":"t","delta":"{\"p\":\"\\ud83d\"}"}"#;
    let result = r#"{"type":"TOOL_CALL_RESULT","messageId":"r-1","toolCallId":"t","content":"x\ud83d\ny","role":"tool"}"#;
    let input = r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"Read","rawInput":{"p":"\ud83d"}}"#;
    check(&[input, done], &[START, args, END, result]);
    // The arguments may come later, and after an empty object.
    let empty = r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"Read","rawInput":{}}"#;
    let later = r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","rawInput":{"p":"\ud83d"}}"#;
    check(&[empty, later, done], &[START, args, END, result]);
    // An empty object can be all there is.
    let no_args = r#"{"type":"TOOL_CALL_ARGS","toolCallId":"t","delta":"{}"}"#;
    check(&[empty, done], &[START, no_args, END, result]);
    // Arguments that change have no event.
    let changed = r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","rawInput":{"q":1}}"#;
    check(&[input, changed, done], &[START, args, &passed(changed), END, result]);
}

#[test]
fn the_result_is_the_text_or_else_the_raw_output() {
    let result = |content: &str| {
        format!(
            r#"{{"type":"TOOL_CALL_RESULT","messageId":"r-1","toolCallId":"t","content":{content},"role":"tool"}}"#
        )
    };
    for (raw_output, content) in
        [(r#"{"n": 1}"#, r#""{\"n\": 1}""#), (r#""\ud83d""#, r#""\ud83d""#), ("null", r#""""#)]
    {
        let done = format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","rawOutput":{raw_output}}}"#
        );
        check(&[CALL, &done], &[START, END, &result(content)]);
    }
    // What was shown so far is the result, if the end brings no other.
    let so_far = r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"half"}}]}"#;
    let done = r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}"#;
    check(&[CALL, so_far, done], &[START, &passed(so_far), END, &result("\"half\"")]);
}

#[test]
fn what_ag_ui_has_no_word_for_is_passed_on_besides() {
    for update in [
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress"}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"Read a.txt"}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","locations":[{"path":"/a"}]}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"diff","path":"/a","newText":"x"}]}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","content":"odd"}"#,
        r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"Again"}"#,
    ] {
        check(&[CALL, update], &[START, &passed(update), END]);
    }
    let kind = r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"Read","kind":"read","name":"cat"}"#;
    check(&[kind], &[START, &passed(kind), END]);
    let failed =
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"failed","rawOutput":"no"}"#;
    let result =
        r#"{"type":"TOOL_CALL_RESULT","messageId":"r-1","toolCallId":"t","content":"no","role":"tool"}"#;
    check(&[CALL, failed, CALL], &[START, &passed(failed), END, result, &passed(CALL)]);
}

#[test]
fn one_id_is_one_call_however_it_is_spelled() {
    let other = r#"{"sessionUpdate":"tool_call_update","toolCallId":"\u0074","status":"in_progress"}"#;
    check(&[CALL, other], &[START, &passed(other), END]);
    let half = r#"{"sessionUpdate":"tool_call_update","toolCallId":"\ud83d","status":"in_progress"}"#;
    check(
        &[half, half],
        &[
            r#"{"type":"TOOL_CALL_START","toolCallId":"\ud83d","toolCallName":"tool"}"#,
            &passed(half),
            r#"{"type":"TOOL_CALL_END","toolCallId":"\ud83d"}"#,
        ],
    );
}

#[test]
fn an_update_of_an_unknown_call_starts_it() {
    check(
        &[
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","kind":"fetch","title":"","status":"completed"}"#,
        ],
        &[
            r#"{"type":"TOOL_CALL_START","toolCallId":"t","toolCallName":"fetch"}"#,
            &passed(
                r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","kind":"fetch","title":"","status":"completed"}"#,
            ),
            END,
            r#"{"type":"TOOL_CALL_RESULT","messageId":"r-1","toolCallId":"t","content":"","role":"tool"}"#,
        ],
    );
}

#[test]
fn everything_else_is_passed_on_as_it_is_written() {
    check_passed(&[
        r#"{"sessionUpdate":"plan","entries":[{"content":"a" , "n":1.0e2}]}"#,
        r#"{"sessionUpdate":"available_commands_update","availableCommands":[]}"#,
        r#"{"sessionUpdate":"current_mode_update","currentModeId":"\ud83d"}"#,
        r#"{"sessionUpdate":"from_the_future","x":1,"x":2}"#,
        r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"","mimeType":"image/png"}}"#,
        r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":7}}"#,
        r#"{"sessionUpdate":"agent_message_chunk"}"#,
        r#"{"sessionUpdate":"tool_call","title":"no id"}"#,
        r#"{"sessionUpdate":"tool_call","toolCallId":7}"#,
        r#"{"sessionUpdate":7}"#,
        r#""odd""#,
        "[]",
    ]);
    check(&[r#"{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"me"}}"#], &[]);
}

#[test]
fn an_update_that_is_too_deep_for_an_event_is_dropped() {
    let deep = format!(r#"{{"sessionUpdate":"plan","x":{}{}}}"#, "[".repeat(119), "]".repeat(119));
    check(&[&deep], &[]);
}

#[test]
fn outside_an_answer_only_the_state_of_the_session_is_told() {
    let state = r#"{"sessionUpdate":"usage_update","used":1}"#;
    assert_eq!(Mapper::state_update(&raw(state)), [passed(state).into_bytes()]);
    for past in [CALL, r#"{"sessionUpdate":"plan","entries":[]}"#, "7"] {
        assert!(Mapper::state_update(&raw(past)).is_empty(), "{past}");
    }
}
