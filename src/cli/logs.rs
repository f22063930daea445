//! The log: on standard error, as text for people or as JSON for what collects logs.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line for people
    #[default]
    Text,
    /// A JSON object per line
    Json,
}

/// What is logged if `RUST_LOG` says nothing.
const FILTER: &str = "info";

/// Starts logging. A `RUST_LOG` that can't be read counts as none, and is told of.
pub(crate) fn start(format: LogFormat) {
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let filter = EnvFilter::try_new(if wanted.is_empty() { FILTER } else { &wanted });
    let refused = filter.as_ref().err().map(ToString::to_string);
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| EnvFilter::new(FILTER)))
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => log.json().flatten_event(true).with_current_span(false).init(),
    }
    if let Some(error) = refused {
        tracing::warn!(RUST_LOG = wanted, %error, "RUST_LOG is no filter; logging {FILTER} and above");
    }
}
