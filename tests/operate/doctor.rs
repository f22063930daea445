//! `rejoin doctor`: what it finds, and that it changes nothing.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::server::serve_with_db;

/// A directory that goes away with the test.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Dir {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let unique =
            format!("rejoin-doctor-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(unique);
        std::fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Options under which a machine of any size has nothing to be warned of.
const MODEST: [&str; 8] = [
    "--connections-max",
    "100",
    "--turns-max",
    "4",
    "--memory-max",
    "67108864",
    "--run-bytes-max",
    "16777216",
];

/// The report as JSON, and whether the exit code says that all is well.
fn examine(dir: &Path, args: &[&str]) -> (bool, Value) {
    let listen = if args.contains(&"--listen") { &[][..] } else { &["--listen", "127.0.0.1:0"] };
    let output = Command::new(env!("CARGO_BIN_EXE_rejoin"))
        .args(["doctor", "--json"])
        .args(MODEST)
        .args(listen)
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(report["ok"], output.status.success(), "{text}");
    (output.status.success(), report)
}

/// The verdict of one check, whose message has these words.
fn check(dir: &Path, args: &[&str], check: &str, verdict: &str, words: &[&str]) {
    let (ok, report) = examine(dir, args);
    let found = report["checks"].as_array().unwrap().iter().find(|found| found["check"] == check);
    let found = found.unwrap_or_else(|| panic!("no {check} in {report}"));
    assert_eq!(found["verdict"], verdict, "{found}");
    let message = found["message"].as_str().unwrap();
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
    assert_eq!(ok, verdict != "fail", "{report}");
}

#[test]
fn a_sound_machine_gets_a_line_per_check() {
    let dir = Dir::new();
    let output = Command::new(env!("CARGO_BIN_EXE_rejoin"))
        .args(["doctor", "--listen", "127.0.0.1:0"])
        .args(MODEST)
        .current_dir(&dir.0)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let checks: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(
        checks,
        ["config", "access", "database", "disk", "clock", "files", "memory", "port"],
        "{text}"
    );
    assert!(!dir.0.join("rejoin.db").exists(), "nothing is made");
}

#[test]
fn a_database_is_examined_while_a_server_uses_it() {
    let served = serve_with_db("rejoin.db", &[]);
    let run = served.start("c", "{}");
    assert!(served.finish(&run));
    check(&served.dir, &[], "database", "ok", &["sound", "turns: 1"]);
    let address = served.address.to_string();
    check(&served.dir, &["--listen", &address], "port", "ok", &["a rejoin answers"]);
    // And the server goes on.
    let run = served.start("c", "{}");
    assert!(served.finish(&run));
    check(&served.dir, &[], "database", "ok", &["turns: 2"]);
}

#[test]
fn a_database_that_cannot_be_used_is_told_of() {
    let dir = Dir::new();
    std::fs::write(dir.0.join("text"), "this is no database, but it is long enough to be read as one")
        .unwrap();
    check(&dir.0, &["--db", "text"], "database", "fail", &["damaged", "backup"]);
    check(&dir.0, &["--db", "nowhere/rejoin.db"], "database", "fail", &["make the directory"]);
    check(&dir.0, &["--db", ":memory:"], "database", "warn", &["--db"]);
    let foreign = rusqlite::Connection::open(dir.0.join("foreign")).unwrap();
    foreign.execute_batch("CREATE TABLE theirs (a)").unwrap();
    check(&dir.0, &["--db", "foreign"], "database", "fail", &["another application"]);
}

#[test]
fn a_locked_database_is_told_of() {
    let served = serve_with_db("rejoin.db", &[]);
    let other = rusqlite::Connection::open(served.dir.join("rejoin.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    check(&served.dir, &[], "database", "warn", &["another process is writing"]);
    other.execute_batch("ROLLBACK").unwrap();
    check(&served.dir, &[], "database", "ok", &["sound"]);
}

#[test]
fn a_damaged_database_is_noticed_and_left_as_it_is() {
    let mut served = serve_with_db("rejoin.db", &[]);
    let run = served.start("c", "{}");
    let filler = "x".repeat(60_000);
    served.append(&run, &[&format!(r#"{{"type":"CUSTOM","name":"n","value":"{filler}"}}"#)]);
    assert!(served.finish(&run));
    assert!(served.terminate());
    let file = served.dir.join("rejoin.db");
    let mut bytes = std::fs::read(&file).unwrap();
    // Every page but the first, whose header says that this is a database of ours.
    for byte in bytes.iter_mut().skip(4096).step_by(7) {
        *byte ^= 0x5a;
    }
    std::fs::write(&file, &bytes).unwrap();
    check(&served.dir, &[], "database", "fail", &["damaged"]);
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

#[test]
fn a_database_that_nobody_uses_stays_as_it_is() {
    let files = |dir: &Path| -> Vec<(String, Vec<u8>)> {
        let there =
            ["rejoin.db", "rejoin.db-wal"].map(|name| (name.to_owned(), std::fs::read(dir.join(name))));
        there.into_iter().filter_map(|(name, bytes)| Some((name, bytes.ok()?))).collect()
    };
    // One whose server was stopped, and one whose server was killed, with what it left in its log.
    for stopped in [true, false] {
        let mut served = serve_with_db("rejoin.db", &[]);
        let run = served.start("c", "{}");
        assert!(served.finish(&run));
        if stopped {
            assert!(served.terminate());
        } else {
            served.kill();
        }
        let before = files(&served.dir);
        assert_eq!(before.len(), if stopped { 1 } else { 2 }, "a log is left only by the killed one");
        check(&served.dir, &[], "database", "ok", &["turns: 1"]);
        assert!(files(&served.dir) == before);
    }
}

#[test]
fn a_port_of_another_program_is_told_of() {
    let dir = Dir::new();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let silent = std::thread::spawn(move || drop(other.accept()));
    check(&dir.0, &["--listen", &address], "port", "fail", &["another program", "--listen"]);
    silent.join().unwrap();
}

#[test]
fn limits_that_do_not_fit_the_machine_are_told_of() {
    let dir = Dir::new();
    // More files than Linux allows any process, and more memory than there is.
    let (_, report) = {
        let output = Command::new(env!("CARGO_BIN_EXE_rejoin"))
            .args(["doctor", "--json", "--listen", "127.0.0.1:0", "--connections-max", "2000000000"])
            .args(["--memory-max", "1000000000000000"])
            .current_dir(&dir.0)
            .output()
            .unwrap();
        (output.status.success(), serde_json::from_slice::<Value>(&output.stdout).unwrap())
    };
    for name in ["files", "memory"] {
        let found = report["checks"].as_array().unwrap().iter().find(|found| found["check"] == name).unwrap();
        assert_eq!(found["verdict"], "warn", "{report}");
    }
}

#[test]
fn agents_are_asked_whether_they_are_there() {
    let dir = Dir::new();
    let served = serve_with_db(":memory:", &[]);
    let there = format!("http://{}/status", served.address);
    check(&dir.0, &["--agent", &there], "agent", "ok", &["answers"]);
    let no_such_path = format!("http://{}/nowhere", served.address);
    check(&dir.0, &["--agent", &no_such_path], "agent", "warn", &["404", "path"]);
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    check(&dir.0, &["--agent", &format!("http://{gone}/")], "agent", "fail", &["can't be reached"]);

    let speaks = format!("acp:{} demo-agent", env!("CARGO_BIN_EXE_rejoin"));
    check(&dir.0, &["--agent", &speaks], "agent", "ok", &["starts and speaks ACP 1"]);
    check(&dir.0, &["--agent", "acp:true"], "agent", "fail", &["ends"]);
    check(&dir.0, &["--agent", "acp:no-such-program"], "agent", "fail", &["can't be started"]);
}

#[test]
fn a_faulty_configuration_does_not_keep_the_rest_from_being_looked_at() {
    let dir = Dir::new();
    std::fs::write(dir.0.join("agents.toml"), "[agents.a]\nurl = 'http://127.0.0.1:1/'\nsecret = 'x'\n")
        .unwrap();
    check(&dir.0, &["--config", "agents.toml"], "config", "fail", &["agents.toml"]);
    let (_, report) = examine(&dir.0, &["--config", "agents.toml"]);
    assert_eq!(report["checks"].as_array().unwrap().len(), 8, "{report}");
}
