//! The agent: a real AG-UI agent with a scripted model, in a process of its own on a free loopback port. It may not be
//! asked for anything but its address.
//!
//! It answers `POST /` with a RunAgentInput (`threadId`, `runId` and `messages` with a user's message are all it needs)
//! in AG-UI SSE; the words of the last user message choose the script, see `tests/agents/pydantic_agent.py`.

#![allow(dead_code, reason = "every test includes this file and uses its own part of it")]

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

/// A running agent. It ends with its owner.
pub(crate) struct Agent {
    child: Child,
    url: String,
}

impl Agent {
    /// Starts the agent; it listens when this returns.
    pub(crate) fn start() -> Agent {
        let python = Path::new(TESTS).join(".venv/bin/python");
        assert!(python.exists(), "the agent's packages are not installed: run tests/run.sh");
        let mut child = Command::new(python)
            .args(["-m", "uvicorn", "pydantic_agent:app", "--host", "127.0.0.1", "--port", "0"])
            .args(["--no-access-log", "--no-use-colors"])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(Path::new(TESTS).join("agents"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the agent's python starts");
        let mut log = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let url = address(&mut log);
        // Read on, or the agent would stop at a full pipe. The thread ends with the agent.
        std::thread::spawn(move || io::copy(&mut log, &mut io::sink()));
        Agent { child, url }
    }

    /// The address to post to, `http://127.0.0.1:PORT/`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It has nothing to finish; an error means that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the log up to the line that says where the agent listens.
fn address(log: &mut impl BufRead) -> String {
    let mut seen = String::new();
    for line in log.lines() {
        let line = line.expect("the agent's log is text");
        if let Some((_, rest)) = line.split_once("running on ") {
            let url = rest.split_whitespace().next().expect("an address follows");
            return format!("{url}/");
        }
        seen.push_str(&line);
        seen.push('\n');
    }
    panic!("the agent ended before it listened:\n{seen}");
}
