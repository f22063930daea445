//! Whether agents can be reached: one that is spoken to over HTTP answers a GET, which begins no turn; one that is a
//! program is started, introduces itself, and is ended.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crossbeam_channel::bounded;
use rejoin::turns::{Agent, AgentKind};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use ureq::tls::{RootCerts, TlsConfig};

use super::Finding;

const CHECK: &str = "agent";

/// An agent over HTTP answers within this time.
const HTTP: Duration = Duration::from_secs(10);

/// A program introduces itself within this time: some load a runtime first.
const INTRODUCTION: Duration = Duration::from_secs(20);

pub(super) fn check(agent: &Agent) -> Finding {
    let name = &agent.name;
    match &agent.kind {
        AgentKind::Native { url, headers } => over_http(name, url, headers),
        AgentKind::Acp { command, folder } => program(name, command, folder.as_deref()),
    }
}

fn over_http(name: &str, url: &str, headers: &[(String, String)]) -> Finding {
    let client = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .timeout_global(Some(HTTP))
        .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build())
        .build()
        .new_agent();
    let mut request = client.get(url);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    match request.call().map(|answer| answer.status().as_u16()) {
        Ok(status @ (401 | 403)) => Finding::warn(
            CHECK,
            format!("{name}: {url} answers {status}; look at the headers that the configuration has for it"),
        ),
        Ok(404) => Finding::warn(CHECK, format!("{name}: {url} answers 404; look at the path")),
        Ok(status @ 500..) => {
            Finding::warn(CHECK, format!("{name}: {url} answers {status}; it is there, but not well"))
        }
        Ok(status) => Finding::ok(CHECK, format!("{name}: {url} answers ({status} to a GET)")),
        Err(error) => Finding::fail(
            CHECK,
            format!("{name}: {url} can't be reached: {error}; start it, or correct its URL"),
        ),
    }
}

fn program(name: &str, command: &[String], folder: Option<&Path>) -> Finding {
    let [program, arguments @ ..] = command else {
        return Finding::fail(CHECK, format!("{name}: the command is empty"));
    };
    let mut start = Command::new(program);
    start.args(arguments).process_group(0);
    start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some(folder) = folder {
        start.current_dir(folder);
    }
    let mut child = match start.spawn() {
        Ok(child) => child,
        Err(error) => {
            let message = format!(
                "{name}: {program} can't be started: {error}; look at the command, its folder and the server's PATH"
            );
            return Finding::fail(CHECK, message);
        }
    };
    let introduced = introduce(&mut child);
    // It leads a group of its own, so that what it started ends with it; the process may have ended by itself.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let _ = child.wait();
    match introduced {
        Ok(version) => Finding::ok(CHECK, format!("{name}: {program} starts and speaks ACP {version}")),
        Err(trouble) => {
            let message = format!("{name}: {program} starts, but {trouble}; try the command by hand");
            Finding::fail(CHECK, message)
        }
    }
}

/// Asks a program which version of ACP it speaks. A thread reads, so that a silent one is given up.
fn introduce(child: &mut Child) -> Result<u64, &'static str> {
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("has no standard streams");
    };
    let params = json!({"protocolVersion": 1, "clientCapabilities": {}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    if writeln!(to, "{hello}").and_then(|()| to.flush()).is_err() {
        return Err("ends at once");
    }
    let (found, answer) = bounded(1);
    std::thread::spawn(move || {
        let lines = BufReader::new(from).lines().map_while(Result::ok);
        let version = lines
            .filter_map(|line| serde_json::from_str::<Value>(&line).ok())
            .find_map(|message| message["result"]["protocolVersion"].as_u64());
        // Nobody waits any more if it took too long.
        let _ = found.send(version);
    });
    match answer.recv_timeout(INTRODUCTION) {
        Ok(Some(version)) => Ok(version),
        Ok(None) => Err("ends without introducing itself in ACP"),
        Err(_) => Err("says nothing in ACP"),
    }
}
