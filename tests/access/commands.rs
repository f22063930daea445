//! The commands that have to do with tokens, as an operator uses them.

use std::process::{Command, Output};

use crate::server::{Served, serve_as};
use crate::tokens::{ADMIN, FILE};

fn rejoin(served: &Served, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rejoin"))
        .args(args)
        .current_dir(&served.dir)
        .env_remove("REJOIN_TOKEN")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

fn guarded(file: &str) -> Served {
    let file = file.to_owned();
    serve_as(":memory:", &[], move |command| {
        let dir = command.get_current_dir().unwrap().to_owned();
        std::fs::write(dir.join("tokens"), file).unwrap();
        command.args(["--token-file", "tokens"]);
    })
}

#[test]
fn a_token_that_was_made_here_is_good_here() {
    let served = guarded(FILE);
    let url = format!("http://{}", served.address);
    let make = ["token", "--token-file", "tokens", "--chat", "c", "--right", "produce", "--right", "observe"];
    let made = rejoin(&served, &make);
    assert!(made.status.success(), "{made:?}");
    let token = text(&made.stdout);
    let mut push = Command::new(env!("CARGO_BIN_EXE_rejoin"))
        .args(["push", "c", "--url", &url])
        .env("REJOIN_TOKEN", &token)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = push.stdin.take().unwrap();
    for event in [
        r#"{"type":"RUN_STARTED","threadId":"c","runId":"r"}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"assistant","delta":"well met"}"#,
        r#"{"type":"RUN_FINISHED","threadId":"c","runId":"r"}"#,
    ] {
        std::io::Write::write_all(&mut input, format!("{event}\n").as_bytes()).unwrap();
    }
    drop(input);
    assert!(push.wait().unwrap().success());
    // With the cursor of another run it gets a run that is over, too.
    let observe = ["observe", "c", "--url", &url, "--wait-ms", "0", "--from", "BAAAAAAAAAAAAAAAAAAAAA:0"];
    let refused = rejoin(&served, &observe);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        text(&refused.stderr).contains("401") && text(&refused.stderr).contains("Authorization"),
        "{refused:?}"
    );
    let read = rejoin(&served, &[&observe[..], &["--token", &token]].concat());
    assert!(read.status.success() && text(&read.stdout).contains("well met"), "{read:?}");
    let suite = ["conformance", &url, "--token", ADMIN, "--only", "handoff"];
    let judged = rejoin(&served, &suite);
    assert!(judged.status.success(), "{judged:?}");
}

#[test]
fn a_private_key_signs_what_its_public_key_lets_in() {
    let openssl =
        |args: &[&str]| Command::new("openssl").args(args).output().expect("tests/run.sh installs it");
    let pem = text(&openssl(&["genpkey", "-algorithm", "ed25519"]).stdout);
    let dir = std::env::temp_dir().join(format!("rejoin-key-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let key = dir.join("key.pem");
    std::fs::write(&key, pem).unwrap();
    let key = key.to_str().unwrap();
    let public = text(&openssl(&["pkey", "-in", key, "-pubout"]).stdout);
    let public = public.lines().nth(1).unwrap();
    let served = guarded(&format!("ed25519 {public}\n"));
    let made = rejoin(&served, &["token", "--ed25519-key", key, "--chat-prefix", "", "--right", "history"]);
    assert!(made.status.success(), "{made:?}");
    let mut conn = served.connect();
    let token = text(&made.stdout);
    conn.send(
        format!("GET /chats HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n").as_bytes(),
    );
    assert_eq!(conn.head().status, 200);
    let unable = rejoin(&served, &["token", "--token-file", "tokens", "--chat", "c", "--right", "observe"]);
    assert!(!unable.status.success() && text(&unable.stderr).contains("hs256"), "{unable:?}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_token_for_nothing_is_not_made() {
    let served = guarded(FILE);
    for (args, what) in [
        (&["token", "--token-file", "tokens", "--right", "observe"][..], "--chat"),
        (&["token", "--token-file", "tokens", "--chat", "c"], "--right"),
        (&["token", "--token-file", "tokens", "--chat", "c", "--right", "all"], "a right is"),
        (&["token", "--token-file", "absent", "--chat", "c", "--right", "send"], "absent"),
        (&["token", "--chat", "c", "--right", "send"], "--token-file"),
    ] {
        let output = rejoin(&served, args);
        assert!(!output.status.success() && text(&output.stderr).contains(what), "{args:?}: {output:?}");
    }
}

#[test]
fn beyond_loopback_a_server_needs_tokens_or_a_word() {
    let served = guarded(FILE);
    let doctor = |args: &[&str]| {
        let base = ["doctor", "--json", "--db", ":memory:"];
        let output = rejoin(&served, &[&base[..], args].concat());
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let checks = report["checks"].as_array().unwrap().clone();
        let access = checks.into_iter().find(|check| check["check"] == "access").unwrap();
        (access["verdict"].as_str().unwrap().to_owned(), access["message"].as_str().unwrap().to_owned())
    };
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let refused = rejoin(&served, &["serve", "--listen", listen, "--db", ":memory:"]);
        assert_eq!(refused.status.code(), Some(1), "{listen}");
        assert!(text(&refused.stderr).contains("--token-file"), "{refused:?}");
        assert_eq!(doctor(&["--listen", listen]).0, "fail");
        assert_eq!(doctor(&["--listen", listen, "--insecure"]).0, "warn");
    }
    for (file, what) in [("", "empty"), ("admin short\n", "line 1"), ("root x\n", "line 1")] {
        std::fs::write(served.dir.join("bad"), file).unwrap();
        let refused =
            rejoin(&served, &["serve", "--listen", "127.0.0.1:0", "--db", ":memory:", "--token-file", "bad"]);
        assert!(!refused.status.success() && text(&refused.stderr).contains(what), "{refused:?}");
        assert_eq!(doctor(&["--listen", "127.0.0.1:0", "--token-file", "bad"]).0, "fail");
    }
    assert_eq!(doctor(&["--listen", "127.0.0.1:0"]).0, "ok");
    let file = served.dir.join("tokens");
    let chmod = |mode: &str| Command::new("chmod").arg(mode).arg(&file).status().unwrap();
    chmod("644");
    let (verdict, message) = doctor(&["--listen", "0.0.0.0:0", "--token-file", "tokens"]);
    assert!(verdict == "warn" && message.contains("chmod"), "{message}");
    chmod("600");
    assert_eq!(doctor(&["--listen", "0.0.0.0:0", "--token-file", "tokens"]).0, "ok");
}
