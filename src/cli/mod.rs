//! The command line: one module for each subcommand.

mod demo;
mod serve;

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Keeps the output of AI agents alive between the agent and its reader.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server
    Serve(serve::ServeArgs),
    /// Run the server with a scripted agent inside, to see what it does
    Demo(serve::ServeArgs),
}

/// Runs the command that the process was started with.
pub(crate) fn run() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(args) => serve::serve(&args, |_| ()),
        Command::Demo(args) => demo::demo(&args),
    }
}

/// Prints a line on standard output; a reader that has gone away is no reason to stop.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Says what is wrong on standard error.
fn fail(error: &dyn Display) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "rejoin: {error}");
    ExitCode::FAILURE
}
