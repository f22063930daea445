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
use rejoin::access::Access;

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
    findings.push(access(args));
    findings.extend(database::check(&config.db));
    findings.push(machine::files(&config.engine.limits));
    findings.push(machine::memory(&config.engine.limits));
    findings.push(machine::port(config.listen));
    findings.extend(config.engine.agents.iter().map(|agent| agents::check(agent)));
    findings
}

/// Who could use a server with these options.
fn access(args: &ServeArgs) -> Finding {
    match args.access.access(args.listen) {
        Err(fault) => Finding::fail("access", fault.to_string()),
        Ok(access) if !access.is_open() => match args.access.token_file.as_deref().and_then(machine::readers)
        {
            Some(readers) => Finding::warn("access", readers),
            None => Finding::ok("access", "by token"),
        },
        Ok(_) if args.access.insecure => {
            Finding::warn("access", "everybody who reaches the server may do everything (--insecure)")
        }
        Ok(_) => {
            Finding::ok("access", "everybody on this machine, and whomever a proxy lets in; see --token-file")
        }
    }
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
            (args.config(agents, Access::default()), Finding::ok("config", message))
        }
        Err(fault) => {
            (args.config(Vec::new(), Access::default()), Finding::fail("config", fault.to_string()))
        }
    }
}
