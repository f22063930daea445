//! Compaction: what a snapshot joins, and what it must not.

use serde_json::{Value, json};

use super::case;
use crate::conformance::peer::Peer;
use crate::conformance::{Case, Stop, Tested, ensure};

pub(super) const CASES: &[Case] = &[
    case("compact.joins", "deltas of one target that follow each other are joined", joins),
    case(
        "compact.boundary",
        "any other event ends the stretch: deltas before and behind it are not joined",
        boundary,
    ),
    case(
        "compact.interleaved",
        "interleaved deltas of several targets are joined, in order of first appearance",
        interleaved,
    ),
    case("compact.four-kinds", "text, reasoning, thinking and tool arguments are all joined", four_kinds),
    case(
        "compact.shared-message",
        "a text and a reasoning delta of the same id are kept apart, and end the stretch",
        shared_message,
    ),
    case("compact.other-members", "deltas whose other members differ are not joined", other_members),
    case(
        "compact.timestamps-and-metadata",
        "the first `timestamp` and `rawEvent` stay, `metadata` is merged by its keys",
        extras,
    ),
    case(
        "compact.repeated-member",
        "a delta with a repeated member stays as it is and ends the stretch",
        repeated,
    ),
    case(
        "compact.odd-deltas",
        "a delta without a string id or delta stays as it is and ends the stretch",
        odd_deltas,
    ),
    case("compact.decoded-ids", "ids are compared decoded", decoded_ids),
    case(
        "compact.surrogates",
        "two halves of a surrogate pair become the character; a lone half stays",
        surrogates,
    ),
    case(
        "compact.chunks",
        "a CHUNK is joined to the event directly before it only, of the same id or without one",
        chunks,
    ),
    case(
        "compact.chunk-boundaries",
        "CHUNKs of other ids, or with other members, are not joined",
        chunk_boundaries,
    ),
];

fn delta(kind: &str, id: &str, text: &str) -> String {
    let member = if kind == "TOOL_CALL_ARGS" { "toolCallId" } else { "messageId" };
    format!(r#"{{"type":"{kind}","{member}":"{id}","delta":"{text}"}}"#)
}

fn text(id: &str, words: &str) -> String {
    delta("TEXT_MESSAGE_CONTENT", id, words)
}

/// A run of these events has this snapshot.
fn compacts(peer: &Peer<'_>, events: &[String], expected: &[Value]) -> Tested {
    let got = snapshot(peer, events)?;
    let got: Vec<Value> = got
        .iter()
        .map(|event| serde_json::from_str(event))
        .collect::<Result<_, _>>()
        .map_err(|_| Stop::Failed(format!("the snapshot has an event that is not JSON: {got:?}")))?;
    ensure!(got == expected, "{} came out as {}", events.join(" "), Value::from(got));
    Ok(())
}

fn snapshot(peer: &Peer<'_>, events: &[String]) -> Result<Vec<String>, Stop> {
    let run = peer.start()?;
    peer.append(&run, &events.iter().map(String::as_str).collect::<Vec<_>>())?;
    peer.live(&run.chat, "")?.events_to(events.len() as u64)
}

/// A run of these events has a snapshot with the same, byte for byte.
fn stays(peer: &Peer<'_>, events: &[String]) -> Tested {
    let got = snapshot(peer, events)?;
    ensure!(got == events, "{} came out as {}", events.join(" "), got.join(" "));
    Ok(())
}

fn value(event: &str) -> Value {
    serde_json::from_str(event).unwrap_or_default()
}

fn joins(peer: &Peer<'_>) -> Tested {
    let start = r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#.to_owned();
    let end = r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#.to_owned();
    let events = [start.clone(), text("m", "a"), text("m", "\\n\\u00e9"), text("m", "日"), end.clone()];
    compacts(peer, &events, &[value(&start), value(&text("m", "a\\né日")), value(&end)])
}

fn boundary(peer: &Peer<'_>) -> Tested {
    let custom = r#"{"type":"CUSTOM","name":"n","value":1}"#;
    for boundary in [custom, r#"{"type":"STEP_STARTED","stepName":"s"}"#, r#"{"type":"UNKNOWN_TO_ALL"}"#] {
        stays(peer, &[text("m", "a"), boundary.to_owned(), text("m", "b")])?;
    }
    Ok(())
}

fn interleaved(peer: &Peer<'_>) -> Tested {
    let args = |id: &str, json: &str| delta("TOOL_CALL_ARGS", id, json);
    let events =
        [args("t1", "{"), args("t2", "["), args("t1", "}"), text("m", "x"), args("t2", "]"), text("m", "y")];
    compacts(peer, &events, &[value(&args("t1", "{}")), value(&args("t2", "[]")), value(&text("m", "xy"))])
}

fn four_kinds(peer: &Peer<'_>) -> Tested {
    for kind in ["TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "TOOL_CALL_ARGS"] {
        let events = [delta(kind, "i", "a"), delta(kind, "i", "b")];
        compacts(peer, &events, &[value(&delta(kind, "i", "ab"))])?;
    }
    let thinking = |text: &str| format!(r#"{{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"{text}"}}"#);
    compacts(peer, &[thinking("a"), thinking("b")], &[value(&thinking("ab"))])
}

fn shared_message(peer: &Peer<'_>) -> Tested {
    stays(peer, &[text("m", "a"), delta("REASONING_MESSAGE_CONTENT", "m", "b"), text("m", "c")])
}

fn other_members(peer: &Peer<'_>) -> Tested {
    let with =
        |member: &str| format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a",{member}}}"#);
    let apart = [with(r#""x":1"#), with(r#""x":2"#), text("m", "b")];
    compacts(peer, &apart, &apart.each_ref().map(|event| value(event)))?;
    let same = [with(r#""x":1"#), with(r#""x":1"#)];
    let expected = json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "aa", "x": 1});
    compacts(peer, &same, &[expected])
}

fn extras(peer: &Peer<'_>) -> Tested {
    let with = |text: &str, members: &str| {
        format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"{text}",{members}}}"#)
    };
    let events = [
        with("a", r#""timestamp":1,"rawEvent":{"n":1},"metadata":{"p":1,"q":1}"#),
        with("b", r#""timestamp":2,"metadata":{"q":2,"r":2}"#),
        with("c", r#""rawEvent":3"#),
    ];
    let expected = json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "abc", "timestamp": 1,
        "rawEvent": {"n": 1}, "metadata": {"p": 1, "q": 2, "r": 2}});
    compacts(peer, &events, &[expected])
}

fn repeated(peer: &Peer<'_>) -> Tested {
    let twice = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b","delta":"c"}"#.to_owned();
    stays(peer, &[text("m", "a"), twice, text("m", "d")])
}

fn odd_deltas(peer: &Peer<'_>) -> Tested {
    for odd in [
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":5}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","delta":"x"}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":7,"delta":"x"}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x","metadata":1}"#,
    ] {
        stays(peer, &[text("m", "a"), odd.to_owned(), text("m", "b")])?;
    }
    Ok(())
}

fn decoded_ids(peer: &Peer<'_>) -> Tested {
    let got = snapshot(peer, &[text("m1", "a"), text("m\\u0031", "b")])?;
    ensure!(got.len() == 1, "ids that are the same when decoded were kept apart: {got:?}");
    ensure!(value(&got[0])["delta"] == "ab", "they were joined to {}", got[0]);
    Ok(())
}

fn surrogates(peer: &Peer<'_>) -> Tested {
    let events = [text("m", "x\\ud83d"), text("m", "\\ude00y")];
    compacts(peer, &events, &[value(&text("m", "x😀y"))])?;
    stays(peer, &[text("m", "x\\ud83d")])
}

fn chunk(id: &str, text: &str) -> String {
    format!(r#"{{"type":"TEXT_MESSAGE_CHUNK","messageId":"{id}","delta":"{text}"}}"#)
}

const BARE: &str = r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"b"}"#;

fn chunks(peer: &Peer<'_>) -> Tested {
    compacts(peer, &[chunk("m", "a"), chunk("m", "b")], &[value(&chunk("m", "ab"))])?;
    compacts(peer, &[chunk("m", "a"), BARE.to_owned()], &[value(&chunk("m", "ab"))])?;
    stays(peer, &[chunk("m", "a"), r#"{"type":"CUSTOM","name":"n","value":1}"#.to_owned(), BARE.to_owned()])
}

fn chunk_boundaries(peer: &Peer<'_>) -> Tested {
    stays(peer, &[chunk("m", "a"), chunk("n", "b"), chunk("m", "c")])?;
    stays(peer, &[text("m", "a"), chunk("n", "b"), text("m", "c")])?;
    let more = r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"assistant","delta":"b"}"#.to_owned();
    stays(peer, &[chunk("m", "a"), more])
}
