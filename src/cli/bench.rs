//! `rejoin bench`: a quick measurement of this machine, so that an operator can size a deployment. A server of its own, in
//! this process, and observers over loopback sockets on one thread.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use rejoin::engine::Config;
use rejoin::limits::Limits;
use rejoin::producer::{Handle, ProducerError, RunOptions};
use rejoin::store::DbPath;
use rejoin::{Server, ServerConfig, StartError};

/// How much is done.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// Observers of one run
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    observers: u16,

    /// Events that they are sent
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    events: u32,
}

/// Characters of a token's text: what models send at once.
const TOKEN: &str = "some words and more, ";

/// Measures, and prints what came out.
pub(crate) fn bench(args: &BenchArgs) -> ExitCode {
    match measure(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => super::fail(&fault),
    }
}

#[derive(Debug)]
enum Fault {
    Start(StartError),
    Producer(ProducerError),
    Socket(std::io::Error),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Start(error) => write!(out, "the server could not be started: {error}"),
            Fault::Producer(error) => write!(out, "the run was cut short: {error}"),
            Fault::Socket(error) => {
                write!(
                    out,
                    "an observer lost its connection: {error} (is the limit of open files, ulimit -n, high enough?)"
                )
            }
        }
    }
}

impl From<ProducerError> for Fault {
    fn from(error: ProducerError) -> Fault {
        Fault::Producer(error)
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Fault {
        Fault::Socket(error)
    }
}

fn measure(args: &BenchArgs) -> Result<(), Fault> {
    let (events, observers) = (args.events, usize::from(args.observers));
    // Nobody is to fall out of the window: what is counted is what was delivered.
    let limits = Limits { window_events: events as usize + 8, ..Limits::default() };
    let config = ServerConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        db: DbPath::Memory,
        engine: Config { limits, ..Config::default() },
        ..ServerConfig::default()
    };
    let server = Server::start(config).map_err(Fault::Start)?;
    let (handle, address) = (server.handle(), server.address());

    let alone = write_run(&handle, "alone", events, Crowd::new()?)?;
    super::say(&format!("append, nobody reads along:    {} events/s", per_second(u64::from(events), alone)));

    let mut crowd = Crowd::new()?;
    let (chat, deliveries) = ("read", u64::from(events) * observers as u64);
    crowd.waiting(address, chat, observers)?;
    let took = write_run(&handle, chat, events, crowd)?;
    super::say(&format!("{observers} observers of one run:   {} deliveries/s", per_second(deliveries, took)));

    let attach = attach_time(&handle, address, events)?;
    super::say(&format!(
        "attach to {events} events:   {:.2} ms until the snapshot is there",
        attach.as_secs_f64() * 1e3
    ));
    super::say(
        "\nObservers, producer and server shared this machine's processors: on a server's own, they have more.",
    );
    Ok(server.stop()?)
}

/// Writes a run that the crowd follows. The time from its first token until everybody has its end.
fn write_run(handle: &Handle, chat: &str, events: u32, mut crowd: Crowd) -> Result<Duration, Fault> {
    let mut run = handle.start(chat, RunOptions::default())?;
    run.append(br#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#)?;
    crowd.until(|observer| observer.bytes > 0)?;
    let begin = now();
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| crowd.until(|observer| observer.closed));
        append(&mut run, events)?;
        run.append(br#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#)?;
        run.finish()?;
        reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    Ok(begin.elapsed())
}

fn append(run: &mut rejoin::producer::Producer, events: u32) -> Result<(), Fault> {
    run.append(br#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#)?;
    let delta = format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"{TOKEN}"}}"#);
    for _ in 0..events {
        run.append(delta.as_bytes())?;
    }
    Ok(run.append(br#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#)?)
}

/// The median of nine observers that come one after another.
fn attach_time(handle: &Handle, address: SocketAddr, events: u32) -> Result<Duration, Fault> {
    let mut run = handle.start("attached", RunOptions::default())?;
    append(&mut run, events)?;
    let mut times = Vec::new();
    for _ in 0..9 {
        let begin = now();
        let mut crowd = Crowd::new()?;
        crowd.waiting(address, "attached", 1)?;
        crowd.until(|observer| observer.bytes > 1_000 && observer.at_message_end)?;
        times.push(begin.elapsed());
    }
    times.sort();
    Ok(times.get(4).copied().unwrap_or_default())
}

#[expect(clippy::disallowed_methods, reason = "a program that measures time")]
fn now() -> Instant {
    Instant::now()
}

fn per_second(count: u64, time: Duration) -> u64 {
    let nanos = time.as_nanos().max(1);
    u64::try_from(u128::from(count) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
}

/// Observers on one thread.
struct Crowd {
    poll: Poll,
    events: Events,
    observers: Vec<Observer>,
    buffer: Vec<u8>,
}

struct Observer {
    stream: TcpStream,
    bytes: u64,
    /// The last bytes were the end of a message.
    at_message_end: bool,
    closed: bool,
}

impl Crowd {
    fn new() -> Result<Crowd, Fault> {
        Ok(Crowd {
            poll: Poll::new()?,
            events: Events::with_capacity(1024),
            observers: Vec::new(),
            buffer: vec![0; 256 << 10],
        })
    }

    /// Adds observers who wait for the chat's run.
    fn waiting(&mut self, address: SocketAddr, chat: &str, count: usize) -> Result<(), Fault> {
        let request = format!("GET /chat/live?chat_id={chat}&wait_ms=20000 HTTP/1.0\r\n\r\n");
        for _ in 0..count {
            let mut stream = std::net::TcpStream::connect(address)?;
            stream.write_all(request.as_bytes())?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            self.poll.registry().register(&mut stream, Token(self.observers.len()), Interest::READABLE)?;
            self.observers.push(Observer { stream, bytes: 0, at_message_end: false, closed: false });
        }
        Ok(())
    }

    fn until(&mut self, done: impl Fn(&Observer) -> bool) -> Result<(), Fault> {
        while !self.observers.iter().all(&done) {
            self.poll.poll(&mut self.events, Some(Duration::from_secs(1)))?;
            for event in &self.events {
                if let Some(observer) = self.observers.get_mut(event.token().0) {
                    observer.read(&mut self.buffer)?;
                }
            }
        }
        Ok(())
    }
}

impl Observer {
    fn read(&mut self, buffer: &mut [u8]) -> Result<(), Fault> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => {
                    self.closed = true;
                    return Ok(());
                }
                Ok(count) => {
                    self.bytes += count as u64;
                    self.at_message_end = buffer.get(..count).is_some_and(|bytes| bytes.ends_with(b"\n\n"));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
