//! `rejoin conformance`: tests whether a server speaks the protocol.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use rejoin::client::ServerUrl;
use rejoin::conformance::{self, CASE_MS, CaseResult, Options, Verdict};
use rejoin::limits::WINDOW_EVENTS;

/// What is tested, and how.
#[derive(Args, Debug)]
#[command(after_help = "Exit code: 0 no case failed, 1 some did, 2 wrong use")]
pub(crate) struct ConformanceArgs {
    /// Where the server is
    #[arg(value_name = "URL", value_parser = ServerUrl::parse, required_unless_present = "list")]
    url: Option<ServerUrl>,

    /// List the cases and end
    #[arg(long)]
    list: bool,

    /// Only cases whose name contains this (can be given more than once)
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,

    /// Write a report as JSON to this file; - is standard output, which then has nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Send this with every request, for example 'Authorization: Bearer …' (can be given more than once)
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = field)]
    fields: Vec<(String, String)>,

    /// Token, if the server asks for one: it has to be one for administration
    #[arg(long, env = "REJOIN_TOKEN", hide_env_values = true, value_name = "TOKEN", value_parser = super::remote::token)]
    token: Option<String>,

    /// Events in the server's replay window
    #[arg(long, default_value_t = WINDOW_EVENTS as u64, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    window_events: u64,

    /// A chat whose last run ended without being saved and is retained
    #[arg(long, value_name = "CHAT")]
    unsaved_chat: Option<String>,

    /// Try the cases that wait for a keep-alive, too
    #[arg(long)]
    slow: bool,

    /// Seconds that a case may take
    #[arg(long, default_value_t = CASE_MS / 1000, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    case_time: u64,
}

fn field(text: &str) -> Result<(String, String), String> {
    let wrong = || "write it as 'Name: value'".to_owned();
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if name.is_empty() || !name.bytes().all(fits) {
        return Err(wrong());
    }
    Ok((name.to_owned(), visible(value.trim())?))
}

fn visible(text: &str) -> Result<String, String> {
    let fits = text.chars().all(|c| !c.is_control());
    if fits {
        Ok(text.to_owned())
    } else {
        Err("it must not have line ends or control characters".to_owned())
    }
}

/// Tries the cases and prints a line for each.
pub(crate) fn conformance(args: ConformanceArgs) -> ExitCode {
    let Some(url) = args.url.clone().filter(|_| !args.list) else {
        for case in conformance::cases() {
            super::say(&format!("{:<34} {}", case.name, case.about));
        }
        return ExitCode::SUCCESS;
    };
    let bearer = args.token.map(|token| ("Authorization".to_owned(), format!("Bearer {token}")));
    let options = Options {
        fields: args.fields.into_iter().chain(bearer).collect(),
        only: args.only,
        window_events: args.window_events,
        unsaved_chat: args.unsaved_chat,
        slow: args.slow,
        case_time: Duration::from_secs(args.case_time),
        ..Options::new(url)
    };
    let silent = args.json.as_ref().is_some_and(|file| file.as_os_str() == "-");
    let results = conformance::run(&options, |result| {
        if !silent {
            super::say(&line(result));
        }
    });
    let report = Report::of(&results);
    if let Some(file) = &args.json
        && let Err(error) = report.write(file, silent)
    {
        return super::fail(&format!("the report can't be written to {}: {error}", file.display()));
    }
    if !silent {
        super::say(&format!("\n{} ok, {} failed, {} skipped", report.ok, report.failed, report.skipped));
    }
    match (results.is_empty(), report.failed) {
        (true, _) => super::fail(&"no case has such a name; --list shows all"),
        (false, 0) => ExitCode::SUCCESS,
        (false, _) => ExitCode::FAILURE,
    }
}

fn line(result: &CaseResult) -> String {
    let name = result.case.name;
    match &result.verdict {
        Verdict::Ok => format!("ok    {name}"),
        Verdict::Failed(why) => format!("FAIL  {name}: {why}"),
        Verdict::Skipped(why) => format!("skip  {name}: {why}"),
    }
}

/// What the JSON report has.
#[derive(Serialize)]
struct Report<'a> {
    ok: usize,
    failed: usize,
    skipped: usize,
    cases: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    about: &'a str,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    took_ms: u128,
}

impl Report<'_> {
    fn of(results: &[CaseResult]) -> Report<'_> {
        let mut report = Report { ok: 0, failed: 0, skipped: 0, cases: Vec::new() };
        for result in results {
            let (count, verdict, why) = match &result.verdict {
                Verdict::Ok => (&mut report.ok, "ok", None),
                Verdict::Failed(why) => (&mut report.failed, "failed", Some(why.as_str())),
                Verdict::Skipped(why) => (&mut report.skipped, "skipped", Some(why.as_str())),
            };
            *count += 1;
            let (case, took_ms) = (result.case, result.took.as_millis());
            report.cases.push(Entry { name: case.name, about: case.about, verdict, why, took_ms });
        }
        report
    }

    fn write(&self, file: &std::path::Path, to_stdout: bool) -> std::io::Result<()> {
        let json = serde_json::to_string_pretty(self)? + "\n";
        if to_stdout { std::io::stdout().write_all(json.as_bytes()) } else { std::fs::write(file, json) }
    }
}
