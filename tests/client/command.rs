//! The `rejoin` command as people use it: what it prints, and its exit codes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use crate::fake::{Fake, Reply, json, stream};
use crate::{
    TRACE_HELLO, TRACE_LONG, TRACE_UTF8, counted, end, event, server, snapshot, started, text, trace,
};

fn rejoin(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rejoin"));
    command.args(arguments).env_remove("RUST_LOG").stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command to its end, with this on its standard input.
fn output(arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut child = rejoin(arguments).spawn().unwrap();
    // A command that refuses its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// `rejoin push` and the pipe into it.
fn pushing(url: &str) -> (Child, ChildStdin) {
    let mut child = rejoin(&["push", "c", "--url", url]).spawn().unwrap();
    let input = child.stdin.take().unwrap();
    (child, input)
}

fn read_until(out: &mut ChildStdout, expected: &str) {
    let mut read = vec![0; expected.len()];
    out.read_exact(&mut read).unwrap();
    assert_eq!(String::from_utf8(read).unwrap(), expected);
}

#[test]
fn what_is_piped_in_is_printed_by_an_observer() {
    let (server, address) = server();
    let url = format!("http://{address}");
    for sse in [TRACE_HELLO, TRACE_UTF8, TRACE_LONG] {
        for form in [sse.to_owned(), trace(sse).join("\n")] {
            let expected = text(trace(sse));
            let first_char = expected.chars().next().unwrap().to_string();
            let middle = form.len() / 2 + form.len() / 4;
            let middle = (middle..).find(|at| form.is_char_boundary(*at)).unwrap();
            let (mut child, mut input) = pushing(&url);
            let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
            assert!(errors.next().unwrap().unwrap().starts_with("run_id "));
            input.write_all(&form.as_bytes()[..middle]).unwrap();
            let mut observer = rejoin(&["observe", "c", "--url", &url]).spawn().unwrap();
            // The observer is there before the run can end.
            read_until(observer.stdout.as_mut().unwrap(), &first_char);
            input.write_all(&form.as_bytes()[middle..]).unwrap();
            drop(input);
            let output = observer.wait_with_output().unwrap();
            assert_eq!(first_char + &String::from_utf8(output.stdout).unwrap(), expected);
            assert_eq!(output.status.code(), Some(0));
            assert!(String::from_utf8(output.stderr).unwrap().ends_with("saved\n"));
            assert_eq!(errors.next().unwrap().unwrap(), "saved");
            assert_eq!(child.wait().unwrap().code(), Some(0));
        }
    }
    server.stop().unwrap();
}

#[test]
fn raw_frames_are_printed_as_they_came() {
    let frames = [snapshot(1, 0), event(1, 1), end(1, 1, true, false)].concat();
    let fake = Fake::start(vec![stream(&frames, true)]);
    let (code, out, _) = output(&["observe", "c", "--raw", "--url", &fake.url], "");
    let expected = frames.replace("data: ", "").replace("\n\n", "\n");
    assert_eq!((code, out), (Some(0), expected));
}

#[test]
fn an_observer_goes_on_after_a_cut() {
    let delta = |seq: u64, delta: &str| {
        let text = format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"{delta}"}}"#);
        event(1, seq).replace(r#"{"type":"é"}"#, &text)
    };
    let joined = delta(9, "Hello w").replace("STREAM_EVENT", "STREAM_SNAPSHOT");
    let joined = joined.replace("\"event\":{", "\"events\":[{").replace("}}\n", "}]}\n");
    let replies = vec![
        stream(&(snapshot(1, 0) + &delta(1, "Hel") + &delta(2, "lo")), false),
        stream(&(joined + &delta(10, "orld") + &end(1, 10, false, false)), true),
    ];
    let fake = Fake::start(replies);
    let (code, out, errors) = output(&["observe", "c", "--url", &fake.url], "");
    assert_eq!((code, &*out), (Some(3), "Hello world"));
    assert!(errors.contains("reconnecting in 0.") && errors.contains(" s (1 of 5)…"), "{errors}");
    assert!(errors.ends_with("rejoin: NOT saved\n"), "{errors}");
}

#[test]
fn an_observer_without_a_run_says_so() {
    let nothing = Reply::Answer("HTTP/1.1 204 No Content\r\n\r\n".to_owned());
    let fake = Fake::start(vec![nothing]);
    let (code, out, errors) = output(&["observe", "c", "--wait-ms", "0", "--url", &fake.url], "");
    assert_eq!((code, &*out), (Some(5), ""));
    assert!(errors.contains("nothing to observe"), "{errors}");
}

#[test]
fn wrong_arguments_are_usage_errors() {
    for arguments in [
        &["observe"][..],
        &["observe", "a\nb"],
        &["observe", "c", "--url", "https://x"],
        &["observe", "c", "--from", "x:1"],
        &["push", ""],
        &["push", "c", "--trigger", "x"],
        &["push", "c", "--format", "x"],
    ] {
        let (code, _, errors) = output(arguments, "");
        assert_eq!(code, Some(2), "{arguments:?}: {errors}");
    }
}

#[test]
fn a_run_that_is_not_saved_has_its_own_exit_code() {
    let finished = json(200, r#"{"run_id":"x","seq":1,"persisted":false}"#);
    let fake = Fake::start(vec![started(), counted(2), finished]);
    let (code, _, errors) = output(&["push", "c", "--url", &fake.url], r#"{"type":"A"}"#);
    assert_eq!(code, Some(3));
    assert!(errors.ends_with("NOT saved\n"), "{errors}");
}

#[test]
fn input_at_fault_closes_the_run_and_says_what_to_change() {
    let (server, address) = server();
    let url = format!("http://{address}");
    for (input, told) in [
        ("hello\n", "say --format"),
        ("{\"type\":\"A\"}\n{}\n", "line 2: an event needs a string member"),
        ("data: {\"type\":\"A\"}\n\ndata: x\n\n", "line 3: not JSON"),
    ] {
        let (code, _, errors) = output(&["push", "c", "--url", &url], input);
        assert_eq!(code, Some(1));
        assert!(errors.contains(told), "{errors}");
    }
    // None of these runs is left open.
    let (code, _, errors) = output(&["push", "c", "--url", &url, "--trigger", "canvas"], "\n");
    assert_eq!(code, Some(0), "{errors}");
    server.stop().unwrap();
}

#[test]
fn a_producer_that_was_replaced_is_told() {
    let (server, address) = server();
    let url = format!("http://{address}");
    let (mut child, mut input) = pushing(&url);
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(errors.next().unwrap().unwrap().starts_with("run_id "));
    let (code, _, other) = output(&["push", "c", "--url", &url], "");
    assert_eq!(code, Some(1));
    assert!(other.contains("already_streaming"), "{other}");
    let (code, _, _) = output(&["push", "c", "--supersede", "--url", &url], "{\"type\":\"B\"}\n");
    assert_eq!(code, Some(0));
    input.write_all(b"{\"type\":\"A\"}\n").unwrap();
    drop(input);
    assert!(errors.next().unwrap().unwrap().contains("run_over"));
    assert_eq!(child.wait().unwrap().code(), Some(1));
    server.stop().unwrap();
}

#[test]
fn a_measurement_prints_its_three_figures() {
    let (code, out, _) = output(&["bench", "--observers", "20", "--events", "500"], "");
    assert_eq!(code, Some(0));
    for (line, unit) in [("append", "events/s"), ("20 observers", "deliveries/s"), ("attach to 500", "ms")] {
        let figure = out.lines().find(|printed| printed.starts_with(line) && printed.contains(unit));
        let digits = figure.map(|figure| figure.rsplit(": ").next().unwrap().trim().to_owned());
        let value: f64 = digits.unwrap().split_whitespace().next().unwrap().parse().unwrap();
        assert!(value > 0.0, "{out}");
    }
}
