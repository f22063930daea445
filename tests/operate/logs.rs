//! The log: which runs it names, at which level, in which format.

use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::server::{Served, serve_as};

/// A server whose log goes to a file, and what is in it once the server has stopped.
struct Logged {
    served: Served,
}

impl Logged {
    fn serve(args: &[&str], filter: &str) -> Logged {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let log = std::env::temp_dir().join(format!("rejoin-log-{}-{number}", std::process::id()));
        let file = std::fs::File::create(&log).unwrap();
        let served = serve_as(":memory:", args, |command| {
            command.env("RUST_LOG", filter).stderr(Stdio::from(file));
        });
        std::fs::rename(log, served.dir.join("log")).unwrap();
        Logged { served }
    }

    fn text(mut self) -> String {
        assert!(self.served.terminate());
        std::fs::read_to_string(self.served.dir.join("log")).unwrap()
    }
}

#[test]
fn json_logs_follow_a_run_by_its_ids() {
    let logged = Logged::serve(&["--log-format", "json"], "rejoin=debug");
    let served = &logged.served;
    let good = served.start("quote%20%22%20in%20it", "{}");
    assert!(served.finish(&good));
    let lost = served.start("c", "{}");
    assert_eq!(served.ask(&format!("POST /runs/{lost}/finish"), r#"{"error":"no model"}"#).0, 200);
    let old = served.start("c", "{}");
    let new = served.start("c", r#"{"supersede":true}"#);
    let text = logged.text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let said = |run: &str| -> Vec<String> {
        let of_run = lines.iter().filter(|line| line["run"] == run);
        of_run
            .map(|line| format!("{} {}", line["level"].as_str().unwrap(), line["message"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(said(&good), ["DEBUG a run is registered", "DEBUG a run ended"]);
    assert_eq!(
        said(&lost),
        ["DEBUG a run is registered", "WARN a run went wrong and is closed", "DEBUG a run ended"]
    );
    assert_eq!(said(&old), ["DEBUG a run is registered", "DEBUG a newer run took the place of a run"]);
    assert_eq!(said(&new), ["DEBUG a run is registered", "DEBUG a run is closed", "DEBUG a run ended"]);
    let ended = lines.iter().find(|line| line["run"] == good && line["message"] == "a run ended").unwrap();
    assert_eq!((&ended["saved"], ended["chat"].as_str()), (&Value::Bool(true), Some("quote \" in it")));
    let closed = lines.iter().find(|line| line["run"] == lost && line["level"] == "WARN").unwrap();
    assert_eq!((closed["code"].as_str(), closed["reason"].as_str()), (Some("agent_error"), Some("no model")));
    assert!(lines.iter().all(|line| line["timestamp"].is_string() && line["target"].is_string()));
}

#[test]
fn usual_logs_are_text_without_a_line_per_run() {
    let logged = Logged::serve(&[], "");
    let run = logged.served.start("c", "{}");
    assert!(logged.served.finish(&run));
    let text = logged.text();
    assert!(text.contains("INFO rejoin::cli::serve: stopping"), "{text}");
    assert!(!text.contains(&run) && !text.contains('\u{1b}'), "neither runs nor colours in a file: {text}");
}

#[test]
fn a_filter_that_makes_no_sense_is_told_of() {
    let text = Logged::serve(&["--log-format", "text"], "rejoin=loud").text();
    assert!(text.contains("WARN") && text.contains("RUST_LOG is no filter"), "{text}");
    assert!(text.contains("INFO"), "it logs as if there were none: {text}");
}
