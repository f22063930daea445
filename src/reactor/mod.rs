//! The reactor: one thread that owns all sockets and, in the engine, all run state.
//!
//! It turns what the operating system says into the engine's inputs and the engine's outputs into system calls and
//! jobs. It takes no protocol decision. A turn goes: poll, read, engine, drain, write, reap.

mod clock;
mod locals;
mod mailbox;
mod sockets;
mod turns;

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::time::Duration;

use crossbeam_channel::Receiver;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};

use crate::engine::{Config, Engine, Input, LocalInput, Output};
use crate::limits;
use crate::proto::history::{Answer, Job, Outcome, Page, RetryPoint, Turn};
use crate::proto::id::{ConnId, Now};
use crate::store::Store;
use crate::workers::Workers;

pub use locals::{Allowance, Budget, LocalChannel, budget};
pub use mailbox::{Mailbox, Message};

use clock::Clock;
use locals::Locals;
use sockets::{Readiness, Sockets};
use turns::Turns;

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

/// Events taken from the poll at once.
const EVENTS_PER_POLL: usize = 1024;

/// Connections accepted per turn.
const ACCEPTS_PER_TURN: usize = 64;

/// Messages of other threads taken per turn: a producer in this process can't keep the sockets waiting.
const MESSAGES_PER_TURN: usize = 1024;

/// Writes between two looks at the clock.
const WRITES_PER_LOOK: u32 = 8;

/// What the reactor is started with.
pub struct Parts {
    /// The engine's configuration.
    pub config: Config,
    /// The secret that all ids come from.
    pub seed: [u8; 32],
    /// A bound, listening socket.
    pub listener: std::net::TcpListener,
    /// Serialises snapshots.
    pub workers: Workers,
}

/// The reactor, before its thread runs.
pub struct Reactor {
    poll: Poll,
    clock: Clock,
    engine: Engine,
    listener: Option<TcpListener>,
    /// Whether connections may be waiting to be accepted.
    accepting: bool,
    /// When accepting is tried again after descriptors ran out.
    accept_again_ms: Option<u64>,
    /// With those that are only told that there is no room.
    connections_max: usize,
    sockets: Sockets,
    mailbox: Mailbox,
    messages: Receiver<Message>,
    locals: Locals,
    turns: Turns,
    workers: Workers,
    /// Jobs that the store's queue had no room for, in order.
    overflow: VecDeque<Job>,
    /// The one buffer that is read into.
    buffer: Vec<u8>,
    /// When a stopping server gives up waiting.
    stop_by_ms: Option<u64>,
}

impl Reactor {
    /// Sets everything up; nothing is served before [`Reactor::run`].
    pub fn new(parts: Parts) -> io::Result<(Reactor, Mailbox)> {
        let poll = Poll::new()?;
        let (mailbox, messages) = Mailbox::new(poll.registry(), WAKER)?;
        parts.listener.set_nonblocking(true)?;
        let mut listener = TcpListener::from_std(parts.listener);
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let connections_max =
            parts.config.limits.connections_max.saturating_add(limits::SURPLUS_CONNECTIONS_MAX);
        let reactor = Reactor {
            poll,
            clock: Clock::start(),
            engine: Engine::new(parts.config, parts.seed),
            listener: Some(listener),
            accepting: true,
            accept_again_ms: None,
            connections_max,
            sockets: Sockets::default(),
            mailbox: mailbox.clone(),
            messages,
            locals: Locals::default(),
            turns: Turns::default(),
            workers: parts.workers,
            overflow: VecDeque::new(),
            buffer: vec![0; limits::READ_BYTES_PER_TURN],
            stop_by_ms: None,
        };
        Ok((reactor, mailbox))
    }

    /// Serves until told to stop. Gives the store back, to be closed.
    pub fn run(mut self, store: Store) -> io::Result<Store> {
        let mut events = Events::with_capacity(EVENTS_PER_POLL);
        let mut busy = true;
        loop {
            let timeout = self.timeout(busy);
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let now = self.clock.now();
            for event in &events {
                self.note(now, event);
            }
            busy = self.accept(now);
            busy |= self.take_messages(now, &store);
            busy |= self.read(now);
            if self.engine.deadline().is_some_and(|due| due <= now.mono_ms) {
                self.engine.handle(now, Input::Tick);
            }
            self.drain(now, &store);
            busy |= self.write(&store);
            self.reap(now, &store);
            if self.is_done(now) {
                self.turns.close();
                return Ok(store);
            }
            self.engine.note_turn(self.clock.since_last_us());
        }
    }

    fn timeout(&self, busy: bool) -> Option<Duration> {
        if busy {
            return Some(Duration::ZERO);
        }
        let now_ms = self.clock.now_us() / 1000;
        let retry = (!self.overflow.is_empty()).then_some(now_ms + 10);
        let due = [
            self.engine.deadline(),
            self.accept_again_ms,
            self.sockets.linger_until(),
            self.stop_by_ms,
            retry,
        ];
        let next = due.into_iter().flatten().min()?;
        Some(Duration::from_millis(next.saturating_sub(now_ms)))
    }

    fn note(&mut self, now: Now, event: &mio::event::Event) {
        match event.token() {
            LISTENER => self.accepting = true,
            WAKER => {}
            Token(slot) => {
                let readiness = Readiness {
                    readable: event.is_readable() || event.is_read_closed(),
                    read_closed: event.is_read_closed(),
                    writable: event.is_writable(),
                    failed: event.is_error() || (event.is_write_closed() && event.is_read_closed()),
                };
                let Some(id) = self.sockets.note(slot, &readiness) else { return };
                if readiness.writable {
                    self.engine.handle(now, Input::Writable(id));
                }
            }
        }
    }

    /// Accepts connections; returns whether more may be waiting.
    fn accept(&mut self, now: Now) -> bool {
        if self.accept_again_ms.is_some_and(|at| at <= now.mono_ms) {
            self.accept_again_ms = None;
            self.accepting = true;
        }
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(listener) = &self.listener else { return false };
            if !self.accepting || self.sockets.len() >= self.connections_max {
                return false;
            }
            match listener.accept() {
                Ok((stream, _)) => match self.sockets.insert(stream, self.poll.registry()) {
                    Ok(id) => self.engine.handle(now, Input::Opened(id)),
                    Err(error) => tracing::warn!(%error, "a new connection could not be set up"),
                },
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.accepting = false,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted at the moment; trying again");
                    self.accepting = false;
                    self.accept_again_ms = Some(now.mono_ms + limits::ACCEPT_RETRY_MS);
                }
            }
        }
        true
    }

    /// Takes what other threads sent; returns whether there is more.
    fn take_messages(&mut self, now: Now, store: &Store) -> bool {
        self.mailbox.about_to_read();
        for _ in 0..MESSAGES_PER_TURN {
            let Ok(message) = self.messages.try_recv() else { return false };
            match message {
                Message::Serialized(ticket, snapshot, us) => {
                    self.engine.note_snapshot(us);
                    self.engine.handle(now, Input::Serialized(ticket, snapshot));
                }
                Message::Stored(answer) => {
                    self.engine.handle(now, Input::Stored(answer));
                    self.submit_overflow(store);
                }
                Message::Open(id, channel) => self.locals.open(id, channel),
                Message::Local(id, input) => {
                    let bytes = self.locals.bytes_of(&input);
                    self.engine.handle(now, Input::Local(id, input));
                    match bytes {
                        Some(bytes) if id.is_turn() => self.turns.taken(id, bytes),
                        bytes => self.locals.taken(id, bytes),
                    }
                }
                Message::TurnOver(id, left) => {
                    self.turns.over(id, left, &self.mailbox);
                    self.engine.handle(now, Input::Local(id, LocalInput::Gone));
                }
                Message::Stop => self.stop(now),
            }
            self.drain(now, store);
        }
        true
    }

    fn stop(&mut self, now: Now) {
        if let Some(mut listener) = self.listener.take() {
            // What can't be deregistered is closed all the same when it is dropped here.
            let _ = self.poll.registry().deregister(&mut listener);
            self.stop_by_ms = Some(now.mono_ms + limits::SHUTDOWN_MS);
            self.engine.handle(now, Input::Shutdown);
        }
    }

    fn is_done(&self, now: Now) -> bool {
        let given_up = self.stop_by_ms.is_some_and(|by| by <= now.mono_ms);
        given_up || (self.engine.is_finished() && self.overflow.is_empty() && self.turns.is_empty())
    }

    /// Reads each connection that has bytes, one budget each; returns whether any has more.
    fn read(&mut self, now: Now) -> bool {
        for _ in 0..self.sockets.ready_len() {
            let Some(id) = self.sockets.next_ready() else { break };
            if self.sockets.is_lingering(id) {
                self.sockets.discard(id, &mut self.buffer);
                continue;
            }
            if !self.engine.wants_bytes(id) {
                self.sockets.pause(id);
                continue;
            }
            match self.sockets.read(id, &mut self.buffer) {
                Ok(0) => {
                    self.sockets.end_reading(id);
                    self.engine.handle(now, Input::HalfClosed(id));
                }
                Ok(bytes) => self.engine.handle(now, Input::Received(id, &self.buffer[..bytes])),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => self.sockets.resume(id),
                Err(_) => self.sockets.doom(id),
            }
        }
        self.sockets.ready_len() > 0
    }

    /// Does what the engine wants done.
    fn drain(&mut self, now: Now, store: &Store) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Serialize(job) => {
                    let (mailbox, watch) = (self.mailbox.clone(), self.clock.stopwatch());
                    let given_us = watch.now_us();
                    self.workers.submit(job, move |ticket, snapshot| {
                        mailbox.send(Message::Serialized(ticket, snapshot, watch.now_us() - given_us));
                    });
                }
                Output::Store(job) => {
                    if let Job::Delete { chat, .. } = &job {
                        self.turns.forget(chat);
                    }
                    self.submit(now, store, job);
                }
                Output::Withdraw(run) => store.withdraw(run),
                Output::Close(id, how) => self.sockets.close(id, how, now.mono_ms),
                Output::Resume(id) => self.sockets.resume(id),
                Output::Local(id, reply) if id.is_turn() => self.turns.tell(id, reply),
                Output::Local(id, reply) => self.locals.reply(id, reply),
                Output::StartTurn(order) => self.turns.start(*order, &self.mailbox),
            }
        }
    }

    /// Jobs reach the store in the order in which the engine gave them.
    fn submit(&mut self, now: Now, store: &Store, job: Job) {
        if !self.overflow.is_empty() {
            return self.overflow_job(now, job);
        }
        if let Err(job) = store.submit(job) {
            self.overflow_job(now, job);
        }
    }

    /// The store's queue is full. Readers are told; what changes the history waits, up to a bound.
    fn overflow_job(&mut self, now: Now, job: Job) {
        let full = self.overflow.len() >= limits::STORE_JOBS_MAX;
        let unsaved = |turn: &Turn| {
            tracing::error!(run = %turn.run, chat = %turn.chat, "the store is stuck; this turn is not saved");
            Answer::Finalized { run: turn.run, outcome: Outcome::Failed }
        };
        let refused = match &job {
            Job::Chats { ticket, .. } | Job::Chat { ticket, .. } => {
                vec![Answer::Page { ticket: *ticket, page: Page::Failed }]
            }
            Job::Commit(turn) if full => vec![unsaved(turn)],
            Job::Delete { ticket, .. } if full => vec![Answer::Deleted { ticket: *ticket, done: false }],
            Job::Open(opening) if full => {
                let replaced = opening.replaced.as_ref().map(unsaved);
                replaced.into_iter().chain([Answer::Opened { run: opening.run, opened: None }]).collect()
            }
            Job::FindRetry { ticket, .. } if full => {
                vec![Answer::RetryPoint { ticket: *ticket, point: RetryPoint::Failed }]
            }
            Job::Begin { .. }
            | Job::Commit(_)
            | Job::Open(_)
            | Job::FindRetry { .. }
            | Job::Delete { .. } => {
                self.overflow.push_back(job);
                return;
            }
        };
        for answer in refused {
            self.engine.handle(now, Input::Stored(answer));
        }
    }

    fn submit_overflow(&mut self, store: &Store) {
        while let Some(job) = self.overflow.pop_front() {
            if let Err(job) = store.submit(job) {
                self.overflow.push_front(job);
                return;
            }
        }
    }

    /// Writes what is ready, for a bounded time; returns whether there may be more.
    fn write(&mut self, store: &Store) -> bool {
        self.submit_overflow(store);
        let started = self.clock.now_us();
        let mut writes = 0;
        loop {
            let Some(id) = self.engine.next_dirty() else { return false };
            self.write_one(id);
            writes += 1;
            if writes % WRITES_PER_LOOK == 0 && self.clock.now_us() - started > limits::WRITE_US_PER_TURN {
                return true;
            }
        }
    }

    fn write_one(&mut self, id: ConnId) {
        let now = self.clock.last();
        let mut slices = [IoSlice::new(&[]); limits::SLICES_PER_WRITE];
        let filled = self.engine.outgoing(id, &mut slices);
        let slices = &slices[..filled];
        let offered: usize = slices.iter().map(|slice| slice.len()).sum();
        match self.sockets.write(id, slices) {
            Ok(bytes) => self.engine.sent(now, id, bytes, bytes < offered),
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.engine.sent(now, id, 0, true),
            Err(error) if error.kind() == ErrorKind::Interrupted => self.engine.sent(now, id, 0, false),
            Err(_) => {
                self.engine.sent(now, id, 0, true);
                self.sockets.doom(id);
            }
        }
    }

    /// Lets go of connections that are gone.
    fn reap(&mut self, now: Now, store: &Store) {
        self.drain(now, store);
        self.sockets.end_lingering(now.mono_ms);
        while let Some(id) = self.sockets.reap(self.poll.registry()) {
            self.engine.handle(now, Input::Closed(id));
            self.accepting = true;
        }
        self.drain(now, store);
    }
}
