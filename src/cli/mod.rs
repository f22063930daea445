//! The command line: one module for each subcommand.

mod access;
mod agents;
mod bench;
mod conformance;
mod demo;
mod demo_agent;
mod doctor;
mod logs;
mod manual;
mod observe;
mod push;
mod remote;
mod serve;
mod token;

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use rejoin::proto::id::ChatId;

use logs::LogFormat;

/// Where `serve` listens unless it is told otherwise.
const SERVER: &str = "http://127.0.0.1:8787";

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
    /// Measure this machine: tokens, deliveries, attaching
    Bench(bench::BenchArgs),
    /// Test whether a server speaks the protocol
    Conformance(conformance::ConformanceArgs),
    /// The demo's agent: speaks ACP on standard input and output
    #[command(hide = true)]
    DemoAgent(demo_agent::DemoAgentArgs),
    /// Read a chat's run along, through every lost connection
    Observe(observe::ObserveArgs),
    /// Write the events on standard input to a chat, through every lost connection
    Push(push::PushArgs),
    /// Make a token that lets its bearer use some chats for a while
    Token(token::TokenArgs),
    /// Look at what a server with these options would need, and say what to change
    Doctor(doctor::DoctorArgs),
    /// Print what a shell needs to complete this program's options
    Completions(manual::CompletionsArgs),
    /// Print the manual page, or write those of all subcommands to a directory
    Man(manual::ManArgs),
}

impl Command {
    fn log_format(&self) -> LogFormat {
        match self {
            Command::Serve(args) | Command::Demo(args) => args.log_format,
            _ => LogFormat::default(),
        }
    }
}

/// Runs the command that the process was started with.
pub(crate) fn run() -> ExitCode {
    let command = Cli::parse().command;
    logs::start(command.log_format());
    match command {
        Command::Serve(args) => serve::serve(&args, None, |_| ()),
        Command::Demo(args) => demo::demo(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Conformance(args) => conformance::conformance(args),
        Command::DemoAgent(args) => demo_agent::demo_agent(&args),
        Command::Observe(args) => observe::observe(&args),
        Command::Push(args) => push::push(&args),
        Command::Token(args) => token::token(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Completions(args) => manual::completions(&args, Cli::command()),
        Command::Man(args) => manual::man(&args, Cli::command()),
    }
}

/// Prints a line on standard output; a reader that has gone away is no reason to stop.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Prints a line on standard error.
fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Says what is wrong on standard error.
fn fail(error: &dyn Display) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "rejoin: {error}");
    ExitCode::FAILURE
}

fn chat_id(text: &str) -> Result<ChatId, String> {
    ChatId::parse(text)
        .ok_or_else(|| "a chat id has 1 to 256 bytes of UTF-8 without control characters".to_owned())
}
