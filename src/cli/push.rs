//! `rejoin push`: what a program prints becomes a run, each event as soon as its line is here.

use std::fmt;
use std::io::{self, Read};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use crossbeam_channel::{Receiver, bounded, select, tick};

use rejoin::client::{Ended, PushError, Pusher, PusherOptions, QUIET_MS};
use rejoin::proto::history::Trigger;
use rejoin::proto::id::ChatId;
use rejoin::wire::body::{BodyFault, EventReader, Format, Item};
use rejoin::wire::request::Start;

use super::remote::RemoteArgs;

/// It ended, but it is not in the history.
const NOT_SAVED: u8 = 3;

/// One event, in bytes: only what keeps a program that never ends its line from filling the memory. The server has a
/// limit of its own.
const EVENT_BYTES_MAX: usize = 64 << 20;

/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// Pieces that are read ahead of the network.
const PIECES_MAX: usize = 4;

/// What to push, and how.
#[derive(Args, Debug)]
#[command(after_help = "Exit code: 0 saved, 3 ended but not saved, 1 other errors")]
pub(crate) struct PushArgs {
    /// Chat to write to
    #[arg(value_name = "CHAT", value_parser = super::chat_id)]
    chat: ChatId,

    #[command(flatten)]
    remote: RemoteArgs,

    /// What starts the turn: user, heartbeat, canvas or schedule
    #[arg(long, default_value = "user", value_parser = trigger)]
    trigger: Trigger,

    /// Take the place of a run that goes on
    #[arg(long)]
    supersede: bool,

    /// How standard input spells its events
    #[arg(long, value_enum, default_value_t = FormatArg::Auto)]
    format: FormatArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    /// By the first line
    Auto,
    /// One JSON object a line
    Ndjson,
    /// Server-sent events
    Sse,
}

fn trigger(name: &str) -> Result<Trigger, String> {
    Trigger::parse(name).ok_or_else(|| "a trigger is user, heartbeat, canvas or schedule".to_owned())
}

/// Starts a run, pushes standard input to it, and ends it.
pub(crate) fn push(args: &PushArgs) -> ExitCode {
    let start = Start { trigger: args.trigger, supersede: args.supersede };
    let mut pusher = match Pusher::start(&args.remote.server(), &args.chat, start, PusherOptions::default()) {
        Ok(pusher) => pusher,
        Err(error) => return super::fail(&error),
    };
    super::note(&format!("run_id {}", pusher.run_id()));
    let pieces = match read_ahead(io::stdin()) {
        Ok(pieces) => pieces,
        Err(error) => return super::fail(&error),
    };
    match pump(&pieces, Input::new(args.format), &mut pusher) {
        Ok(()) => ended(pusher.finish()),
        Err(PumpError::Push(error)) => super::fail(&error),
        Err(error) => {
            // The run is closed and what there is of it saved, but the input is still at fault.
            let code = super::fail(&error);
            if let Err(error) = pusher.fail(&error.to_string()) {
                super::fail(&error);
            }
            code
        }
    }
}

fn ended(ended: Result<Ended, PushError>) -> ExitCode {
    match ended {
        Ok(Ended { persisted: true, .. }) => {
            super::note("saved");
            ExitCode::SUCCESS
        }
        Ok(Ended { persisted: false, .. }) => {
            super::note("NOT saved");
            ExitCode::from(NOT_SAVED)
        }
        Err(error) => super::fail(&error),
    }
}

/// Why standard input is pushed no further.
enum PumpError {
    Push(PushError),
    Read(io::Error),
    Body(BodyFault),
    Event(u64, String),
    UnknownFormat,
}

impl fmt::Display for PumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PumpError::Push(error) => error.fmt(f),
            PumpError::Read(error) => write!(f, "can't read standard input: {error}"),
            PumpError::Body(fault) => f.write_str(&fault.message()),
            PumpError::Event(line, message) => {
                write!(f, "line {line}: {message}; the events before it were taken")
            }
            PumpError::UnknownFormat => f.write_str(
                "standard input begins neither with a JSON object nor with a field of server-sent events: \
                 print one event per line, or say --format",
            ),
        }
    }
}

/// Reads on a thread of its own, so that the server can be kept awake while nothing comes.
fn read_ahead(mut input: impl Read + Send + 'static) -> io::Result<Receiver<io::Result<Vec<u8>>>> {
    let (sender, pieces) = bounded(PIECES_MAX);
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let piece = match input.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => Ok(buffer.get(..length).unwrap_or_default().to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let failed = piece.is_err();
            if sender.send(piece).is_err() || failed {
                return;
            }
        }
    })?;
    Ok(pieces)
}

fn pump(
    pieces: &Receiver<io::Result<Vec<u8>>>,
    mut input: Input,
    pusher: &mut Pusher,
) -> Result<(), PumpError> {
    let quiet = tick(Duration::from_millis(QUIET_MS));
    loop {
        select! {
            recv(pieces) -> piece => {
                let mut append = |item: Item<'_>| match pusher.append(item.bytes) {
                    Err(PushError::BadEvent(message)) => Err(PumpError::Event(item.line, message)),
                    appended => appended.map_err(PumpError::Push),
                };
                match piece {
                    Ok(Ok(piece)) => input.feed(&piece, &mut append)?,
                    Ok(Err(error)) => return Err(PumpError::Read(error)),
                    Err(_) => return input.end(&mut append),
                }
            }
            recv(quiet) -> _ => pusher.keep_alive().map_err(PumpError::Push)?,
        }
    }
}

/// Standard input, as far as it was cut into events.
enum Input {
    /// Too little came to tell the format.
    Undecided(Vec<u8>),
    Decided(EventReader),
}

impl Input {
    fn new(format: FormatArg) -> Input {
        match format {
            FormatArg::Auto => Input::Undecided(Vec::new()),
            FormatArg::Ndjson => Input::Decided(EventReader::new(Format::Ndjson, EVENT_BYTES_MAX)),
            FormatArg::Sse => Input::Decided(EventReader::new(Format::Sse, EVENT_BYTES_MAX)),
        }
    }

    fn feed(
        &mut self,
        piece: &[u8],
        append: &mut impl FnMut(Item<'_>) -> Result<(), PumpError>,
    ) -> Result<(), PumpError> {
        match self {
            Input::Decided(reader) => read_items(reader, piece, append),
            Input::Undecided(kept) => {
                kept.extend_from_slice(piece);
                let format = match guess(kept) {
                    Guess::Format(format) => format,
                    Guess::TooShort => return Ok(()),
                    Guess::Unknown => return Err(PumpError::UnknownFormat),
                };
                let mut reader = EventReader::new(format, EVENT_BYTES_MAX);
                let fed = read_items(&mut reader, kept, append);
                *self = Input::Decided(reader);
                fed
            }
        }
    }

    fn end(self, append: &mut impl FnMut(Item<'_>) -> Result<(), PumpError>) -> Result<(), PumpError> {
        match self {
            Input::Undecided(kept) if kept.trim_ascii().is_empty() => Ok(()),
            Input::Undecided(_) => Err(PumpError::UnknownFormat),
            Input::Decided(mut reader) => match reader.finish() {
                None => Ok(()),
                Some(item) => append(item.map_err(PumpError::Body)?),
            },
        }
    }
}

fn read_items(
    reader: &mut EventReader,
    mut piece: &[u8],
    append: &mut impl FnMut(Item<'_>) -> Result<(), PumpError>,
) -> Result<(), PumpError> {
    while let Some(item) = reader.next(&mut piece) {
        append(item.map_err(PumpError::Body)?)?;
    }
    Ok(())
}

/// What the beginning of a text says about its format.
#[derive(Debug, PartialEq, Eq)]
enum Guess {
    Format(Format),
    TooShort,
    Unknown,
}

fn guess(text: &[u8]) -> Guess {
    const BOM: &[u8] = b"\xef\xbb\xbf";
    const FIELDS: [&[u8]; 5] = [b":", b"data:", b"event:", b"id:", b"retry:"];
    if BOM.starts_with(text) {
        return Guess::TooShort;
    }
    let start = text.strip_prefix(BOM).unwrap_or(text).trim_ascii_start();
    if start.starts_with(b"{") {
        Guess::Format(Format::Ndjson)
    } else if FIELDS.iter().any(|field| start.starts_with(field)) {
        Guess::Format(Format::Sse)
    } else if FIELDS.iter().any(|field| field.starts_with(start)) {
        Guess::TooShort
    } else {
        Guess::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_tells_the_format() {
        let (ndjson, sse) = (Guess::Format(Format::Ndjson), Guess::Format(Format::Sse));
        let cases: [(&[u8], &Guess); 13] = [
            (b"{", &ndjson),
            (b"\n \r\n{\"type\"", &ndjson),
            (b"\xef\xbb\xbf{", &ndjson),
            (b"data: {", &sse),
            (b"\n: hello", &sse),
            (b"event: x", &sse),
            (b"id:1", &sse),
            (b"retry:9", &sse),
            (b"", &Guess::TooShort),
            (b"\xef\xbb", &Guess::TooShort),
            (b"\n dat", &Guess::TooShort),
            (b"[", &Guess::Unknown),
            (b"hello", &Guess::Unknown),
        ];
        for (text, expected) in cases {
            assert_eq!(&guess(text), expected, "{:?}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn events_come_out_whatever_the_cut() {
        let text = b"\n\ndata: {\"a\":1}\n\n: c\n\ndata: {\"b\":2}";
        for cut in 0..=text.len() {
            let mut items = Vec::new();
            let mut append = |item: Item<'_>| {
                items.push(String::from_utf8(item.bytes.to_vec()).unwrap());
                Ok(())
            };
            let mut input = Input::new(FormatArg::Auto);
            let (first, second) = text.split_at(cut);
            for piece in [first, second] {
                assert!(input.feed(piece, &mut append).is_ok());
            }
            assert!(input.end(&mut append).is_ok());
            assert_eq!(items, [r#"{"a":1}"#, r#"{"b":2}"#], "cut at {cut}");
        }
    }
}
