use serde_json::value::RawValue;

use super::*;

const LONGEST: Jitter = Jitter(u32::MAX);
const WAIT_MS: u64 = 700;

fn run(number: u128) -> RunId {
    RunId::from_bits(number)
}

fn raw() -> Box<RawValue> {
    RawValue::from_string(r#"{"type":"X"}"#.to_owned()).unwrap()
}

fn snapshot(number: u128, seq: u64) -> Frame {
    Frame::Snapshot(Snapshot { run: run(number), seq: Seq(seq), events: Vec::new() })
}

fn event(number: u128, seq: u64) -> Frame {
    Frame::Event(Event { run: run(number), seq: Seq(seq), event: raw() })
}

fn end(number: u128, seq: u64, persisted: bool, superseded: bool) -> Frame {
    Frame::End(End { run: run(number), seq: Seq(seq), persisted, superseded })
}

/// A notice in short.
fn short(notice: Option<Notice>) -> String {
    match notice {
        None => "ignored".to_owned(),
        Some(Notice::Snapshot(snapshot)) => format!("snapshot {}", snapshot.seq),
        Some(Notice::Event(event)) => format!("event {}", event.seq),
        Some(Notice::Ended(end)) => format!("ended {} {}", end.persisted, end.superseded),
        Some(Notice::Reconnecting { attempt, delay, loss, .. }) => {
            format!("reconnecting {attempt} {} ms: {loss:?}", delay.as_millis())
        }
        Some(Notice::GaveUp(loss)) => format!("gave up: {loss:?}"),
        Some(Notice::Idle { attached }) => format!("idle {attached}"),
        Some(Notice::Refused { status, message }) => format!("refused {status} {message}"),
    }
}

/// Feeds frames to a follower that has an open stream, and compares what it tells.
fn check(follower: &mut Follower, cases: impl IntoIterator<Item = (Frame, &'static str)>) {
    for (frame, expected) in cases {
        let told = format!("{frame:?}");
        assert_eq!(short(follower.frame(frame, LONGEST)), expected, "{told}");
    }
}

fn opened() -> Follower {
    let mut follower = Follower::new(None, WAIT_MS, Backoff::default());
    assert_eq!(follower.next(), Next::Ask(Duration::ZERO, Request { cursor: None, wait_ms: WAIT_MS }));
    follower.opened();
    assert_eq!(follower.next(), Next::Read);
    follower
}

fn at(number: u128, after: u64) -> Option<Cursor> {
    Some(Cursor { run: run(number), after: Seq(after) })
}

fn asks(follower: &Follower, delay_ms: u64, cursor: Option<Cursor>, wait_ms: u64) {
    let delay = Duration::from_millis(delay_ms);
    assert_eq!(follower.next(), Next::Ask(delay, Request { cursor, wait_ms }));
}

#[test]
fn frames_are_applied_in_order_and_duplicates_ignored() {
    let mut follower = opened();
    let cases = [
        (snapshot(1, 4), "snapshot 4"),
        (event(1, 4), "ignored"),
        (event(1, 5), "event 5"),
        (event(1, 5), "ignored"),
        (event(1, 1), "ignored"),
        (event(1, 6), "event 6"),
        (end(1, 6, true, false), "ended true false"),
    ];
    check(&mut follower, cases);
    assert_eq!(follower.next(), Next::Stop);
}

#[test]
fn a_gap_is_a_lost_connection() {
    let mut follower = opened();
    check(&mut follower, [(snapshot(1, 4), "snapshot 4"), (event(1, 6), "reconnecting 1 500 ms: Gap")]);
    asks(&follower, 500, at(1, 4), 0);
}

#[test]
fn an_event_of_an_unknown_run_is_a_lost_connection() {
    let mut follower = opened();
    check(&mut follower, [(event(1, 1), "reconnecting 1 500 ms: Gap")]);
    asks(&follower, 500, None, WAIT_MS);
    follower.opened();
    check(&mut follower, [(snapshot(1, 4), "snapshot 4"), (event(2, 5), "reconnecting 1 500 ms: Gap")]);
    asks(&follower, 500, at(1, 4), 0);
}

#[test]
fn an_end_behind_missing_events_is_no_end() {
    for wrong in [end(1, 5, true, false), end(2, 4, true, false)] {
        let mut follower = opened();
        check(&mut follower, [(snapshot(1, 4), "snapshot 4"), (wrong, "reconnecting 1 500 ms: Gap")]);
    }
}

#[test]
fn a_second_snapshot_replaces_everything() {
    let mut follower = opened();
    let cases = [
        (snapshot(1, 4), "snapshot 4"),
        (snapshot(1, 90), "snapshot 90"),
        (event(1, 91), "event 91"),
        (snapshot(2, 0), "snapshot 0"),
        (event(2, 1), "event 1"),
    ];
    check(&mut follower, cases);
}

#[test]
fn persisted_is_passed_on_truthfully() {
    let mut follower = opened();
    check(&mut follower, [(snapshot(1, 0), "snapshot 0"), (end(1, 0, false, false), "ended false false")]);
    assert_eq!(follower.next(), Next::Stop);
}

#[test]
fn a_superseded_run_leads_to_its_replacement() {
    let mut follower = opened();
    check(&mut follower, [(snapshot(1, 4), "snapshot 4"), (end(1, 4, false, true), "ended false true")]);
    asks(&follower, 0, at(1, 4), WAIT_MS_MAX);
    follower.opened();
    check(&mut follower, [(snapshot(2, 9), "snapshot 9"), (end(2, 9, true, false), "ended true false")]);
    assert_eq!(follower.next(), Next::Stop);
}

#[test]
fn the_same_superseded_end_again_drops_the_cursor() {
    let mut follower = opened();
    check(&mut follower, [(snapshot(1, 4), "snapshot 4"), (end(1, 4, false, true), "ended false true")]);
    follower.opened();
    check(&mut follower, [(end(1, 4, false, true), "ended false true")]);
    asks(&follower, 0, None, WAIT_MS_MAX);
    assert_eq!(short(Some(follower.nothing())), "idle true");
}

#[test]
fn end_of_file_is_no_end_and_five_attempts_follow() {
    let mut follower = opened();
    check(&mut follower, [(snapshot(1, 4), "snapshot 4"), (event(1, 5), "event 5")]);
    for (attempt, delay_ms) in [(1, 500), (2, 1_000), (3, 2_000), (4, 4_000), (5, 8_000)] {
        let notice = follower.lost(Loss::EndOfFile, LONGEST);
        assert_eq!(short(Some(notice)), format!("reconnecting {attempt} {delay_ms} ms: EndOfFile"));
        asks(&follower, delay_ms, at(1, 5), 0);
    }
    assert_eq!(short(Some(follower.lost(Loss::Silent, LONGEST))), "gave up: Silent");
    assert_eq!(follower.next(), Next::Stop);
}

#[test]
fn progress_starts_the_attempts_anew() {
    for progress in [event(1, 5), snapshot(1, 5), snapshot(2, 0)] {
        let mut follower = opened();
        check(&mut follower, [(snapshot(1, 4), "snapshot 4")]);
        for _ in 0..5 {
            follower.lost(Loss::EndOfFile, LONGEST);
        }
        follower.opened();
        follower.frame(progress, LONGEST);
        let notice = follower.lost(Loss::EndOfFile, LONGEST);
        assert_eq!(short(Some(notice)), "reconnecting 1 500 ms: EndOfFile");
    }
}

#[test]
fn the_same_snapshot_again_is_no_progress() {
    let mut follower = opened();
    check(&mut follower, [(snapshot(1, 4), "snapshot 4")]);
    for _ in 0..5 {
        follower.lost(Loss::EndOfFile, LONGEST);
        follower.opened();
        check(&mut follower, [(snapshot(1, 4), "snapshot 4"), (event(1, 4), "ignored")]);
    }
    assert_eq!(short(Some(follower.lost(Loss::EndOfFile, LONGEST))), "gave up: EndOfFile");
}

#[test]
fn no_content_means_nothing_to_observe() {
    let mut fresh = Follower::new(None, WAIT_MS, Backoff::default());
    assert_eq!(short(Some(fresh.nothing())), "idle false");
    assert_eq!(fresh.next(), Next::Stop);

    let mut follower = opened();
    check(&mut follower, [(snapshot(1, 4), "snapshot 4")]);
    follower.lost(Loss::EndOfFile, LONGEST);
    assert_eq!(short(Some(follower.nothing())), "idle true");
}

#[test]
fn a_cursor_to_start_with_is_asked_for() {
    let follower = Follower::new(at(3, 8), WAIT_MS, Backoff::default());
    asks(&follower, 0, at(3, 8), WAIT_MS);
}

#[test]
fn a_refusal_is_final() {
    let mut follower = Follower::new(None, WAIT_MS, Backoff::default());
    assert_eq!(short(Some(follower.refused(400, "no".to_owned()))), "refused 400 no");
    assert_eq!(follower.next(), Next::Stop);
}

#[test]
fn a_delay_comes_on_top_of_what_the_server_asks_for() {
    let mut follower = Follower::new(None, WAIT_MS, Backoff::default());
    for delay_ms in [2_500, 3_000] {
        follower.lost_until(Loss::Status(503), Duration::from_secs(2), LONGEST);
        asks(&follower, delay_ms, None, WAIT_MS);
    }
    follower.lost(Loss::EndOfFile, LONGEST);
    asks(&follower, 2_000, None, WAIT_MS);
}
