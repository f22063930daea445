//! One more observer changes nothing for the others: the same seed is lived through twice, with and without a guest, and
//! everybody else is sent the same.
//!
//! The guest has dice of its own, so the others' fate is the same in both worlds. Snapshots are shared between observers,
//! so whoever is sent one may get an older one with more events behind it, or the other way round: then what they come to
//! has to be the same.

use serde_json::Value;

use crate::client::Client;
use crate::model;
use crate::observer::Observer;
use crate::reader::Reader;
use crate::rng::Rng;
use crate::world::World;

/// Seeds of pairs.
const PAIRS: u64 = 200;

/// The guest's connection.
const GUEST: usize = 1;

type Transcripts = std::collections::BTreeMap<(u32, u32), Vec<u8>>;

/// Everybody's bytes but the guest's; and how many the guest got.
fn live(seed: u64, invited: bool) -> (Transcripts, usize) {
    let mut world = World::with_guest_place(seed);
    let mut dice = Rng::new(seed + 1);
    for _ in 0..world.swarm.steps {
        crate::step(&mut world);
        if invited {
            guest(&mut world, &mut dice);
        }
        if world.checker.violation.is_some() {
            break;
        }
    }
    let violation = world.checker.violation.take();
    let trace = world.trace.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(violation.is_none(), "seed {seed}, guest {invited}: {violation:?}\n{trace}");
    let (guests, others): (Transcripts, Transcripts) =
        world.transcripts.take().unwrap().into_iter().partition(|((slot, _), _)| *slot as usize == GUEST);
    (others, guests.values().map(Vec::len).sum())
}

fn guest(world: &mut World, dice: &mut Rng) {
    if !world.is_open(GUEST) {
        let chat = format!("chat{}", dice.below(world.swarm.chats));
        let known = world.checker.known(&chat);
        let mut observer = Observer::new(dice, chat, &known);
        let bytes = observer.next_request(0).unwrap();
        world.open(GUEST, Client::Observer(observer), bytes);
    } else if dice.chance(10) {
        world.cut(GUEST);
    } else {
        world.deliver(GUEST);
    }
}

/// What a client comes to by these bytes: each answer's status with its state, or its body.
fn comes_to(bytes: &[u8]) -> Vec<(u16, Value)> {
    let mut reader = Reader::default();
    reader.feed(bytes).unwrap();
    reader.end();
    let left = reader.current().map(std::mem::take);
    reader.done.into_iter().chain(left).map(|mut response| (response.status, state(&mut response))).collect()
}

fn state(response: &mut crate::reader::Response) -> Value {
    let (mut events, mut end) = (Vec::new(), Vec::new());
    while let Some(lines) = response.message() {
        let Some(json) = lines.iter().find_map(|line| line.strip_prefix("data: ")) else { continue };
        let frame: Value = serde_json::from_str(json).unwrap();
        match frame["type"].as_str() {
            Some("STREAM_SNAPSHOT") => events = frame["events"].as_array().unwrap().clone(),
            Some("STREAM_EVENT") => events.push(frame["event"].clone()),
            Some("STREAM_END") => end.push(frame),
            _ => events.push(frame),
        }
    }
    if events.is_empty() && end.is_empty() {
        return Value::String(String::from_utf8_lossy(&response.body).into_owned());
    }
    serde_json::json!([model::compact(&events), end])
}

#[test]
fn adding_an_observer_changes_no_others_bytes() {
    let (mut sent, mut same, mut different) = (0, 0, 0);
    for seed in 0..PAIRS {
        let (alone, _) = live(seed, false);
        let (accompanied, guest_bytes) = live(seed, true);
        sent += guest_bytes;
        assert!(alone.keys().eq(accompanied.keys()), "seed {seed}: others came");
        for (id, bytes) in &alone {
            let other = &accompanied[id];
            if bytes == other {
                same += 1;
                continue;
            }
            different += 1;
            assert!(
                String::from_utf8_lossy(bytes).contains("STREAM_SNAPSHOT") || is_legacy(bytes),
                "seed {seed}, {id:?}"
            );
            assert_eq!(comes_to(bytes), comes_to(other), "seed {seed}, {id:?}");
        }
    }
    println!("{sent} bytes for guests; {same} connections got the same bytes, {different} the same state");
    assert!(sent > 100_000 && different * 20 < same, "{sent} bytes for guests, {same} same, {different} not");
}

/// Whether it is a stream in the legacy format, which begins with a snapshot's events.
fn is_legacy(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.contains("text/event-stream") && !text.contains("STREAM_")
}
