//! Closing: however a run ends, its events stay a sequence that AG-UI's own client accepts, nothing that an event
//! opened stays open, and the last of them says why. The client is asked, not copied.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/generate.rs"]
mod generate;
#[path = "support/oracle.rs"]
mod oracle;
#[path = "closing/stage.rs"]
mod stage;

use generate::Options;
use stage::{Closed, Ending, Stage};

const RUN_STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const RUN_FINISHED: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;
const RUN_ERROR: &str = r#"{"type":"RUN_ERROR","message":"the agent's own words","code":"agent"}"#;

/// Checks what each way to end it makes of a run with these events.
fn check_all(stage: &mut Stage, events: &[&str], expected: [&[&str]; 3]) {
    for (ending, expected) in Ending::ALONE.into_iter().zip(expected) {
        let closed = stage.close(events, ending);
        assert_eq!(closed.short(), expected, "{ending:?} behind {events:?}");
        stage.judge(events, ending, &closed);
    }
}

/// Checks that a run that goes on is closed by these ends and an error, whoever ends it.
fn check_open(stage: &mut Stage, events: &[&str], ends: &[&str]) {
    let events = [&[RUN_STARTED], events].concat();
    let expected = |code| [ends, &[code]].concat();
    let (failed, lost) = (expected("RUN_ERROR agent_error"), expected("RUN_ERROR producer_lost"));
    check_all(stage, &events, [&failed, &failed, &lost]);
}

#[test]
fn every_prefix_of_a_short_sequence_is_closed_well() {
    let mut stage = Stage::set();
    for seed in 0..16 {
        let events = generate::events(seed, Options { steps: 6, ..Options::default() });
        for cut in 0..=events.len() {
            stage.try_each(seed, &events[..cut], &Ending::ALONE);
        }
    }
}

#[test]
fn long_sequences_are_closed_well_wherever_they_break_off() {
    let mut stage = Stage::set();
    for seed in 1_000..1_010 {
        let events = generate::events(seed, Options { steps: 60, ..Options::default() });
        let every = 1 + events.len() / 4;
        for cut in (0..=events.len()).rev().step_by(every) {
            stage.try_each(seed, &events[..cut], &Ending::ALONE);
        }
    }
}

#[test]
fn what_nobody_opened_needs_no_end() {
    let mut stage = Stage::set();
    check_all(&mut stage, &[], [&[], &["RUN_ERROR agent_error"], &["RUN_ERROR producer_lost"]]);
    check_open(&mut stage, &[], &[]);
}

#[test]
fn a_run_that_ended_gets_an_error_only_if_its_producer_breaks() {
    let mut stage = Stage::set();
    let broken: [&[&str]; 3] = [&[], &["RUN_ERROR agent_error"], &["RUN_ERROR producer_lost"]];
    let interrupted = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"approval"}]}}"#;
    check_all(&mut stage, &[RUN_STARTED, RUN_FINISHED], broken);
    check_all(&mut stage, &[RUN_STARTED, interrupted], broken);
    check_all(
        &mut stage,
        &[RUN_STARTED, r#"{"type":"RUN_\u0046INISHED","threadId":"t","runId":"r"}"#],
        broken,
    );
    check_all(&mut stage, &[RUN_STARTED, RUN_ERROR], [&[], &[], &[]]);
    check_all(&mut stage, &[RUN_ERROR], [&[], &[], &[]]);
    let open = r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#;
    check_all(&mut stage, &[RUN_STARTED, open, RUN_ERROR], [&[], &[], &[]]);
    check_all(&mut stage, &[RUN_STARTED, RUN_FINISHED, RUN_ERROR], [&[], &[], &[]]);
}

#[test]
fn a_second_run_of_the_agent_is_closed_like_the_first() {
    let mut stage = Stage::set();
    let open = r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#;
    check_open(&mut stage, &[RUN_FINISHED, RUN_STARTED], &[]);
    check_open(&mut stage, &[open, RUN_ERROR, RUN_STARTED], &[]);
    check_open(&mut stage, &[open, RUN_ERROR, RUN_STARTED, open], &["TEXT_MESSAGE_END m"]);
    check_open(&mut stage, &[RUN_ERROR, RUN_STARTED, RUN_ERROR, RUN_STARTED, open], &["TEXT_MESSAGE_END m"]);
}

#[test]
fn parts_are_ended_inside_out() {
    let mut stage = Stage::set();
    check_open(
        &mut stage,
        &[
            r#"{"type":"REASONING_START","messageId":"r"}"#,
            r#"{"type":"REASONING_MESSAGE_START","messageId":"r","role":"reasoning"}"#,
            r#"{"type":"REASONING_MESSAGE_CONTENT","messageId":"r","delta":"hm"}"#,
        ],
        &["REASONING_MESSAGE_END r", "REASONING_END r"],
    );
    check_open(
        &mut stage,
        &[
            r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"half\": \"of an arg"}"#,
        ],
        &["TOOL_CALL_END c", "TEXT_MESSAGE_END m"],
    );
    check_open(
        &mut stage,
        &[r#"{"type":"THINKING_START","title":"plan"}"#, r#"{"type":"THINKING_TEXT_MESSAGE_START"}"#],
        &["THINKING_TEXT_MESSAGE_END", "THINKING_END"],
    );
    check_open(
        &mut stage,
        &[
            r#"{"type":"THINKING_TEXT_MESSAGE_START"}"#,
            r#"{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"x"}"#,
        ],
        &["THINKING_TEXT_MESSAGE_END"],
    );
}

#[test]
fn interleaved_parts_of_one_name_are_told_apart() {
    let mut stage = Stage::set();
    check_open(
        &mut stage,
        &[
            r#"{"type":"TEXT_MESSAGE_START","messageId":"x"}"#,
            r#"{"type":"REASONING_MESSAGE_START","messageId":"x","role":"reasoning"}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"x","toolCallName":"f"}"#,
            r#"{"type":"TOOL_CALL_START","toolCallId":"y","toolCallName":"f"}"#,
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"x","delta":"a"}"#,
            r#"{"type":"REASONING_MESSAGE_END","messageId":"x"}"#,
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"x","delta":"{}"}"#,
            r#"{"type":"TOOL_CALL_END","toolCallId":"y"}"#,
        ],
        &["TOOL_CALL_END x", "TEXT_MESSAGE_END x"],
    );
}

#[test]
fn a_part_that_was_opened_again_is_ended_once() {
    let mut stage = Stage::set();
    check_open(
        &mut stage,
        &[
            r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"n"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"\u006d"}"#,
        ],
        &["TEXT_MESSAGE_END m", "TEXT_MESSAGE_END n"],
    );
}

#[test]
fn chunks_close_themselves() {
    let mut stage = Stage::set();
    let subagent = r#"{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"researcher"}"#;
    for chunk in [
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a"}"#,
        r#"{"type":"REASONING_MESSAGE_CHUNK","messageId":"m","delta":"a"}"#,
        r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f","delta":"{"}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a","subagentRunId":"s"}"#,
    ] {
        check_open(&mut stage, &[subagent, chunk], &[]);
        let open = r#"{"type":"TEXT_MESSAGE_START","messageId":"o"}"#;
        check_open(&mut stage, &[subagent, open, chunk], &["TEXT_MESSAGE_END o"]);
    }
}

#[test]
fn a_subagents_parts_are_ended_for_it() {
    let mut stage = Stage::set();
    let subagent = r#"{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"researcher"}"#;
    let open = r#"{"type":"TEXT_MESSAGE_START","messageId":"m","subagentRunId":"s"}"#;
    let gone = r#"{"type":"SUBAGENT_FINISHED","subagentRunId":"s"}"#;
    check_open(&mut stage, &[subagent, open], &["TEXT_MESSAGE_END m"]);
    check_open(&mut stage, &[subagent, open, gone], &["TEXT_MESSAGE_END m"]);
}

/// The client takes RUN_ERROR with steps, subagents and activities open: they end with the run.
#[test]
fn steps_need_no_end() {
    let mut stage = Stage::set();
    let step = r#"{"type":"STEP_STARTED","stepName":"s"}"#;
    check_open(&mut stage, &[step], &[]);
    check_open(
        &mut stage,
        &[step, r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#],
        &["TEXT_MESSAGE_END m"],
    );
}

/// A client reads the last of two members of one name.
#[test]
fn a_repeated_member_counts_where_it_stands_last() {
    let mut stage = Stage::set();
    let repeated =
        r#"{"type":"CUSTOM","messageId":"a","t\u0079pe":"TEXT_MESSAGE_START","message\u0049d":"b"}"#;
    let events = [RUN_STARTED, repeated];
    let closed = stage.close(&events, Ending::Finished);
    assert_eq!(closed.short(), ["TEXT_MESSAGE_END b", "RUN_ERROR agent_error"]);
    assert_eq!(stage.accept(&events, &closed).texts, [""; 0]);
}

/// The client gives every span of thinking an id of its own and then knows the last one only: no event can end an
/// earlier one that is still open.
#[test]
fn thinking_that_was_started_twice_is_accepted_all_the_same() {
    let mut stage = Stage::set();
    let events = [RUN_STARTED, r#"{"type":"THINKING_START"}"#, r#"{"type":"THINKING_START"}"#];
    for ending in Ending::ALONE {
        let closed = stage.close(&events, ending);
        assert_eq!(closed.short().len(), 2, "{closed:?}");
        assert_eq!(stage.accept(&events, &closed).spans.len(), 1, "{closed:?}");
    }
}

#[test]
fn odd_ids_are_written_as_they_were_meant() {
    let mut stage = Stage::set();
    for id in [
        r#"quote\" and \\ and \/"#,
        r"\u0000\b\f\n\r\t\u001f",
        r"\ud83d",
        r"\udc69",
        r"\udc69\ud83d",
        r"\ud83d\udc69",
        r"a\ud83d b\udc69",
        "\u{2028}\u{7f}é日👩",
        r"\u00e9",
        "",
        "__proto__",
    ] {
        let event = |kind: &str, rest: &str| format!(r#"{{"type":"{kind}"{rest}}}"#);
        let text = event("TEXT_MESSAGE_START", &format!(r#","messageId":"{id}""#));
        let tool = event("TOOL_CALL_START", &format!(r#","toolCallName":"f","toolCallId":"{id}""#));
        let span = event("REASONING_START", &format!(r#","messageId":"{id}""#));
        let events = [RUN_STARTED, &text, &tool, &span];
        for ending in Ending::ALONE {
            let closed = stage.close(&events, ending);
            assert_eq!(closed.appended.len(), 4, "{id:?} {ending:?}: {:?}", closed.appended);
            stage.judge(&events, ending, &closed);
        }
    }
}

/// What the client refuses is passed on and not repaired, but it is closed all the same.
#[test]
fn events_without_a_run_are_closed_only_if_their_producer_breaks() {
    let mut stage = Stage::set();
    let open = r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#;
    for (ending, expected) in Ending::ALONE.into_iter().zip([
        &[][..],
        &["TEXT_MESSAGE_END m", "RUN_ERROR agent_error"],
        &["TEXT_MESSAGE_END m", "RUN_ERROR producer_lost"],
    ]) {
        assert_eq!(stage.close(&[open], ending).short(), expected, "{ending:?}");
    }
}

#[test]
fn a_bad_line_closes_a_run_that_is_streamed() {
    let mut stage = Stage::set();
    for seed in 0..20 {
        let options = Options { steps: 6, line_breaks: false, ..Options::default() };
        let events = generate::events(seed, options);
        for cut in [1, events.len() / 2, events.len()] {
            stage.try_each(seed, &events[..cut], &[Ending::BadLine]);
        }
    }
}

#[test]
fn a_run_that_grows_too_large_is_closed() {
    let mut stage = Stage::with_run_bytes_max(400);
    let events = [
        RUN_STARTED,
        r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
        r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}"#,
    ];
    let closed = stage.close(&events, Ending::TooLarge);
    assert_eq!(closed.short(), ["TOOL_CALL_END c", "TEXT_MESSAGE_END m", "RUN_ERROR too_large"]);
    stage.judge(&events, Ending::TooLarge, &closed);
}

#[test]
fn a_superseded_run_gets_nothing_and_is_saved_as_far_as_it_came() {
    let mut stage = Stage::set();
    for seed in 0..30 {
        let events = generate::events(seed, Options { steps: 6, ..Options::default() });
        for cut in [0, 1, events.len() / 2, events.len()] {
            let prefix = stage::borrowed(&events[..cut]);
            let closed = stage.close(&prefix, Ending::Superseded);
            assert!(
                closed.appended.is_empty() && closed.end.superseded,
                "seed {seed}, {cut} events: {closed:?}"
            );
            stage.accept(&prefix, &closed);
        }
    }
}

#[test]
fn a_server_that_stops_closes_every_run() {
    let mut stage = Stage::set();
    let prefixes: Vec<Vec<String>> = (0..60)
        .map(|seed| {
            let mut events = generate::events(seed, Options { steps: 6, ..Options::default() });
            events.truncate(usize::try_from(seed).unwrap() % (events.len() + 1));
            events
        })
        .collect();
    let closed = stage.stop(&prefixes);
    assert_eq!(closed.len(), prefixes.len());
    for (prefix, closed) in prefixes.iter().zip(&closed) {
        stage.judge(&stage::borrowed(prefix), Ending::Shutdown, closed);
    }
}

/// What was appended, as this crate's tests write it.
impl Closed {
    fn short(&self) -> Vec<String> {
        self.appended.iter().map(|event| stage::short(event)).collect()
    }
}
