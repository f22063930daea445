//! `rejoin observe`: reads a chat's run along, as text or as frames, and tells by its exit code whether the answer was
//! saved.

mod page;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Args;

use rejoin::client::{Backoff, Cursor, Notice, Observer, ObserverOptions};
use rejoin::limits::WAIT_MS_MAX;
use rejoin::proto::id::{ChatId, RunId, Seq};

use super::remote::RemoteArgs;
use page::Printer;

/// It ended, and it is in the history.
const SAVED: u8 = 0;

/// The server refused, or standard output can't be written to.
const FAILED: u8 = 1;

/// It ended, but it is not in the history.
const NOT_SAVED: u8 = 3;

/// The connection could not be made again.
const GAVE_UP: u8 = 4;

/// There is no run, or none any more.
const NOTHING: u8 = 5;

/// What to observe, and how.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit code: 0 saved, 3 ended but not saved, 4 gave up, 5 nothing to observe, 1 other errors"
)]
pub(crate) struct ObserveArgs {
    /// Chat to follow
    #[arg(value_name = "CHAT", value_parser = super::chat_id)]
    chat: ChatId,

    #[command(flatten)]
    remote: RemoteArgs,

    /// Print each frame as a line of JSON instead of the text
    #[arg(long)]
    raw: bool,

    /// Milliseconds that the server may wait for a run to begin
    #[arg(long, default_value_t = WAIT_MS_MAX, value_name = "MS")]
    wait_ms: u64,

    /// Go on behind this event of this run
    #[arg(long, value_name = "RUN:SEQ", value_parser = cursor)]
    from: Option<Cursor>,
}

fn cursor(text: &str) -> Result<Cursor, String> {
    let wrong = || "a cursor is a run_id, a colon and the seq of the last event you have".to_owned();
    let (run, seq) = text.split_once(':').ok_or_else(wrong)?;
    let digits = seq.bytes().all(|byte| byte.is_ascii_digit());
    match (RunId::parse(run), seq.parse()) {
        (Some(run), Ok(seq)) if digits => Ok(Cursor { run, after: Seq(seq) }),
        _ => Err(wrong()),
    }
}

/// Follows the chat to the end of its run.
pub(crate) fn observe(args: &ObserveArgs) -> ExitCode {
    let options = ObserverOptions { from: args.from, wait_ms: args.wait_ms, backoff: Backoff::default() };
    let observer = Observer::new(args.remote.server(), args.chat.clone(), options);
    let terminal = io::stdout().is_terminal();
    let mut printer = Printer::new(io::stdout(), terminal);
    for notice in observer {
        let shown = if args.raw { print_raw(&notice) } else { printer.show(&notice) };
        if let Err(error) = shown {
            return super::fail(&format!("can't write to standard output: {error}"));
        }
        if let Some(text) = remark(&notice, args) {
            // On a terminal, a remark in mid-sentence gets a line of its own.
            let gap = if terminal && printer.in_mid_line() { "\n" } else { "" };
            super::note(&format!("{gap}rejoin: {text}"));
        }
        if let Some(code) = exit_code(&notice) {
            return ExitCode::from(code);
        }
    }
    ExitCode::from(FAILED)
}

fn print_raw(notice: &Notice) -> io::Result<()> {
    let line = match notice {
        Notice::Snapshot(snapshot) => snapshot.json(),
        Notice::Event(event) => event.json(),
        Notice::Ended(end) => end.json(),
        _ => return Ok(()),
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// What to say about a notice beside the text.
fn remark(notice: &Notice, args: &ObserveArgs) -> Option<String> {
    match notice {
        Notice::Snapshot(_) | Notice::Event(_) => None,
        Notice::Ended(end) if end.superseded => Some("a newer turn took over; following it".to_owned()),
        Notice::Ended(end) if end.persisted => Some("saved".to_owned()),
        Notice::Ended(_) => Some("NOT saved".to_owned()),
        Notice::Reconnecting { attempt, attempts_max, delay, loss } => {
            let seconds = delay.as_secs_f64();
            Some(format!("{loss}; reconnecting in {seconds:.1} s ({attempt} of {attempts_max})…"))
        }
        Notice::GaveUp(loss) => Some(format!("gave up: {loss}; whether the answer was saved is not known")),
        Notice::Idle { attached: false } => {
            Some(format!("nothing to observe in chat {:?}", args.chat.as_str()))
        }
        Notice::Idle { attached: true } => {
            Some("the run is gone; GET /chats/{chat_id} has what was saved of it".to_owned())
        }
        Notice::Refused { status, message } => Some(format!("the server refused ({status}): {message}")),
    }
}

/// How the process ends with this notice, if it is the last.
fn exit_code(notice: &Notice) -> Option<u8> {
    match notice {
        Notice::Snapshot(_) | Notice::Event(_) | Notice::Reconnecting { .. } => None,
        Notice::Ended(end) if end.superseded => None,
        Notice::Ended(end) => Some(if end.persisted { SAVED } else { NOT_SAVED }),
        Notice::GaveUp(_) => Some(GAVE_UP),
        Notice::Idle { .. } => Some(NOTHING),
        Notice::Refused { .. } => Some(FAILED),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rejoin::client::Loss;
    use rejoin::client::frame::End;

    use super::*;

    #[test]
    fn the_exit_code_tells_how_it_ended() {
        let run = RunId::from_bits(1);
        let end = |persisted, superseded| Notice::Ended(End { run, seq: Seq(1), persisted, superseded });
        let (attempt, attempts_max, delay, loss) = (1, 5, Duration::ZERO, Loss::EndOfFile);
        for (notice, code) in [
            (end(true, false), Some(0)),
            (end(false, false), Some(3)),
            (end(false, true), None),
            (Notice::Reconnecting { attempt, attempts_max, delay, loss }, None),
            (Notice::GaveUp(loss), Some(4)),
            (Notice::Idle { attached: false }, Some(5)),
            (Notice::Idle { attached: true }, Some(5)),
            (Notice::Refused { status: 400, message: String::new() }, Some(1)),
        ] {
            assert_eq!(exit_code(&notice), code, "{notice:?}");
        }
    }

    #[test]
    fn cursors_are_read_strictly() {
        let run = RunId::from_bits(9);
        assert_eq!(cursor(&format!("{run}:12")), Ok(Cursor { run, after: Seq(12) }));
        for bad in
            ["", "x:1", &format!("{run}"), &format!("{run}:"), &format!("{run}:+1"), &format!("{run}:end")]
        {
            assert!(cursor(bad).is_err(), "{bad}");
        }
    }
}
