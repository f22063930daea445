//! The oracle: AG-UI's own reducer and verifier, run by Node behind two pipes. It may not judge anything itself; all
//! it knows is in `tests/oracle/oracle.mjs`.
//!
//! Sequences are JSON arrays of events, handed over as bytes: half a surrogate pair and repeated members survive.

#![allow(dead_code, reason = "every test includes this file and uses its own part of it")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use serde_json::value::RawValue;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle");

/// A running oracle. It ends with its owner.
pub(crate) struct Oracle {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What the client says to a sequence.
#[derive(Debug, Deserialize)]
pub(crate) struct Verdict {
    /// The whole sequence passes the client's checks.
    pub(crate) accepted: bool,
    /// Why it does not.
    pub(crate) error: Option<Refusal>,
}

/// The first event that the client refuses.
#[derive(Debug, Deserialize)]
pub(crate) struct Refusal {
    /// Its place in the sequence, counted from 0.
    pub(crate) index: usize,
    /// Who refused it: `compatibility`, `enforcement` (types of members), `chunks` or `verifier` (order of events).
    pub(crate) stage: String,
    /// The client's own words.
    pub(crate) message: String,
}

/// Whether two sequences come to the same.
#[derive(Debug, Deserialize)]
pub(crate) struct Comparison {
    /// The reducer's messages, state and interrupts are equal, and so are all events but the deltas, each with the
    /// outline of the messages at its moment. Whether the sequences are accepted is told apart from this.
    pub(crate) equal: bool,
    /// The client's word on the first sequence.
    pub(crate) before: Verdict,
    /// The client's word on the second sequence.
    pub(crate) after: Verdict,
    /// Where they differ, if they do.
    pub(crate) diff: Option<String>,
}

impl Comparison {
    /// What got lost from the first sequence to the second: a difference, or the client's acceptance.
    pub(crate) fn lost(&self) -> Option<String> {
        match (&self.diff, &self.after.error) {
            (Some(diff), _) => Some(diff.clone()),
            (None, Some(refusal)) if self.before.accepted => Some(format!("no longer accepted: {refusal:?}")),
            _ => None,
        }
    }
}

/// The client's word on one sequence.
#[derive(Debug, Deserialize)]
pub(crate) struct Verification {
    pub(crate) accepted: bool,
    pub(crate) error: Option<Refusal>,
    /// What the accepted part leaves open.
    pub(crate) open: Open,
}

/// What is open at the end of a sequence, by id, in order of opening. What a CHUNK opened is not listed: it closes itself.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Open {
    /// A RUN_STARTED without its RUN_FINISHED or RUN_ERROR.
    pub(crate) run: bool,
    pub(crate) texts: Vec<String>,
    pub(crate) reasonings: Vec<String>,
    pub(crate) spans: Vec<String>,
    pub(crate) tool_calls: Vec<String>,
    pub(crate) steps: Vec<String>,
    pub(crate) subagents: Vec<String>,
}

/// What a client shows after a sequence, as JSON. Text may hold half a surrogate pair.
#[derive(Debug, Deserialize)]
pub(crate) struct Reduction {
    /// The checks let the sequence pass; if not, this is what the bare reducer makes of it.
    pub(crate) accepted: bool,
    /// An array of AG-UI messages.
    pub(crate) messages: Box<RawValue>,
    /// The agent's state.
    pub(crate) state: Box<RawValue>,
    /// Interrupts that wait for an answer.
    pub(crate) interrupts: Box<RawValue>,
}

impl Oracle {
    /// Starts the oracle.
    pub(crate) fn start() -> Oracle {
        let installed = Path::new(FOLDER).join("node_modules/@ag-ui/client").exists();
        assert!(installed, "the oracle's packages are not installed: run tests/run.sh");
        let mut child = Command::new("node")
            .arg("oracle.mjs")
            .current_dir(FOLDER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the oracle needs `node` (20 or newer) in the PATH");
        let questions = child.stdin.take().expect("stdin is piped");
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Oracle { child, questions, answers }
    }

    /// Compares two sequences.
    pub(crate) fn compare(&mut self, before: &[u8], after: &[u8]) -> Comparison {
        self.compare_with_tail(before, after, b"[]")
    }

    /// Compares two sequences, both followed by `tail`.
    pub(crate) fn compare_with_tail(&mut self, before: &[u8], after: &[u8], tail: &[u8]) -> Comparison {
        parse(&self.ask("compare", &[("before", before), ("after", after), ("tail", tail)]))
    }

    /// Asks whether the client accepts a sequence.
    pub(crate) fn verify(&mut self, events: &[u8]) -> Verification {
        parse(&self.ask("verify", &[("events", events)]))
    }

    /// Asks what the client makes of a sequence.
    pub(crate) fn reduce(&mut self, events: &[u8]) -> Reduction {
        parse(&self.ask("reduce", &[("events", events)]))
    }

    fn ask(&mut self, operation: &str, members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut request = format!("{{\"op\":\"{operation}\"").into_bytes();
        for (name, array) in members {
            request.extend_from_slice(format!(",\"{name}\":").as_bytes());
            request.extend_from_slice(array);
        }
        request.push(b'}');
        // A raw line break can only be white space in JSON; requests are lines.
        for byte in &mut request {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        request.push(b'\n');
        let written = self.questions.write_all(&request);
        let mut answer = Vec::new();
        let read = self.answers.read_until(b'\n', &mut answer);
        assert!(
            written.is_ok() && read.is_ok() && !answer.is_empty(),
            "the oracle died: its stderr says why"
        );
        assert!(
            !answer.starts_with(b"{\"failed\""),
            "the oracle could not answer {operation}: {}",
            String::from_utf8_lossy(&answer)
        );
        answer
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // It has nothing to finish; an error means that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn parse<T: serde::de::DeserializeOwned>(answer: &[u8]) -> T {
    serde_json::from_slice(answer)
        .unwrap_or_else(|error| panic!("the oracle answered {}: {error}", String::from_utf8_lossy(answer)))
}
