//! `rejoin doctor`: looks at everything that `serve` with the same options would need, changes nothing, and says what to
//! change. It works while the server runs.

mod agents;
mod database;
mod machine;

use std::fmt;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use rejoin::ServerConfig;

use super::serve::ServeArgs;

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    serve: ServeArgs,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// What came out of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// Nothing to do.
    Ok,
    /// It works, but perhaps not as it is meant to.
    Warn,
    /// The server would not start, or not work.
    Fail,
}

/// A check, and what to change if it did not come out well.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    message: String,
}

impl Finding {
    fn ok(check: &'static str, message: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Ok, message: message.into() }
    }

    fn warn(check: &'static str, message: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Warn, message: message.into() }
    }

    fn fail(check: &'static str, message: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Fail, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Fail => "FAIL",
        };
        write!(f, "{verdict:<5} {:<9} {}", self.check, self.message)
    }
}

/// The report as JSON.
#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    checks: &'a [Finding],
}

/// Examines, and tells; fails if a check did.
pub(crate) fn doctor(args: &DoctorArgs) -> ExitCode {
    let findings = examine(&args.serve);
    let ok = findings.iter().all(|finding| finding.verdict != Verdict::Fail);
    if args.json {
        let report = serde_json::to_string(&Report { ok, checks: &findings });
        super::say(&report.unwrap_or_default());
    } else {
        findings.iter().for_each(|finding| super::say(&finding.to_string()));
    }
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn examine(args: &ServeArgs) -> Vec<Finding> {
    let (config, found) = configuration(args);
    let mut findings = vec![found];
    findings.extend(database::check(&config.db));
    findings.push(machine::files(&config.engine.limits));
    findings.push(machine::memory(&config.engine.limits));
    findings.push(machine::port(config.listen));
    findings.extend(config.engine.agents.iter().map(|agent| agents::check(agent)));
    findings
}

/// Without its agents a faulty configuration can still be looked at.
fn configuration(args: &ServeArgs) -> (ServerConfig, Finding) {
    match args.agents() {
        Ok(agents) => {
            let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
            let message = match names.as_slice() {
                [] => "valid; no agent is named, so only producers can write runs".to_owned(),
                names => format!("valid; agents: {}", names.join(", ")),
            };
            (args.config(agents), Finding::ok("config", message))
        }
        Err(fault) => (args.config(Vec::new()), Finding::fail("config", fault.to_string())),
    }
}
