//! `rejoin conformance URL` through each proxy.

use std::process::Command;

use serde_json::Value;

use crate::server::serve_with_unsaved_run;
use crate::ways::Way;

fn check(way: Way) {
    let served = serve_with_unsaved_run(&["--window-events", "512"]);
    let proxy = way.to(&served);
    let url = format!("http://{}", proxy.front.address);
    let output = Command::new(env!("CARGO_BIN_EXE_rejoin"))
        .args(["conformance", &url, "--json", "-", "--slow"])
        .args(["--window-events", "512", "--unsaved-chat", "unsaved"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cases = report["cases"].as_array().unwrap();
    assert_eq!(cases.len(), rejoin::conformance::cases().count());
    let wrong: Vec<&Value> = cases.iter().filter(|case| case["verdict"] != "ok").collect();
    assert!(wrong.is_empty(), "{way:?}: {wrong:#?}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn every_case_passes_through_nginx() {
    check(Way::Nginx);
}

#[test]
fn every_case_passes_through_haproxy() {
    check(Way::Haproxy);
}
