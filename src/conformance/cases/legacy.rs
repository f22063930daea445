//! The legacy format: bare events.

use serde_json::Value;

use super::case;
use crate::conformance::peer::{Peer, number};
use crate::conformance::stream::{Ending, Stream};
use crate::conformance::{Case, Stop, Tested, ensure};

pub(super) const CASES: &[Case] = &[
    case(
        "legacy.events",
        "without `protocol`: the snapshot's events one by one, then live ones, nothing else",
        events,
    ),
    case("legacy.complete", "a complete body ends properly", complete),
    case(
        "legacy.replaced-is-cut",
        "the body of a run that was replaced ends without its last chunk",
        replaced,
    ),
    case("legacy.compacted", "what came before is compacted as in a SNAPSHOT", compacted),
    case("legacy.no-run", "no run: 204", no_run),
];

fn follow(peer: &Peer<'_>, chat: &str) -> Result<Stream, Stop> {
    peer.live_body(&format!("{{\"chat_id\":\"{chat}\"}}"))
}

fn says(stream: &mut Stream, values: std::ops::RangeInclusive<u64>) -> Tested {
    for value in values {
        let message = stream.message()?.unwrap_or_default();
        ensure!(message.data == number(value), "expected event {value} bare, got {:?}", message.data);
    }
    Ok(())
}

fn events(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(3)?;
    let mut stream = follow(peer, &run.chat)?;
    says(&mut stream, 1..=3)?;
    peer.append_numbers(&run, 4, 2)?;
    says(&mut stream, 4..=5)
}

fn complete(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(2)?;
    let mut stream = follow(peer, &run.chat)?;
    says(&mut stream, 1..=2)?;
    peer.finish(&run)?;
    let rest = stream.message()?;
    ensure!(rest.is_none(), "something came behind the last event: {rest:?}");
    ensure!(stream.ending() == Some(Ending::Complete), "the body of a complete run broke off");
    Ok(())
}

fn replaced(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(2)?;
    let mut stream = follow(peer, &run.chat)?;
    says(&mut stream, 1..=2)?;
    peer.start_in(&run.chat, r#"{"supersede":true}"#)?;
    let rest = stream.message()?;
    ensure!(rest.is_none(), "something came behind the last event: {rest:?}");
    ensure!(stream.ending() == Some(Ending::Cut), "the body of a replaced run looks complete");
    Ok(())
}

fn compacted(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    let delta = |text: &str| format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"{text}"}}"#);
    peer.append(&run, &[&delta("a"), &delta("b"), &delta("c")])?;
    let message = follow(peer, &run.chat)?.message()?.unwrap_or_default();
    let event: Value = serde_json::from_str(&message.data).unwrap_or_default();
    ensure!(event["delta"] == "abc", "three deltas came as {}", message.data);
    Ok(())
}

fn no_run(peer: &Peer<'_>) -> Tested {
    follow(peer, &peer.chat())?.answers(204, "a chat without a run")
}
