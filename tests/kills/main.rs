//! The server is killed with SIGKILL at random moments under load: whatever anybody was told is saved has to be in the
//! history after the restart, exactly once and whole.
//!
//! `REJOIN_KILLS` says how often (20), `REJOIN_SEED` which moments; the seed is printed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "../support/rng.rs"]
mod rng;
#[path = "../support/server.rs"]
mod server;

mod load;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use load::{Acknowledged, Writer};
use rng::Rng;
use server::{Served, serve_with_db};

/// Writers at the same time: the store gets groups of commits, not one after the other.
const WRITERS: usize = 8;

/// Kills after which the writers go on in other chats, so that checking the chats in use doesn't take ever longer.
const KILLS_PER_CHAT: u64 = 10;

/// A kill comes this many milliseconds after the server listens, at most.
const LIFE_MS_MAX: usize = 300;

#[test]
fn what_was_acknowledged_survives_sigkill_exactly_once() {
    let kills = setting("REJOIN_KILLS").unwrap_or(20);
    let seed = setting("REJOIN_SEED").unwrap_or_else(|| RandomState::new().build_hasher().finish());
    println!("REJOIN_KILLS={kills} REJOIN_SEED={seed}");
    let mut rng = Rng::new(seed);
    let dir = std::env::temp_dir().join(format!("rejoin-kills-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let db = dir.join("kills.db").to_str().unwrap().to_owned();
    let mut told = Vec::new();
    for kill in 0..kills {
        let mut served = serve_with_db(&db, &[]);
        told.extend(kill_under_load(&mut served, kill, &mut rng));
        check(&serve_with_db(&db, &[]), kill / KILLS_PER_CHAT, &told);
    }
    let served = serve_with_db(&db, &[]);
    let stored: usize = (0..=kills / KILLS_PER_CHAT).map(|era| check(&served, era, &told)).sum();
    println!(
        "{kills} kills: {} turns acknowledged, all of them among the {stored} in the history",
        told.len()
    );
    assert!(told.len() as u64 > kills, "the server hardly lived: {} turns acknowledged", told.len());
    let doctor = Command::new(env!("CARGO_BIN_EXE_rejoin"))
        .args(["doctor", "--db", &db, "--listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stdout));
    std::fs::remove_dir_all(&dir).unwrap();
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a whole number"))
}

/// Lets writers work until the server is killed; what they were told.
fn kill_under_load(served: &mut Served, kill: u64, rng: &mut Rng) -> Vec<Acknowledged> {
    let killed = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let writer = Writer { address: served.address, chat: chat(kill / KILLS_PER_CHAT, number), kill };
            let (mut rng, killed) = (Rng::new(rng.next()), killed.clone());
            std::thread::spawn(move || {
                let mut told = Vec::new();
                let result = (0..).try_for_each(|turn| writer.turn(turn, &mut rng, &mut told));
                assert!(killed.load(Ordering::SeqCst), "a writer failed before the kill: {result:?}");
                told
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(20 + rng.below(LIFE_MS_MAX - 20) as u64));
    killed.store(true, Ordering::SeqCst);
    served.kill();
    writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
}

fn chat(era: u64, writer: usize) -> String {
    format!("era{era}-writer{writer}")
}

/// Of the chats of one era: every acknowledged turn is there once and with all its events, and no turn is there twice.
/// Returns how many there are.
fn check(served: &Served, era: u64, told: &[Acknowledged]) -> usize {
    let mut stored: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for turn in (0..WRITERS).flat_map(|writer| turns(served, &chat(era, writer))) {
        stored.entry(turn["run_id"].as_str().unwrap().to_owned()).or_default().push(turn);
    }
    for (run, turns) in &stored {
        assert_eq!(turns.len(), 1, "run {run} is in the history {} times", turns.len());
    }
    for acknowledged in told.iter().filter(|told| told.kill / KILLS_PER_CHAT == era) {
        let run = &acknowledged.run;
        let turn =
            &stored.get(run).unwrap_or_else(|| panic!("run {run} was acknowledged and is not there"))[0];
        assert_eq!(turn["persisted"], true, "run {run} was acknowledged and is not saved");
        let text: String =
            turn["events"].as_array().unwrap().iter().filter_map(|event| event["delta"].as_str()).collect();
        assert_eq!(text, acknowledged.text, "of run {run}");
    }
    stored.len()
}

/// All turns of a chat, page by page.
fn turns(served: &Served, chat: &str) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let (status, page) = served.ask(&format!("GET /chats/{chat}?after_turn={after}"), "");
        if status == 404 {
            return all;
        }
        assert_eq!(status, 200, "{page}");
        all.extend(page["turns"].as_array().unwrap().iter().cloned());
        match page["next"].as_u64() {
            Some(next) => after = next,
            None => return all,
        }
    }
}
