//! The judges are judged first: what the oracle must tell apart, and what the generator must hold to.

#[path = "support/agent.rs"]
mod agent;
#[path = "support/generate.rs"]
mod generate;
#[path = "support/oracle.rs"]
mod oracle;

use agent::Agent;
use generate::Options;
use oracle::{Open, Oracle};

const TRACES: [&str; 5] = [
    include_str!("data/traces/pydantic-ai-boom.sse"),
    include_str!("data/traces/pydantic-ai-hello.sse"),
    include_str!("data/traces/pydantic-ai-long-1000.sse"),
    include_str!("data/traces/pydantic-ai-tools.sse"),
    include_str!("data/traces/pydantic-ai-utf8.sse"),
];

fn trace(sse: &str) -> Vec<&str> {
    sse.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
}

fn is_delta(event: &str) -> bool {
    event.contains("_CONTENT\"") || event.contains("_ARGS\"")
}

/// A run that begins with START events for a text `m`, a reasoning message `r` and a tool call `c`.
fn started(events: &[&str]) -> Vec<u8> {
    let mut all = vec![
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
        r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
        r#"{"type":"REASONING_MESSAGE_START","messageId":"r","role":"reasoning"}"#,
        r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}"#,
    ];
    all.extend(events);
    generate::array(&all)
}

const A: &str = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}"#;
const B: &str = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b"}"#;
const AB: &str = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"ab"}"#;
const CUSTOM: &str = r#"{"type":"CUSTOM","name":"n","value":1}"#;
const UNKNOWN: &str = r#"{"type":"NEWS","value":1}"#;

#[test]
fn recorded_traces_equal_themselves_and_are_accepted() {
    let mut oracle = Oracle::start();
    for sse in TRACES {
        let events = generate::array(&trace(sse));
        let comparison = oracle.compare(&events, &events);
        assert!(
            comparison.equal && comparison.before.accepted && comparison.after.accepted,
            "{comparison:?}"
        );
    }
}

#[test]
fn a_trace_without_one_of_its_events_is_different() {
    let mut oracle = Oracle::start();
    for sse in TRACES {
        let events = trace(sse);
        let delta = events.iter().position(|event| is_delta(event)).expect("every trace has a delta");
        for missing in [0, 1, delta, events.len() - 1] {
            let mut shortened = events.clone();
            shortened.remove(missing);
            let comparison = oracle.compare(&generate::array(&events), &generate::array(&shortened));
            assert!(
                !comparison.equal && comparison.lost().is_some(),
                "without event {missing}: {comparison:?}"
            );
        }
    }
}

#[test]
fn equality_sees_states_and_boundaries_and_nothing_else() {
    let mut oracle = Oracle::start();
    let mut check = |before: &[&str], after: &[&str], equal: bool| {
        let comparison = oracle.compare(&started(before), &started(after));
        assert_eq!(comparison.equal, equal, "{before:?} and {after:?}: {comparison:?}");
    };
    check(&[A, B], &[AB], true);
    check(&[A, B], &[A], false);
    check(&[A, B], &[B, A], false);
    check(&[A, CUSTOM, B], &[AB, CUSTOM], false);
    check(&[A, UNKNOWN, B], &[A, B], false);
    check(&[A, UNKNOWN, B], &[A, UNKNOWN, B], true);
    check(&[CUSTOM, UNKNOWN], &[UNKNOWN, CUSTOM], false);

    let thinking = [
        r#"{"type":"THINKING_TEXT_MESSAGE_START"}"#,
        r#"{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"x"}"#,
        r#"{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"y"}"#,
    ];
    let joined = r#"{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"xy"}"#;
    check(&thinking, &[thinking[0], joined], true);
    check(&thinking, &[thinking[0], thinking[1]], false);
    check(&[thinking[1], thinking[2], A], &[joined, A], true);

    let halves = [
        r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"\ud83d"}"#,
        r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"\udc69"}"#,
    ];
    check(&halves, &[r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"👩"}"#], true);
    check(&halves, &[r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"\ufffd\ufffd"}"#], false);
}

#[test]
fn the_tail_follows_both_sides() {
    let mut oracle = Oracle::start();
    let end = generate::array(&[r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#, CUSTOM]);
    let comparison = oracle.compare_with_tail(&started(&[A, B]), &started(&[AB]), &end);
    assert!(comparison.equal && comparison.before.accepted && comparison.after.accepted, "{comparison:?}");
    let comparison = oracle.compare_with_tail(&started(&[A]), &generate::array(&[A]), &end);
    assert!(!comparison.equal && comparison.before.accepted && !comparison.after.accepted, "{comparison:?}");
}

#[test]
fn refusals_name_the_event_and_the_stage() {
    let mut oracle = Oracle::start();
    let mut check = |events: Vec<u8>, index: usize, stage: &str| {
        let verification = oracle.verify(&events);
        let refusal = verification.error.as_ref().map(|refusal| (refusal.index, refusal.stage.as_str()));
        assert_eq!(refusal, Some((index, stage)), "{}: {verification:?}", String::from_utf8_lossy(&events));
        assert!(!verification.accepted);
    };
    check(generate::array(&[A]), 0, "verifier");
    let orphan = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"nobody","delta":"a"}"#;
    check(started(&[A, orphan, B]), 5, "verifier");
    check(started(&[r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#]), 4, "verifier");
    check(started(&[A, r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":5}"#]), 5, "enforcement");
    check(started(&[r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"a"}"#]), 4, "chunks");
    check(started(&["null"]), 4, "compatibility");
}

#[test]
fn what_is_open_at_the_end_is_listed() {
    let mut oracle = Oracle::start();
    let id = |name: &str| vec![name.to_owned()];
    let open =
        Open { run: true, texts: id("m"), reasonings: id("r"), tool_calls: id("c"), ..Open::default() };
    let chunk = r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"k","delta":"a"}"#;
    assert_eq!(oracle.verify(&started(&[A, chunk])).open, open);
    let step = r#"{"type":"STEP_STARTED","stepName":"s"}"#;
    let end = r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#;
    let open = Open { texts: Vec::new(), steps: id("s"), ..open };
    assert_eq!(oracle.verify(&started(&[step, A, end])).open, open);
    let error = r#"{"type":"RUN_ERROR","message":"broken"}"#;
    assert!(!oracle.verify(&started(&[error])).open.run);
}

#[test]
fn a_reduction_is_what_a_client_shows() {
    let mut oracle = Oracle::start();
    let state = r#"{"type":"STATE_SNAPSHOT","snapshot":{"n":1}}"#;
    let events = generate::array(&[
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a\ud83d"}"#,
        state,
    ]);
    let shown = oracle.reduce(&events);
    assert!(shown.accepted);
    assert_eq!(shown.messages.get(), r#"[{"id":"m","role":"assistant","content":"a\ud83d"}]"#);
    assert_eq!((shown.state.get(), shown.interrupts.get()), (r#"{"n":1}"#, "[]"));
    let refused = oracle.reduce(&generate::array(&[state]));
    assert!(!refused.accepted);
    assert_eq!(refused.state.get(), r#"{"n":1}"#);
}

#[test]
fn the_agent_sends_what_the_oracle_accepts() {
    let (agent, mut oracle) = (Agent::start(), Oracle::start());
    let mut check = |prompt: &str, shown: &str| {
        let message = format!(r#"{{"id":"u","role":"user","content":"{prompt}"}}"#);
        let input = format!(r#"{{"threadId":"t","runId":"r","messages":[{message}]}}"#);
        let answer = ureq::post(agent.url()).header("Content-Type", "application/json").send(&input);
        let sse =
            answer.and_then(|mut answer| answer.body_mut().read_to_string()).expect("the agent answers");
        let reduction = oracle.reduce(&generate::array(&trace(&sse)));
        assert!(reduction.accepted, "{sse}");
        assert!(reduction.messages.get().contains(shown), "{}", reduction.messages);
    };
    check("hi", "Hello from a real AG-UI agent.");
    check("tools", "sunny in Zürich");
    check("boom", "so far so good, ");
}

#[test]
fn generated_sequences_are_accepted() {
    let mut oracle = Oracle::start();
    for seed in 0..200 {
        let events = generate::events(seed, Options::default());
        let verification = oracle.verify(&generate::array(&events));
        let refused = verification.error.as_ref().and_then(|refusal| events.get(refusal.index));
        assert!(verification.accepted, "seed {seed}, {refused:?}: {verification:?}");
    }
}

#[test]
fn broken_sequences_are_mostly_refused() {
    let mut oracle = Oracle::start();
    let options = Options { valid: false, ..Options::default() };
    let accepted = |seed| oracle.verify(&generate::array(&generate::events(seed, options))).accepted;
    let refused = 100 - (0..100).map(accepted).filter(|&accepted| accepted).count();
    assert!((50..100).contains(&refused), "{refused} of 100 are refused");
}

#[test]
fn generated_events_are_objects_with_a_string_type() {
    for (seed, valid) in (0..30).flat_map(|seed| [(seed, true), (seed, false)]) {
        let options = Options { valid, line_breaks: false, ..Options::default() };
        let events = generate::events(seed, options);
        assert_eq!(events, generate::events(seed, options), "a seed gives one sequence");
        for event in &events {
            assert!(!event.contains(['\n', '\r']), "{event:?}");
            let members: Members =
                serde_json::from_str(event).unwrap_or_else(|error| panic!("{event:?}: {error}"));
            assert!(members.0 > 0, "{event:?}");
        }
    }
}

/// The number of members of an object that are called `type` and hold a string.
struct Members(usize);

impl<'de> serde::Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct Counter;
        impl<'de> serde::de::Visitor<'de> for Counter {
            type Value = Members;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut types = 0;
                while let Some((key, value)) = map.next_entry::<String, Box<serde_json::value::RawValue>>()? {
                    types += usize::from(key == "type" && value.get().starts_with('"'));
                }
                Ok(Members(types))
            }
        }
        deserializer.deserialize_map(Counter)
    }
}

#[test]
fn generated_sequences_hold_every_kind_of_event() {
    let all: String = (0..40).flat_map(|seed| generate::events(seed, Options::default())).collect();
    let kinds = [
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_CHUNK",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_CHUNK",
        "TOOL_CALL_RESULT",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_CHUNK",
        "REASONING_END",
        "REASONING_ENCRYPTED_VALUE",
        "THINKING_TEXT_MESSAGE_CONTENT",
        "THINKING_END",
        "STEP_FINISHED",
        "STATE_SNAPSHOT",
        "STATE_DELTA",
        "MESSAGES_SNAPSHOT",
        "ACTIVITY_SNAPSHOT",
        "ACTIVITY_DELTA",
        "SUBAGENT_STARTED",
        "SUBAGENT_FINISHED",
        "CUSTOM",
        "RAW",
        "RUN_FINISHED",
        "RUN_ERROR",
        "AGENT_FINISHED",
    ];
    for kind in kinds {
        assert!(all.contains(&format!("\"{kind}\"")), "no {kind}");
    }
    for spelling in [
        "\\ud83d\"",
        "\"\\udc69",
        "\\u0",
        "\u{2028}",
        "12345678901234567890",
        "subagentRunId",
        "metadata",
        "\r\n",
    ] {
        assert!(all.contains(spelling), "no {spelling:?}");
    }
}
