//! The form for EventSource.

use super::case;
use crate::conformance::peer::{Peer, Run};
use crate::conformance::stream::Stream;
use crate::conformance::{Case, Stop, Tested, ensure};

pub(super) const CASES: &[Case] = &[
    case("get.ids", "each frame has an `id:` line, `<run_id>:<seq>`, END `<run_id>:end`", ids),
    case("get.query-cursor", "`run_id` and `after_seq` of the query are a cursor", query_cursor),
    case("get.last-event-id", "`Last-Event-ID` counts instead of the query", last_event_id),
    case("get.garbage", "a `Last-Event-ID` that can't be read counts as an unknown run: SNAPSHOT", garbage),
    case("get.end-204", "an `:end` cursor of the retained run, or with no run: 204", end_204),
    case("get.end-newer-run", "an `:end` cursor counts as none once there is a newer run", end_newer_run),
];

fn get(peer: &Peer<'_>, run: &Run, cursor: &str, last: Option<&str>) -> Result<Stream, Stop> {
    peer.live_get(&format!("chat_id={}{cursor}", run.chat), last)
}

fn ids(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(2)?;
    let mut stream = get(peer, &run, "", None)?;
    let mut has_id = |expected: String| {
        let message = stream.message()?;
        let id = message.and_then(|message| message.id);
        ensure!(id.as_deref() == Some(expected.as_str()), "expected the id {expected}, got {id:?}");
        Ok(())
    };
    has_id(format!("{}:2", run.id))?;
    peer.append_numbers(&run, 3, 2)?;
    has_id(format!("{}:3", run.id))?;
    has_id(format!("{}:4", run.id))?;
    peer.finish(&run)?;
    has_id(format!("{}:end", run.id))
}

fn query_cursor(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(3)?;
    let cursor = format!("&run_id={}&after_seq=1", run.id);
    get(peer, &run, &cursor, None)?.gets("E2 E3", "a cursor in the query")?;
    get(peer, &run, "&run_id=nonsense&after_seq=1", None)?.gets("S3", "another run's cursor in the query")?;
    get(peer, &run, "&after_seq=1", None)?.gets("S3", "half a cursor in the query")
}

fn last_event_id(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(4)?;
    let id = format!("{}:3", run.id);
    let cursor = format!("&run_id={}&after_seq=0", run.id);
    get(peer, &run, &cursor, Some(&id))?.gets("E4", "Last-Event-ID at 3, the query at 0")?;
    get(peer, &run, "", Some(&id))?.gets("E4", "Last-Event-ID at 3")?;
    peer.finish(&run)?;
    get(peer, &run, "", Some(&id))?.gets("E4 X4p -", "Last-Event-ID at 3, ended")
}

fn garbage(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(2)?;
    let without_run = format!("{}:", run.id);
    let signed = format!("{}:+1", run.id);
    for last in ["garbage", "nonsense:1", ":", &without_run, &signed] {
        get(peer, &run, "", Some(last))?.gets("S2", &format!("the Last-Event-ID {last}"))?;
    }
    Ok(())
}

fn end_204(peer: &Peer<'_>) -> Tested {
    let run = peer.saved_run_of(2)?;
    let end = format!("{}:end", run.id);
    get(peer, &run, "", Some(&end))?.answers(204, "an :end cursor of the ended run")?;
    get(peer, &run, "&wait_ms=10000", Some(&end))?.answers(204, "an :end cursor, which does not wait")?;
    peer.live_get(&format!("chat_id={}", peer.chat()), Some(&end))?.answers(204, "an :end cursor, no run")
}

fn end_newer_run(peer: &Peer<'_>) -> Tested {
    let run = peer.saved_run_of(2)?;
    let end = format!("{}:end", run.id);
    let new = peer.start_in(&run.chat, "{}")?;
    peer.append_numbers(&new, 1, 1)?;
    get(peer, &run, "", Some(&end))?.gets("S1", "an :end cursor, and a newer run is active")?;
    peer.finish(&new)?;
    get(peer, &run, "", Some(&end))?.answers(204, "an :end cursor, and a newer run is saved")
}
