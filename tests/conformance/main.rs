//! `rejoin conformance`: rejoin passes its own suite, and the suite has teeth.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod faulty;
#[path = "../support/server.rs"]
mod server;

use std::process::Command;
use std::time::Duration;

use faulty::{FAULTS, relay};
use rejoin::client::ServerUrl;
use rejoin::conformance::{self, CaseResult, Options, Verdict};
use serde_json::Value;
use server::{serve, serve_with_unsaved_run};

/// A short window is soon full.
const WINDOW: [&str; 2] = ["--window-events", "512"];

/// The suite's options for a server at this address.
fn options(address: std::net::SocketAddr) -> Options {
    Options::new(ServerUrl::parse(&format!("http://{address}")).unwrap())
}

/// What did not pass, in words; a case is skipped only if the test expects it.
fn faults(results: &[CaseResult], skipped: &[&str]) -> Vec<String> {
    let wrong = results.iter().filter(|result| match result.verdict {
        Verdict::Ok => false,
        Verdict::Failed(_) => true,
        Verdict::Skipped(_) => !skipped.contains(&result.case.name),
    });
    wrong.map(|result| format!("{}: {:?}", result.case.name, result.verdict)).collect()
}

#[test]
fn rejoin_passes_every_case() {
    let served = serve_with_unsaved_run(&WINDOW);
    let unsaved_chat = Some("unsaved".to_owned());
    let options = Options { window_events: 512, unsaved_chat, slow: true, ..options(served.address) };
    let results = conformance::run(&options, |_| ());
    assert_eq!(results.len(), conformance::cases().count());
    assert_eq!(faults(&results, &[]), [""; 0]);
    let (_, chats) = served.ask("GET /chats", "");
    assert_eq!(chats["chats"], Value::Array(Vec::new()), "the suite deletes its chats");
}

#[test]
fn a_relay_without_a_fault_passes_every_case() {
    let served = serve_with_unsaved_run(&WINDOW);
    let unsaved_chat = Some("unsaved".to_owned());
    let options = Options { window_events: 512, unsaved_chat, ..options(relay(served.address, None)) };
    let results = conformance::run(&options, |_| ());
    assert_eq!(faults(&results, &["frames.keep-alive"]), [""; 0]);
}

#[test]
fn each_fault_is_noticed_by_its_case() {
    let served = serve_with_unsaved_run(&WINDOW);
    let unnoticed: Vec<String> = std::thread::scope(|scope| {
        let tries: Vec<_> = FAULTS
            .iter()
            .map(|(fault, case, why)| {
                let relay = relay(served.address, Some(*fault));
                let options = Options {
                    only: vec![(*case).to_owned()],
                    window_events: 512,
                    unsaved_chat: Some("unsaved".to_owned()),
                    case_time: Duration::from_secs(10),
                    ..options(relay)
                };
                scope.spawn(move || {
                    let results = conformance::run(&options, |_| ());
                    let result =
                        results.iter().find(|result| result.case.name == *case).expect("the case exists");
                    let noticed = matches!(&result.verdict, Verdict::Failed(said) if said.contains(why));
                    (!noticed).then(|| format!("{fault:?}, {case}: {:?}", result.verdict))
                })
            })
            .collect();
        tries.into_iter().filter_map(|one| one.join().unwrap()).collect()
    });
    assert!(unnoticed.is_empty(), "{}", unnoticed.join("\n"));
}

/// Runs the command; exit code and standard output.
fn command(args: &[&str]) -> (i32, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_rejoin")).arg("conformance").args(args).output().unwrap();
    (out.status.code().unwrap(), String::from_utf8(out.stdout).unwrap())
}

#[test]
fn the_command_says_a_line_for_each_case_and_tells_by_its_exit_code() {
    let served = serve(&["--window-events", "64"]);
    let url = format!("http://{}", served.address);
    let (code, out) = command(&[&url, "--only", "window.", "--window-events", "64"]);
    assert_eq!((code, out.lines().filter(|line| line.starts_with("ok    window.")).count()), (0, 4), "{out}");
    assert!(out.ends_with("\n4 ok, 0 failed, 0 skipped\n"), "{out}");

    // The window is said to be larger than it is.
    let (code, out) = command(&[&url, "--only", "window.oldest", "--window-events", "65", "--json", "-"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["failed"], &report["cases"][0]["verdict"]), (1, &1.into(), &"failed".into()));
    assert!(report["cases"][0]["why"].as_str().unwrap().contains("E8"), "{out}");

    assert_eq!(command(&[&url, "--only", "no.such.case"]).0, 1);
    assert_eq!(command(&["--list"]).1.lines().count(), conformance::cases().count());
    assert_eq!(command(&[]).0, 2, "it needs a URL");
}

#[test]
fn further_fields_go_with_every_request() {
    let (address, heads) = recording_server();
    let args = [&format!("http://{address}"), "--only", "live.no-run.204", "--token", "secret"];
    let (code, _) = command(&[args.as_slice(), &["--header", "X-Tenant: 7", "--case-time", "5"]].concat());
    assert_eq!(code, 0);
    let heads: Vec<String> = heads.try_iter().collect();
    assert_eq!(heads.len(), 4, "two probes, two deletions");
    for head in heads {
        assert!(head.contains("\r\nAuthorization: Bearer secret\r\n"), "{head}");
        assert!(head.contains("\r\nX-Tenant: 7\r\n"), "{head}");
    }
}

/// Answers 204 to everything, and tells what it was asked.
fn recording_server() -> (std::net::SocketAddr, std::sync::mpsc::Receiver<String>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, heads) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).unwrap();
            sender.send(String::from_utf8_lossy(&buffer[..count]).into_owned()).unwrap();
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        }
    });
    (address, heads)
}
