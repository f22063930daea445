//! The protocol as a test suite: it asks a server that claims to speak it, over HTTP, and judges its answers.
//!
//! A *case* has a stable name, `group.what`, and tests one sentence of docs/protocol.md. It makes its own runs, as a push
//! producer of fresh chats that it deletes afterwards, so that a server with other traffic can be tested. The suite knows
//! nothing of the server that it tests but the protocol; [`run`] blocks the thread that it is called on.
//!
//! ```no_run
//! use rejoin::conformance::{self, Options, Verdict};
//! use rejoin::client::ServerUrl;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = Options::new(ServerUrl::parse("http://127.0.0.1:8787")?);
//! let results = conformance::run(&options, |result| println!("{} {:?}", result.case.name, result.verdict));
//! assert!(results.iter().all(|result| !matches!(result.verdict, Verdict::Failed(_))));
//! # Ok(())
//! # }
//! ```

mod cases;
mod peer;
mod stream;

use std::time::{Duration, Instant};

use crate::client::ServerUrl;
use crate::limits::WINDOW_EVENTS;

use peer::Peer;

/// Longest time of a case unless told otherwise, in milliseconds: a few times what the slowest takes on a busy machine.
pub const CASE_MS: u64 = 20_000;

/// What is tested, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the server is.
    pub url: ServerUrl,
    /// Fields that every request has, for example an `Authorization`: name and value.
    pub fields: Vec<(String, String)>,
    /// Only cases whose name contains one of these; all, if there is none.
    pub only: Vec<String>,
    /// Events in the server's replay window.
    pub window_events: u64,
    /// A chat whose last run ended without being saved and is retained: HTTP alone can't make one.
    pub unsaved_chat: Option<String>,
    /// Whether cases that wait for a keep-alive are tried.
    pub slow: bool,
    /// A case that takes longer has failed.
    pub case_time: Duration,
}

impl Options {
    /// The defaults, for this server.
    pub fn new(url: ServerUrl) -> Options {
        Options {
            url,
            fields: Vec::new(),
            only: Vec::new(),
            window_events: WINDOW_EVENTS as u64,
            unsaved_chat: None,
            slow: false,
            case_time: Duration::from_millis(CASE_MS),
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|pattern| name.contains(pattern.as_str()))
    }
}

/// One thing that is tested.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// `group.what`, which does not change.
    pub name: &'static str,
    /// What the server has to do.
    pub about: &'static str,
    test: fn(&Peer<'_>) -> Tested,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The server did what it has to.
    Ok,
    /// It did not: what was expected, and what came.
    Failed(String),
    /// It could not be tested: what is missing.
    Skipped(String),
}

/// A case with its verdict.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// The case.
    pub case: Case,
    /// What came of it.
    pub verdict: Verdict,
    /// How long it took.
    pub took: Duration,
}

/// Why a case went no further.
#[derive(Debug)]
enum Stop {
    Failed(String),
    Skipped(String),
}

/// How a case ends.
type Tested = Result<(), Stop>;

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::Failed(match error.kind() {
            std::io::ErrorKind::TimedOut => "nothing came for too long".to_owned(),
            std::io::ErrorKind::UnexpectedEof => {
                "the connection was closed before the answer was whole".to_owned()
            }
            std::io::ErrorKind::InvalidData => "the answer is not HTTP as it should be".to_owned(),
            _ => format!("the connection failed: {error}"),
        })
    }
}

/// Ends a case as failed unless something is so.
macro_rules! ensure {
    ($so:expr, $($why:tt)+) => {
        if !$so {
            return Err($crate::conformance::Stop::Failed(format!($($why)+)));
        }
    };
}
use ensure;

/// All cases, in the order in which they are tried.
pub fn cases() -> impl Iterator<Item = Case> {
    cases::GROUPS.iter().flat_map(|group| group.iter().copied())
}

/// Tries the cases that the options name; each result is also told as soon as it is there.
pub fn run(options: &Options, mut told: impl FnMut(&CaseResult)) -> Vec<CaseResult> {
    let mut results = Vec::new();
    for case in cases().filter(|case| options.wants(case.name)) {
        let begin = now();
        let peer = Peer::new(options, begin + options.case_time);
        let verdict = match (case.test)(&peer) {
            Ok(()) => Verdict::Ok,
            Err(Stop::Failed(why)) => Verdict::Failed(why),
            Err(Stop::Skipped(why)) => Verdict::Skipped(why),
        };
        peer.clean_up();
        let result = CaseResult { case, verdict, took: begin.elapsed() };
        told(&result);
        results.push(result);
    }
    results
}

#[expect(
    clippy::disallowed_methods,
    reason = "the suite bounds the time of a case; nothing of the server calls it"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_told_once_and_have_a_group() {
        let names: Vec<&str> = cases().map(|case| case.name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "no name twice");
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        for name in names {
            assert!(name.contains('.') && name.chars().all(fits), "{name}");
        }
    }

    #[test]
    fn every_case_is_in_the_documentation() {
        let page = include_str!("../../docs/conformance.md");
        for case in cases() {
            assert!(
                page.contains(&format!("| `{}` | {} |", case.name, case.about)),
                "{} is missing",
                case.name
            );
        }
    }
}
