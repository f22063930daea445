//! How a run ends, and what is true then.

use super::case;
use crate::conformance::peer::Peer;
use crate::conformance::stream::Ending;
use crate::conformance::{Case, Stop, Tested, ensure};

pub(super) const CASES: &[Case] = &[
    case(
        "end.once-and-last",
        "STREAM_END comes once, repeats the head's seq, and the body ends properly behind it",
        once_and_last,
    ),
    case(
        "end.not-by-run-finished",
        "RUN_FINISHED does not end a run, and events may follow it",
        run_finished,
    ),
    case(
        "end.persisted-is-true",
        "who is told `persisted` true finds the turn in `GET /chats/{chat_id}` at once",
        persisted_is_true,
    ),
    case("end.races", "who attaches while a run ends gets all of it and END, or 204", races),
    case("end.empty-run", "a run without events ends, too", empty_run),
    case("end.same-for-all", "all observers and the producer are told the same end", same_for_all),
];

fn once_and_last(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(2)?;
    let mut live = peer.live(&run.chat, "")?;
    live.gets("S2", "an active run")?;
    peer.append_numbers(&run, 3, 2)?;
    peer.finish(&run)?;
    let told = live.follow(2)?;
    ensure!(told.end == Some((true, false)), "expected persisted true, superseded false, got {:?}", told.end);
    ensure!(live.ending() == Some(Ending::Complete), "the body broke off");
    told.has(3, 4)
}

fn run_finished(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    let mut live = peer.live(&run.chat, "")?;
    let finished = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;
    peer.append(&run, &[r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#, finished])?;
    live.gets("S0 E1 E2", "a run up to RUN_FINISHED")?;
    peer.append(&run, &[r#"{"type":"RUN_STARTED","threadId":"t","runId":"s"}"#])?;
    live.gets("E3", "an event behind RUN_FINISHED")?;
    peer.append(&run, &[r#"{"type":"RUN_FINISHED","threadId":"t","runId":"s"}"#])?;
    peer.finish(&run)?;
    live.gets("E4 X4p -", "the end")
}

fn persisted_is_true(peer: &Peer<'_>) -> Tested {
    for _ in 0..5 {
        let run = peer.run_of(2)?;
        let mut live = peer.live(&run.chat, "")?;
        live.gets("S2", "an active run")?;
        std::thread::scope(|scope| {
            let finishing = scope.spawn(|| peer.finish(&run));
            let told = live.gets("X2p", "the end").and_then(|()| {
                let history = peer.ask(&format!("GET /chats/{}", run.chat), "")?;
                history.is(200, "the history of a chat whose run is persisted")?;
                let turns = history.json["turns"].as_array().cloned().unwrap_or_default();
                let turn = turns.iter().find(|turn| turn["run_id"] == run.id.as_str());
                let Some(turn) = turn else {
                    let why =
                        format!("END said persisted, the history does not have the run: {}", history.json);
                    return Err(Stop::Failed(why));
                };
                ensure!(
                    turn["events"].as_array().is_some_and(|events| events.len() == 2),
                    "the turn is not whole: {turn}"
                );
                ensure!(turn["persisted"] != false, "END said persisted, the history does not: {turn}");
                Ok(())
            });
            let finished = finishing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            told.and(finished.map(|_| ()))
        })?;
    }
    Ok(())
}

fn races(peer: &Peer<'_>) -> Tested {
    for _ in 0..15 {
        let run = peer.run_of(2)?;
        std::thread::scope(|scope| {
            let probes: Vec<_> = (0..4)
                .map(|number| {
                    let run = &run;
                    scope.spawn(move || {
                        let (members, after) =
                            if number % 2 == 0 { (String::new(), 0) } else { (run.cursor(1), 1) };
                        let mut stream = peer.live(&run.chat, &members)?;
                        if stream.answer.status == 204 && after == 0 {
                            return Ok(());
                        }
                        let told = stream.follow(after)?;
                        ensure!(told.end == Some((true, false)), "the end said {:?}", told.end);
                        told.has(after + 1, 3)
                    })
                })
                .collect();
            let ended = peer.append_numbers(&run, 3, 1).and_then(|()| peer.finish(&run));
            let probed = probes.into_iter().map(|probe| match probe.join() {
                Ok(probed) => probed,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            let probed: Tested = probed.collect();
            ended.map(|_| ()).and(probed)
        })?;
    }
    Ok(())
}

fn empty_run(peer: &Peer<'_>) -> Tested {
    let run = peer.start()?;
    let mut live = peer.live(&run.chat, "")?;
    let answer = peer.ask(&run.line("POST", "finish", ""), "")?;
    answer.is(200, "finishing a run without events")?;
    let told = live.follow(0)?;
    let persisted = answer.json["persisted"] == true;
    ensure!(
        told.end == Some((persisted, false)),
        "the producer was told {}, the observer {:?}",
        answer.json,
        told.end
    );
    Ok(())
}

fn same_for_all(peer: &Peer<'_>) -> Tested {
    let run = peer.run_of(3)?;
    let mut streams = Vec::new();
    for after in [0, 1, 3] {
        streams.push((after, peer.live(&run.chat, &run.cursor(after))?));
    }
    let answer = peer.finish(&run)?;
    ensure!(answer.json["seq"] == 3, "the producer was told {}", answer.json);
    for (after, mut stream) in streams {
        let told = stream.follow(after)?;
        ensure!(told.end == Some((true, false)), "an observer was told {:?}", told.end);
        told.has(after + 1, 3)?;
    }
    Ok(())
}
