//! The world around the engine: sockets that take any number of bytes, workers that finish late and out of order, a
//! store that fails and hangs, a clock that jumps, and the clients. One seed decides everything.

use std::collections::{BTreeMap, VecDeque};
use std::io::IoSlice;

use rejoin::engine::{Close, Config, Engine, Input, Output};
use rejoin::limits::{Limits, SLICES_PER_WRITE};
use rejoin::proto::id::{ConnId, Now, RunId};
use rejoin::wire::snapshot::SnapshotJob;

use crate::agents::Agent;
use crate::checker::Checker;
use crate::client::{Client, Next};
use crate::locals::LocalProducer;
use crate::producer::Producer;
use crate::reader::Reader;
use crate::rng::Rng;
use crate::store::StoreModel;
use crate::swarm::Swarm;

/// Lines of the trace that are kept.
const TRACE: usize = 60;

/// Writes that one input may cause: far more than there are connections and frames.
const WRITES_PER_STEP: usize = 100_000;

/// Everything.
pub struct World {
    engine: Engine,
    now: Now,
    pub rng: Rng,
    pub swarm: Swarm,
    pub store: StoreModel,
    pub checker: Checker,
    jobs: Vec<SnapshotJob>,
    pub agents: Vec<Agent>,
    pub locals: Vec<LocalProducer>,
    pub locals_begun: u64,
    /// Runs of agents and of producers in the process, with the events that these meant to say, and how many of them
    /// have to be there.
    pub spoken: Vec<(String, Vec<serde_json::Value>, usize)>,
    slots: Vec<Slot>,
    /// Clients without a connection.
    pub waiting: Vec<Client>,
    /// Producers that are through, for the last comparison.
    pub past: Vec<Producer>,
    /// Faults are off.
    pub calm: bool,
    /// Of all bytes that were sent, in order.
    pub hash: u64,
    pub trace: VecDeque<String>,
    /// The first connections are not for everybody: they are the all-seeing one's, and a guest's.
    reserved: usize,
    /// What each connection was sent, if that is wanted; snapshots are then made at once.
    pub transcripts: Option<BTreeMap<(u32, u32), Vec<u8>>>,
}

/// A socket.
struct Slot {
    id: ConnId,
    /// `None`: free.
    client: Option<Client>,
    reader: Reader,
    /// Bytes under way to the server.
    inbound: VecDeque<u8>,
    blocked: bool,
    half_closed: bool,
    /// Both sides are through with it.
    doomed: bool,
}

impl World {
    pub fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let swarm = Swarm::draw(&mut rng);
        World::of(seed, rng, swarm)
    }

    /// A world with a place for a guest, which shares no faults with the others.
    pub fn with_guest_place(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let swarm = Swarm { short_write: 0, block: 0, job_fails: 0, ..Swarm::draw(&mut rng) };
        let mut world = World::of(seed, rng, swarm);
        world.connect(Client::Once("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned()));
        world.deliver(1);
        world.cut(1);
        world.reserved = 2;
        world.transcripts = Some(BTreeMap::new());
        world
    }

    fn of(seed: u64, rng: Rng, swarm: Swarm) -> World {
        let limits = Limits {
            window_events: swarm.window,
            retention_ms: swarm.retention_ms,
            retention_chats: swarm.retention_chats,
            event_bytes_max: swarm.event_bytes_max,
            run_bytes_max: swarm.run_bytes_max,
            turns_max: swarm.turns_max,
            ..Limits::default()
        };
        let agent = std::sync::Arc::new(rejoin::proto::turn::Agent {
            name: "agent".to_owned(),
            kind: rejoin::proto::turn::AgentKind::Native { url: String::new(), headers: Vec::new() },
            silence_ms: 1,
        });
        let engine = Engine::new(
            Config { limits, agents: vec![agent], ..Config::default() },
            [u8::try_from(seed % 251).unwrap(); 32],
        );
        let checker = Checker::new(&swarm);
        let mut world = World {
            engine,
            now: Now { mono_ms: 1, wall_ms: 1_700_000_000_000 },
            rng,
            swarm,
            store: StoreModel::default(),
            checker,
            jobs: Vec::new(),
            agents: Vec::new(),
            locals: Vec::new(),
            locals_begun: 0,
            spoken: Vec::new(),
            slots: Vec::new(),
            waiting: Vec::new(),
            past: Vec::new(),
            calm: false,
            hash: 0xcbf2_9ce4_8422_2325,
            trace: VecDeque::new(),
            reserved: 0,
            transcripts: None,
        };
        world.connect(Client::Tap);
        world.reserved = 1;
        while !world.slots[0].inbound.is_empty() {
            world.deliver(0);
        }
        world
    }

    pub fn note(&mut self, line: impl FnOnce() -> String) {
        if self.trace.len() == TRACE {
            self.trace.pop_front();
        }
        let line = line();
        self.trace.push_back(line);
    }

    /// Gives a client a connection, if it wants one.
    pub fn connect(&mut self, mut client: Client) {
        let Some(bytes) = client.connect(&mut self.rng, self.now.mono_ms) else {
            match client {
                Client::Producer(producer) => self.past.push(producer),
                Client::Observer(observer) if observer.gave_up => {
                    self.checker.fail(format!("without faults it takes too many attempts: {observer:?}"));
                }
                Client::Observer(_)
                | Client::Tap
                | Client::Ghost
                | Client::Listener(_)
                | Client::Once(_)
                | Client::Sender(_)
                | Client::Garbage(_) => {}
            }
            return;
        };
        let first = self.reserved.min(self.slots.len());
        let free = self.slots[first..].iter().position(|slot| slot.client.is_none());
        self.open(free.map_or(self.slots.len(), |index| first + index), client, bytes);
    }

    pub fn open(&mut self, index: usize, client: Client, bytes: Vec<u8>) {
        let generation = self.slots.get(index).map_or(0, |slot| slot.id.generation) + 1;
        let id = ConnId { slot: u32::try_from(index).unwrap(), generation };
        self.note(|| format!("connect {index} {client:?}").chars().take(300).collect());
        let slot = Slot {
            id,
            client: Some(client),
            reader: Reader::default(),
            inbound: bytes.into(),
            blocked: false,
            half_closed: false,
            doomed: false,
        };
        if index == self.slots.len() {
            self.slots.push(slot);
        } else {
            self.slots[index] = slot;
        }
        self.input(Input::Opened(id));
    }

    /// Connections with a client, but the all-seeing one's and the guest's.
    pub fn busy(&self) -> Vec<usize> {
        (self.reserved..self.slots.len()).filter(|index| self.slots[*index].client.is_some()).collect()
    }

    /// Some of the bytes that a client sent arrive.
    pub fn deliver(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.inbound.is_empty() || slot.half_closed || !self.engine.wants_bytes(slot.id) {
            return;
        }
        let most = slot.inbound.len();
        let count = if self.calm || index < self.reserved {
            most
        } else if self.swarm.dribble {
            1
        } else {
            1 + self.rng.below(most)
        };
        let bytes: Vec<u8> = slot.inbound.drain(..count).collect();
        let id = slot.id;
        self.note(|| {
            format!(
                "deliver {index} {:?}",
                String::from_utf8_lossy(&bytes).chars().take(160).collect::<String>()
            )
        });
        self.input(Input::Received(id, &bytes));
    }

    /// A client's connection breaks; the client may come again.
    pub fn cut(&mut self, index: usize) {
        if matches!(self.slots[index].client, Some(Client::Producer(_))) && self.rng.chance(self.swarm.ghosts)
        {
            return self.leave(index);
        }
        self.note(|| format!("cut {index}"));
        let id = self.slots[index].id;
        self.slots[index].doomed = true;
        self.input(Input::Closed(id));
        self.part(index);
    }

    /// A producer goes, and the server does not notice: what was sent still arrives.
    fn leave(&mut self, index: usize) {
        self.note(|| format!("leave {index}"));
        self.part(index);
        self.slots[index].client = Some(Client::Ghost);
        // It tends to come again before the server has seen all that it sent.
        if self.rng.chance(70)
            && let Some(client) = self.waiting.pop()
        {
            self.connect(client);
        }
    }

    /// Whoever would stay for ever is cut.
    pub fn cut_endless(&mut self) {
        self.waiting.retain(|client| !matches!(client, Client::Listener(_)));
        for index in self.busy() {
            if matches!(self.slots[index].client, Some(Client::Ghost | Client::Listener(_))) {
                self.cut(index);
            }
        }
    }

    /// A client says that it sends nothing more, whether it has sent everything or not.
    pub fn half_close(&mut self, index: usize) {
        if !std::mem::replace(&mut self.slots[index].half_closed, true) {
            self.note(|| format!("half close {index}"));
            let id = self.slots[index].id;
            self.input(Input::HalfClosed(id));
        }
    }

    /// A blocked connection takes bytes again.
    pub fn unblock(&mut self, index: usize) {
        if std::mem::replace(&mut self.slots[index].blocked, false) {
            let id = self.slots[index].id;
            self.input(Input::Writable(id));
        }
    }

    /// Some snapshot job is done.
    pub fn work(&mut self) {
        if self.jobs.is_empty() {
            return;
        }
        let job = self.jobs.swap_remove(self.rng.below(self.jobs.len()));
        let fails = !self.calm && self.rng.chance(self.swarm.job_fails);
        self.note(|| format!("job {:?} fails {fails}", job.ticket));
        let snapshot = if fails { None } else { Some(job.encode()) };
        self.input(Input::Serialized(job.ticket, snapshot));
    }

    /// The store does its next job.
    pub fn store_step(&mut self) {
        for answer in self.store.step(self.now.mono_ms, &mut self.rng, &self.swarm) {
            self.note(|| format!("store {answer:?}"));
            self.input(Input::Stored(answer));
        }
    }

    /// Time passes; the wall clock goes where it likes.
    pub fn pass_time(&mut self, most_ms: usize) {
        self.now.mono_ms += self.rng.below(most_ms) as u64;
        self.now.wall_ms = 1_700_000_000_000 + self.rng.below(1 << 40) as u64;
        if self.engine.deadline().is_some_and(|due| due <= self.now.mono_ms) {
            self.note(|| "tick".to_owned());
            self.input(Input::Tick);
        }
    }

    /// Time passes, and nothing else happens.
    pub fn clock(&mut self, ms: u64) {
        self.now.mono_ms += ms;
    }

    pub fn shut_down(&mut self) {
        self.note(|| "shutdown".to_owned());
        self.input(Input::Shutdown);
    }

    /// Bytes that the engine holds for its runs.
    pub fn memory_bytes(&self) -> u64 {
        self.engine.memory_bytes()
    }

    pub fn is_finished(&self) -> bool {
        self.engine.is_finished()
    }

    /// Whether nothing is under way: no job, no commit, no bytes, and no agent that could go on.
    pub fn is_idle(&self) -> bool {
        let sent = self.slots.iter().all(|slot| slot.client.is_none() || slot.inbound.is_empty());
        let agents_wait =
            self.agents.iter().all(Agent::waits) && self.locals.iter().all(LocalProducer::waits);
        self.jobs.is_empty() && self.store.is_idle() && agents_wait && sent
    }

    pub fn is_open(&self, index: usize) -> bool {
        self.slots[index].client.is_some()
    }

    /// One input, and all that follows from it.
    pub fn input(&mut self, input: Input<'_>) {
        self.checker.now_ms = self.now.mono_ms;
        self.engine.handle(self.now, input);
        self.drain();
        let all_written = self.write();
        self.drain();
        for index in 0..self.slots.len() {
            self.look(index);
        }
        if all_written {
            self.check_promptness();
            let store = &self.store;
            self.checker.settle(
                |run| RunId::parse(run).is_some_and(|run| store.committed.contains(&run)),
                |run| RunId::parse(run).is_some_and(|run| store.opened.contains(&run)),
            );
        }
    }

    /// Who asked for a chat's run and can be written to is attached to it; and with no snapshot under way, has all
    /// that there is.
    fn check_promptness(&mut self) {
        let free =
            |slot: &&mut Slot| !slot.blocked && !slot.doomed && !slot.half_closed && slot.inbound.is_empty();
        for slot in self.slots.iter_mut().filter(free) {
            let Some(Client::Observer(observer)) = &slot.client else { continue };
            let attached = slot.reader.current().is_some();
            let missed = !attached && !observer.asked && self.checker.goes_on(&observer.chat);
            self.checker.require(!missed, || format!("{observer:?} waits though its chat has a run"));
            if self.jobs.is_empty()
                && let Some((run, seq, ended)) = observer.position()
            {
                self.checker.is_current(run, seq, ended);
            }
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Serialize(job) if self.transcripts.is_some() => {
                    self.engine.handle(self.now, Input::Serialized(job.ticket, Some(job.encode())));
                }
                Output::Serialize(job) => self.jobs.push(job),
                Output::Store(job) => self.store.submit(job),
                Output::Withdraw(run) => self.store.withdraw(run),
                Output::Close(id, how) => {
                    self.note(|| format!("server closes {} {how:?}", id.slot));
                    let slot = &mut self.slots[id.slot as usize];
                    if how == Close::Linger {
                        slot.reader.end();
                    }
                    slot.doomed = true;
                }
                Output::StartTurn(order) => {
                    let opened = self.store.opened.contains(&order.run);
                    self.checker.require(opened, || "an agent starts before its message is saved".to_owned());
                    let agent = Agent::new(&order, &mut self.rng, &self.swarm);
                    self.agents.push(agent);
                    let most = self.swarm.turns_max;
                    self.checker.require(self.agents.len() <= most, || format!("more than {most} turns run"));
                }
                Output::Local(id, reply) => self.told(id, &reply),
                Output::Resume(_) => {}
            }
        }
    }

    /// Writes what is ready, or a part of it; returns whether that was all.
    fn write(&mut self) -> bool {
        let mut writes = 0;
        while let Some(id) = self.next_dirty() {
            self.write_one(id);
            self.drain();
            writes += 1;
            if writes > WRITES_PER_STEP {
                self.checker.fail(format!("connection {} is written to for ever", id.slot));
                return true;
            }
            if !self.calm && self.swarm.block > 0 && self.rng.chance(3) {
                return false;
            }
        }
        true
    }

    fn next_dirty(&mut self) -> Option<ConnId> {
        self.engine.next_dirty().or_else(|| {
            // What it wants done by now may give somebody something to write.
            self.drain();
            self.engine.next_dirty()
        })
    }

    fn write_one(&mut self, id: ConnId) {
        let index = id.slot as usize;
        let mut slices = [IoSlice::new(&[]); SLICES_PER_WRITE];
        let filled = self.engine.outgoing(id, &mut slices);
        let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
        let fault = !self.calm && index >= self.reserved && self.transcripts.is_none();
        let mut taken = bytes.len();
        if fault && taken > 0 && self.rng.chance(self.swarm.short_write) {
            taken = 1 + self.rng.below(taken);
        }
        let mut blocked = taken < bytes.len();
        if fault && self.rng.chance(self.swarm.block) {
            taken = if self.rng.chance(50) { 0 } else { taken };
            blocked = true;
        }
        let slot = &mut self.slots[index];
        slot.blocked = blocked;
        for byte in &bytes[..taken] {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if let Some(transcripts) = &mut self.transcripts {
            transcripts.entry((id.slot, id.generation)).or_default().extend_from_slice(&bytes[..taken]);
        }
        if let Err(what) = slot.reader.feed(&bytes[..taken]) {
            self.checker.fail(format!("connection {index}: {what}"));
        }
        self.engine.sent(self.now, id, taken, blocked);
    }

    /// A client looks at what it got, and goes on.
    fn look(&mut self, index: usize) {
        loop {
            let slot = &mut self.slots[index];
            let Some(client) = &mut slot.client else { return };
            match client.look(&mut slot.reader, &mut self.rng, &mut self.checker) {
                Next::Wait => break,
                Next::Send(bytes) => {
                    if slot.half_closed || slot.doomed {
                        break;
                    }
                    slot.inbound.extend(bytes);
                }
                Next::Close => {
                    slot.doomed = true;
                    break;
                }
            }
        }
        if self.slots[index].doomed {
            let id = self.slots[index].id;
            self.engine.handle(self.now, Input::Closed(id));
            self.drain();
            self.part(index);
        }
    }

    /// A client and its connection part; whoever has more to do waits for another.
    fn part(&mut self, index: usize) {
        let client = self.slots[index].client.take();
        if index < self.reserved {
            return;
        }
        match client {
            Some(Client::Producer(producer)) if producer.is_done() => self.past.push(producer),
            Some(Client::Observer(observer)) if observer.done => {}
            Some(client @ (Client::Producer(_) | Client::Observer(_))) => self.waiting.push(client),
            Some(
                Client::Tap
                | Client::Ghost
                | Client::Listener(_)
                | Client::Once(_)
                | Client::Sender(_)
                | Client::Garbage(_),
            )
            | None => {}
        }
    }
}
