//! The rows of the table of `/chat/live`.

use super::case;
use crate::conformance::peer::{Peer, Run};
use crate::conformance::{Case, Stop, Tested};

/// What names no run of any server.
const FOREIGN: [&str; 2] = ["nonsense", "AAAAAAAAAAAAAAAAAAAAAA"];

pub(super) const CASES: &[Case] = &[
    case("live.no-run.204", "no run, no `wait_ms`: 204", no_run),
    case("live.no-run.cursor-204", "no run, a cursor of another run or half a cursor: 204", no_run_cursor),
    case(
        "live.registered.snapshot-0",
        "a run without events: SNAPSHOT at seq 0 with `[]`, then live",
        registered,
    ),
    case(
        "live.active.snapshot",
        "no cursor, an active run: SNAPSHOT of all events so far, then live",
        active,
    ),
    case(
        "live.active.json-members",
        "members of the request that the protocol does not know are ignored",
        unknown_members,
    ),
    case("live.saved.204", "no cursor, the run ended and was saved: 204", saved),
    case(
        "live.unsaved.snapshot-end",
        "no cursor, the run ended and was not saved: SNAPSHOT, END with `persisted` false",
        unsaved,
    ),
    case(
        "live.cursor.later-events",
        "a cursor of the run: exactly the later events, no SNAPSHOT, then live",
        cursor,
    ),
    case(
        "live.cursor.zero",
        "`after_seq` 0 is a cursor like any other: all events, no SNAPSHOT",
        cursor_zero,
    ),
    case("live.cursor.head", "a cursor at the head: nothing but what comes later", cursor_head),
    case("live.cursor.beyond-head", "a cursor beyond the head: SNAPSHOT, then live", cursor_beyond),
    case(
        "live.cursor.ended",
        "a cursor of a run that ended: the later events, END, again and again",
        cursor_ended,
    ),
    case(
        "live.cursor.ended-beyond-head",
        "a cursor beyond the head of a run that ended: SNAPSHOT, END",
        cursor_ended_beyond,
    ),
    case("live.foreign.active", "a cursor of another run: SNAPSHOT, then live", foreign_active),
    case(
        "live.foreign.saved",
        "a cursor of another run, and the chat's run is saved: SNAPSHOT, END all the same",
        foreign_saved,
    ),
    case("live.foreign.other-chat", "a cursor of another chat's run is never honoured", foreign_chat),
    case(
        "live.half-cursor",
        "`run_id` without `after_seq`, or the reverse: SNAPSHOT, then live or END",
        half_cursor,
    ),
];

fn foreign_cursor(run_id: &str, after: u64) -> String {
    format!(",\"run_id\":\"{run_id}\",\"after_seq\":{after}")
}

fn no_run(peer: &Peer<'_>) -> Tested {
    peer.live(&peer.chat(), "")?.answers(204, "a chat without a run")?;
    peer.live(&peer.chat(), ",\"wait_ms\":0")?.answers(204, "a chat without a run, wait_ms 0")
}

fn no_run_cursor(peer: &Peer<'_>) -> Tested {
    for run_id in FOREIGN {
        peer.live(&peer.chat(), &foreign_cursor(run_id, 4))?.answers(204, "a cursor, no run")?;
    }
    peer.live(&peer.chat(), ",\"after_seq\":4")?.answers(204, "half a cursor, no run")
}

fn registered(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    let mut stream = peer.live(&run.chat, "")?;
    let (seq, events) = stream.snapshot()?;
    if (seq, events.len()) != (0, 0) {
        return Err(Stop::Failed(format!(
            "expected seq 0 and no events, got seq {seq}, {} events",
            events.len()
        )));
    }
    peer.append_numbers(&run, 1, 2)?;
    stream.gets("E1 E2", "behind the snapshot of a run without events")
}

fn active(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(3)?;
    let mut stream = peer.live(&run.chat, "")?;
    stream.gets("S3", "an active run")?;
    peer.append_numbers(&run, 4, 2)?;
    stream.gets("E4 E5", "behind the snapshot")?;
    peer.finish(&run)?;
    stream.gets("X5p -", "once it is finished")
}

fn unknown_members(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(1)?;
    peer.live(&run.chat, ",\"x\":[{}],\"client\":\"conformance\"")?
        .gets("S1", "a request with unknown members")
}

fn saved(peer: &Peer<'_>) -> Tested {
    let run = peer.saved_run_of(2)?;
    peer.live(&run.chat, "")?.answers(204, "a run that is saved")
}

fn unsaved(peer: &Peer<'_>) -> Tested {
    let Some(chat) = &peer.options.unsaved_chat else {
        let why = "HTTP alone can't make such a run; name a chat that has one with --unsaved-chat";
        return Err(Stop::Skipped(why.to_owned()));
    };
    for attempt in ["the first time", "again"] {
        let told = peer.live(chat, "")?.follow(0)?;
        if (told.snapshots, told.end) != (1, Some((false, false))) {
            return Err(Stop::Failed(format!(
                "{attempt}: expected one snapshot and an end with persisted false, got {told:?}"
            )));
        }
    }
    Ok(())
}

fn cursor(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(5)?;
    let mut stream = peer.live(&run.chat, &run.cursor(2))?;
    stream.gets("E3 E4 E5", "a cursor at 2 of 5")?;
    peer.append_numbers(&run, 6, 1)?;
    stream.gets("E6", "then live")
}

fn cursor_zero(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(2)?;
    peer.live(&run.chat, &run.cursor(0))?.gets("E1 E2", "a cursor at 0")
}

fn cursor_head(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(3)?;
    let mut stream = peer.live(&run.chat, &run.cursor(3))?;
    peer.append_numbers(&run, 4, 1)?;
    stream.gets("E4", "a cursor at the head")
}

fn cursor_beyond(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(3)?;
    for after in [4, 1 << 40, u64::MAX] {
        let mut stream = peer.live(&run.chat, &run.cursor(after))?;
        stream.gets("S3", &format!("a cursor at {after} of 3"))?;
    }
    let mut stream = peer.live(&run.chat, &run.cursor(4))?;
    stream.gets("S3", "a cursor one beyond the head")?;
    peer.append_numbers(&run, 4, 1)?;
    stream.gets("E4", "then live")
}

fn cursor_ended(peer: &Peer<'_>) -> Tested {
    let run = peer.saved_run_of(3)?;
    for _ in 0..3 {
        peer.live(&run.chat, &run.cursor(1))?.gets("E2 E3 X3p -", "a cursor at 1 of 3, ended")?;
        peer.live(&run.chat, &run.cursor(3))?.gets("X3p -", "a cursor at the head, ended")?;
        peer.live(&run.chat, &run.cursor(0))?.gets("E1 E2 E3 X3p -", "a cursor at 0, ended")?;
    }
    Ok(())
}

fn cursor_ended_beyond(peer: &Peer<'_>) -> Tested {
    let run = peer.saved_run_of(3)?;
    peer.live(&run.chat, &run.cursor(9))?.gets("S3 X3p -", "a cursor beyond the head, ended")
}

fn foreign_active(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(3)?;
    for run_id in FOREIGN {
        let mut stream = peer.live(&run.chat, &foreign_cursor(run_id, 2))?;
        stream.gets("S3", &format!("a cursor of run {run_id}"))?;
    }
    let mut stream = peer.live(&run.chat, &foreign_cursor("nonsense", 3))?;
    stream.gets("S3", "a cursor of another run at the same seq")?;
    peer.append_numbers(&run, 4, 1)?;
    stream.gets("E4", "then live")
}

fn foreign_saved(peer: &Peer<'_>) -> Tested {
    let run = peer.saved_run_of(3)?;
    for run_id in FOREIGN {
        let mut stream = peer.live(&run.chat, &foreign_cursor(run_id, 2))?;
        stream.gets("S3 X3p -", &format!("a cursor of run {run_id}, the chat's run is saved"))?;
    }
    Ok(())
}

fn foreign_chat(peer: &Peer<'_>) -> Tested {
    let (run, other) = (peer.run_of(3)?, peer.run_of(5)?);
    let Run { chat, .. } = run;
    peer.live(&chat, &other.cursor(2))?.gets("S3", "a cursor of another chat's run")
}

fn half_cursor(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(3)?;
    let halves = [format!(",\"run_id\":\"{}\"", run.id), ",\"after_seq\":1".to_owned()];
    for half in &halves {
        peer.live(&run.chat, half)?.gets("S3", "half a cursor")?;
    }
    peer.finish(&run)?;
    for half in &halves {
        peer.live(&run.chat, half)?.gets("S3 X3p -", "half a cursor, the run is saved")?;
    }
    Ok(())
}
