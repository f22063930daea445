//! The engine takes every decision: which bytes are which request, who observes which run, what is appended, when
//! a run is over and what its end says.
//!
//! It is pure: no socket, clock, thread, file or randomness of its own. The shell calls [`Engine::handle`] with one
//! [`Input`], then drains [`Engine::poll_output`], and writes what [`Engine::next_dirty`] says is ready. The same
//! inputs from the same seed give the same outputs and the same bytes.
#![warn(clippy::wildcard_enum_match_arm)]

mod answer;
mod bus;
mod caps;
mod conn;
mod cross;
mod fanout;
mod finalize;
mod history;
mod intake;
mod journal;
mod local;
mod observe;
mod outbound;
mod permit;
mod produce;
mod producer;
mod ready;
mod routes;
mod start;
mod status;
mod timers;
mod turns;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::access::{Access, TokenId};
use crate::http::origin::Origin;
use crate::limits::{self, Limits};
use crate::proto::history::{Answer, Job};
use crate::proto::id::{ChatId, ConnId, LocalId, Now, RunId, Seq, Ticket};
use crate::proto::pool::BlockPool;
use crate::proto::registry::{Registry, RunKey};
use crate::proto::turn::{Agent, TurnOrder};
use crate::wire::frame::Form;
use crate::wire::snapshot::{Snapshot, SnapshotJob};
use crate::wire::status::Totals;

pub use local::{LocalInput, LocalReply};

use bus::Bus;
use conn::Conn;
use producer::Producer;
use timers::Timers;

/// What can happen to the engine. Reading this enum and [`Output`] is reading the system.
#[derive(Debug)]
pub enum Input<'a> {
    /// A client connected.
    Opened(ConnId),
    /// Bytes came from a client.
    Received(ConnId, &'a [u8]),
    /// A client will send nothing more; it may still read.
    HalfClosed(ConnId),
    /// A connection is gone.
    Closed(ConnId),
    /// A connection that took no more bytes takes some again.
    Writable(ConnId),
    /// A snapshot job is done, or has failed.
    Serialized(Ticket, Option<Snapshot>),
    /// The store answered.
    Stored(Answer),
    /// A producer in this process did something.
    Local(LocalId, LocalInput),
    /// Time has passed: deadlines may have come.
    Tick,
    /// The server is to stop: runs are closed and saved, nothing new begins.
    Shutdown,
}

/// What the engine wants done.
#[derive(Debug)]
pub enum Output {
    /// Serialise a snapshot on a worker; answer with [`Input::Serialized`].
    Serialize(SnapshotJob),
    /// Give the store a job, in this order; it answers with [`Input::Stored`] (not to `Job::Begin`).
    Store(Job),
    /// The run's commit is awaited no longer: if the store has not begun it, it is to be skipped.
    Withdraw(RunId),
    /// Close a connection.
    Close(ConnId, Close),
    /// Read a connection again that was not read because [`Engine::wants_bytes`] said no.
    Resume(ConnId),
    /// Tell a producer in this process, or a turn.
    Local(LocalId, LocalReply),
    /// Carry out a turn; it answers with [`Input::Local`] under its id, `Gone` last.
    StartTurn(Box<TurnOrder>),
}

/// How a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Shut down writing, drop what still comes for a moment so that the client can read its answer, then close.
    Linger,
    /// Cut it off at once: what was sent must not look complete.
    Reset,
}

/// What an operator decides.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Bounds.
    pub limits: Limits,
    /// Host names that clients may use beside loopback's.
    pub hosts: Vec<String>,
    /// Origins whose pages may use this server, beside its own.
    pub origins: Vec<Origin>,
    /// Who may do what.
    pub access: Access,
    /// Agents that turns can be held with; the first one unless a request names another.
    pub agents: Vec<Arc<Agent>>,
}

/// The pure half of the server.
pub struct Engine {
    config: Config,
    now: Now,
    ids: ChaCha12Rng,
    /// For what is only spread: it takes nothing from the ids' sequence.
    delays: ChaCha12Rng,
    tickets: u64,
    conns: Vec<Option<Box<Conn>>>,
    conns_len: usize,
    /// Connections beyond the cap, which are only told so.
    surplus_len: usize,
    registry: Registry<Snapshot>,
    pool: BlockPool,
    /// Producers of the runs that are not over.
    producers: BTreeMap<RunId, Producer>,
    /// Runs of the producers in this process.
    locals: BTreeMap<LocalId, RunId>,
    /// Commits under way, with what is needed once their outcome is known.
    commits: BTreeMap<RunId, finalize::Pending>,
    /// Requests that wait for a run of a chat.
    waiters: BTreeMap<ChatId, BTreeSet<ConnId>>,
    /// How many there are of them.
    waiting_len: usize,
    /// Streams and waiting requests of each JWT.
    holders: BTreeMap<TokenId, usize>,
    /// Requests that wait for a chat's finalization to be over.
    starters: BTreeMap<ChatId, VecDeque<start::Starter>>,
    /// Turns whose message is on its way into the history.
    openings: BTreeMap<RunId, turns::Pending>,
    /// Retries that wait to hear where the conversation can be taken up again.
    retries: BTreeMap<Ticket, start::Starter>,
    turns: turns::TurnQueue,
    /// Runs of the snapshot jobs under way.
    jobs: BTreeMap<Ticket, RunKey>,
    /// Requests that wait for the store's answer to a question, until then.
    questions: BTreeMap<Ticket, (ConnId, u64)>,
    bus: Bus,
    timers: Timers,
    outputs: VecDeque<Output>,
    /// Connections that may have something to write.
    dirty: VecDeque<ConnId>,
    /// Runs with news for their observers.
    news: Vec<RunKey>,
    /// Frames rendered in another form than the log's, shared by the observers that need the same range.
    rendered: BTreeMap<(RunId, Form, Seq), Rendered>,
    /// What has happened so far; the events of runs that are still here come on top.
    totals: Totals,
    /// What else `GET /metrics` tells.
    tallies: status::Tallies,
    store_watch: ready::StoreWatch,
    /// Bytes held by all runs.
    runs_bytes: u64,
    /// Memory of request bodies that are not complete yet.
    bodies_bytes: u64,
    /// Takes the lines of events that differ from the bytes that were sent.
    line: Vec<u8>,
    stopping: bool,
}

/// Frames in one form.
#[derive(Clone, Debug)]
struct Rendered {
    bytes: Arc<Vec<u8>>,
    /// Seq of the last frame in it.
    to: Seq,
}

impl Engine {
    /// An engine at rest. All ids come from `seed`; with a secret one they can't be guessed.
    pub fn new(config: Config, seed: [u8; 32]) -> Engine {
        let registry = Registry::new(config.limits.retention_ms, config.limits.retention_chats);
        let mut delays = ChaCha12Rng::from_seed(seed);
        delays.set_stream(1);
        Engine {
            now: Now::default(),
            ids: ChaCha12Rng::from_seed(seed),
            delays,
            tickets: 0,
            conns: Vec::new(),
            conns_len: 0,
            surplus_len: 0,
            registry,
            pool: BlockPool::warm(limits::POOL_BLOCKS_WARM),
            producers: BTreeMap::new(),
            locals: BTreeMap::new(),
            commits: BTreeMap::new(),
            waiters: BTreeMap::new(),
            waiting_len: 0,
            holders: BTreeMap::new(),
            starters: BTreeMap::new(),
            openings: BTreeMap::new(),
            retries: BTreeMap::new(),
            turns: turns::TurnQueue::default(),
            jobs: BTreeMap::new(),
            questions: BTreeMap::new(),
            bus: Bus::new(),
            timers: Timers::default(),
            outputs: VecDeque::new(),
            dirty: VecDeque::new(),
            news: Vec::new(),
            rendered: BTreeMap::new(),
            totals: Totals::default(),
            tallies: status::Tallies::default(),
            store_watch: ready::StoreWatch::default(),
            runs_bytes: 0,
            bodies_bytes: 0,
            line: Vec::new(),
            stopping: false,
            config,
        }
    }

    /// Takes one input.
    pub fn handle(&mut self, now: Now, input: Input<'_>) {
        self.now = now;
        match input {
            Input::Opened(id) => self.opened(id),
            Input::Received(id, bytes) => self.received(id, bytes),
            Input::HalfClosed(id) => self.half_closed(id),
            Input::Closed(id) => self.closed(id),
            Input::Writable(id) => self.writable(id),
            Input::Serialized(ticket, snapshot) => self.serialized(ticket, snapshot),
            Input::Stored(answer) => self.stored(answer),
            Input::Local(id, input) => self.local(id, input),
            Input::Tick => self.tick(),
            Input::Shutdown => self.shutdown(),
        }
        #[cfg(debug_assertions)]
        self.check_invariants();
    }

    /// The next thing to be done, if there is any.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Input::Tick`] is due, in milliseconds of the monotonic clock.
    pub fn deadline(&self) -> Option<u64> {
        self.timers.next()
    }

    /// Whether the engine takes more bytes of this connection now.
    pub fn wants_bytes(&self, id: ConnId) -> bool {
        self.conn(id).is_some_and(|conn| conn.pending.len() < limits::PIPELINE_BYTES_MAX)
    }

    /// Whether a server that is to stop has nothing left to do.
    pub fn is_finished(&self) -> bool {
        self.stopping && self.commits.is_empty() && self.conns_len == 0
    }

    /// Bytes of memory held for runs and for request bodies on their way.
    pub fn memory_bytes(&self) -> u64 {
        self.runs_bytes + self.bodies_bytes
    }

    fn conn(&self, id: ConnId) -> Option<&Conn> {
        self.conns.get(id.slot as usize)?.as_deref().filter(|conn| conn.generation == id.generation)
    }

    fn conn_mut(&mut self, id: ConnId) -> Option<&mut Conn> {
        let conn = self.conns.get_mut(id.slot as usize)?.as_deref_mut();
        conn.filter(|conn| conn.generation == id.generation)
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    fn run_id(&mut self) -> RunId {
        RunId::from_bits(u128::from(self.ids.next_u64()) << 64 | u128::from(self.ids.next_u64()))
    }

    fn output(&mut self, output: Output) {
        if let Output::Store(job) = &output {
            self.store_watch.asked(self.now, job);
        }
        self.outputs.push_back(output);
    }

    /// Lets go of what retention does not cover any more.
    fn evict(&mut self) {
        for key in self.registry.evict(self.now.mono_ms) {
            self.release(key);
        }
    }

    /// Frees a run that is neither retained nor observed.
    fn release(&mut self, key: RunKey) {
        let run = self.registry.run(key);
        if run.retained || !run.observers.is_empty() {
            return;
        }
        let run = self.registry.remove(key);
        self.runs_bytes -= run.memory_bytes();
        self.tally_run(&run);
        self.news.retain(|changed| *changed != key);
        for slot in &run.snapshots {
            self.jobs.remove(&slot.ticket);
        }
        run.release(&mut self.pool);
    }

    fn shutdown(&mut self) {
        if self.stopping {
            return;
        }
        self.stopping = true;
        self.close_all_runs();
        self.refuse_all_waiting();
        for slot in 0..self.conns.len() {
            let id = self.conns.get(slot).and_then(Option::as_deref).map(|conn| conn.id(slot));
            if let Some(id) = id {
                self.wind_up(id);
            }
        }
    }

    #[cfg(debug_assertions)]
    fn check_invariants(&self) {
        debug_assert!(self.news.iter().all(|key| self.registry.run(*key).news));
        debug_assert!(self.waiters.values().all(|waiting| !waiting.is_empty()));
        debug_assert!(self.waiters.values().map(BTreeSet::len).sum::<usize>() == self.waiting_len);
        debug_assert!(self.holders.values().all(|streams| *streams > 0));
        debug_assert!(self.starters.values().all(|waiting| !waiting.is_empty()));
        debug_assert!(self.producers.keys().all(|id| self.registry.of_id(*id).is_some()));
    }
}
