//! `GET /metrics`: what Prometheus' own parser makes of it, and that each figure moves when, and only when, it should.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use rejoin::engine::Config;
use rejoin::limits::COMMIT_MS;
use rejoin::proto::history::Outcome;

use crate::server::{Served, request, serve};
use crate::stage::Stage;

type Samples = BTreeMap<String, f64>;

fn parsed(text: &[u8]) -> Samples {
    let mut parser = Command::new("tests/.venv/bin/python")
        .arg("tests/operate/parse_metrics.py")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("tests/run.sh installs it");
    parser.stdin.take().unwrap().write_all(text).unwrap();
    let output = parser.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(text));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn samples(served: &Served) -> Samples {
    let mut conn = served.connect();
    conn.send(&request("GET /metrics", "", ""));
    let head = conn.head();
    assert_eq!(head.status, 200);
    let kind = head.field("Content-Type").unwrap();
    assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    parsed(&conn.body(&head))
}

#[test]
fn every_figure_moves_with_what_it_counts() {
    let served = serve(&["--window-events", "8"]);
    let before = samples(&served);

    let run = served.start("c", "{}");
    served.append_numbers(&run, 1, 20);
    let mut observer = served.live("c", "");
    assert_eq!(observer.short(), "S20");
    let _waiting = served.probe("nobody", ",\"wait_ms\":20000");
    let _subscriber = served.stream("GET /events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // Too late for the window, and of another run.
    assert_eq!(served.live("c", &format!(",\"run_id\":\"{run}\",\"after_seq\":1")).short(), "S20");
    let other = "A".repeat(22);
    assert_eq!(served.live("c", &format!(",\"run_id\":\"{other}\",\"after_seq\":1")).short(), "S20");
    assert_eq!(served.ask("GET /nowhere", "").0, 404);
    let open = samples(&served);

    assert_eq!(served.ask("POST /chat/stop", r#"{"chat_id":"c"}"#).0, 200);
    served.start("d", "{}");
    served.start("d", r#"{"supersede":true}"#);
    let after = samples(&served);

    let grew = |from: &Samples, to: &Samples, name: &str| to[name] - from.get(name).copied().unwrap_or(0.0);
    for (name, by) in [
        ("rejoin_runs{state=\"active\"}", 1.0),
        ("rejoin_waiting_probes", 1.0),
        ("rejoin_subscribers", 1.0),
        ("rejoin_runs_started_total", 1.0),
        ("rejoin_events_total", 20.0),
        ("rejoin_observers_attached_total", 3.0),
        ("rejoin_resets_total{reason=\"expired\"}", 1.0),
        ("rejoin_resets_total{reason=\"unknown_run\"}", 1.0),
        ("rejoin_resets_total{reason=\"slow\"}", 0.0),
        ("rejoin_requests_refused_total{code=\"not_found\"}", 1.0),
    ] {
        assert_eq!(grew(&before, &open, name), by, "{name}");
    }
    assert_eq!(open["rejoin_snapshot_seconds_count"], open["rejoin_snapshots_total"]);
    for name in [
        "rejoin_connections_accepted_total",
        "rejoin_received_bytes_total",
        "rejoin_sent_bytes_total",
        "rejoin_event_bytes_total",
        "rejoin_snapshots_total",
        "rejoin_snapshot_seconds_sum",
        "rejoin_loop_lag_seconds_count",
        "rejoin_loop_lag_seconds_sum",
        "rejoin_memory_bytes",
        "rejoin_observers",
        "rejoin_connections",
        "rejoin_uptime_seconds",
    ] {
        assert!(grew(&before, &open, name) > 0.0, "{name}");
    }
    for (name, by) in [
        ("rejoin_runs_closed_total{code=\"stopped\"}", 1.0),
        ("rejoin_runs_ended_total{outcome=\"saved\"}", 1.0),
        ("rejoin_runs_ended_total{outcome=\"superseded\"}", 1.0),
        ("rejoin_runs{state=\"ended\"}", 1.0),
        ("rejoin_runs{state=\"registered\"}", 1.0),
    ] {
        assert_eq!(grew(&open, &after, name), by, "{name}");
    }
    assert_eq!((after["rejoin_ready"], after["rejoin_build_info{version=\"0.1.0\"}"]), (1.0, 1.0));
    assert!(before.keys().all(|name| after.contains_key(name)), "no series goes away");
}

#[test]
fn a_slow_reader_counts_as_reset_or_as_cut() {
    let served = serve(&["--window-events", "8"]);
    let run = served.start("c", "{}");
    let mut slow = served.live("c", "");
    assert_eq!(slow.short(), "S0");
    let mut legacy = served.live_body(r#"{"chat_id":"c"}"#);
    let filler = "x".repeat(60_000);
    // Far more than the sockets hold.
    for value in 1..=400 {
        served.append(&run, &[&format!(r#"{{"type":"CUSTOM","name":"{filler}","value":{value}}}"#)]);
    }
    assert!(served.finish(&run));
    assert_eq!(slow.all().last().unwrap()["type"], "STREAM_END");
    legacy.all();
    assert!(!legacy.complete);
    let samples = samples(&served);
    assert_eq!(samples["rejoin_observers_cut_total"], 1.0);
    assert!(samples["rejoin_resets_total{reason=\"slow\"}"] >= 1.0);
}

#[test]
fn commits_are_counted_by_how_they_came_out() {
    let mut stage = Stage::new(Config::default());
    for outcome in [Outcome::Committed, Outcome::Skipped, Outcome::Failed, Outcome::Failed] {
        let run = stage.run_to_commit("c");
        stage.answer(run, outcome);
    }
    let late = stage.run_to_commit("c");
    stage.pass(COMMIT_MS);
    // Its answer comes too late to count.
    stage.answer(late, Outcome::Committed);
    let outcomes = ["committed", "skipped", "failed", "timed_out"]
        .map(|outcome| stage.metric(&format!("rejoin_finalizations_total{{outcome=\"{outcome}\"}}")));
    assert_eq!(outcomes, [1.0, 1.0, 2.0, 1.0]);
    let ended = ["saved", "not_saved"]
        .map(|outcome| stage.metric(&format!("rejoin_runs_ended_total{{outcome=\"{outcome}\"}}")));
    assert_eq!(ended, [1.0, 4.0]);
}
