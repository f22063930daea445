//! The engine alone, with this test as its sockets, its store and its clock: what would take a stuck disk or ten
//! seconds is one line here.

use std::io::IoSlice;

use rejoin::engine::{Config, Engine, Input, Output};
use rejoin::limits::SLICES_PER_WRITE;
use rejoin::proto::history::{Answer, Job, Outcome};
use rejoin::proto::id::{ConnId, Now, RunId};

pub(crate) struct Stage {
    pub(crate) engine: Engine,
    now: Now,
    opened: u32,
    closed: Vec<ConnId>,
    /// What the store was given and has not answered.
    pub(crate) jobs: Vec<Job>,
}

impl Stage {
    pub(crate) fn new(config: Config) -> Stage {
        let now = Now { mono_ms: 1_000, wall_ms: 1_700_000_000_000 };
        Stage { engine: Engine::new(config, [7; 32]), now, opened: 0, closed: Vec::new(), jobs: Vec::new() }
    }

    pub(crate) fn open(&mut self) -> ConnId {
        let id = ConnId { slot: self.opened, generation: 1 };
        self.opened += 1;
        self.handle(Input::Opened(id));
        id
    }

    /// Hands an input over and takes what the engine wants done.
    pub(crate) fn handle(&mut self, input: Input<'_>) {
        self.engine.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Store(Job::Begin { .. }) => {}
                Output::Close(id, _) => self.closed.push(id),
                Output::Store(job) => self.jobs.push(job),
                Output::Serialize(job) => {
                    let snapshot = job.encode();
                    self.handle(Input::Serialized(job.ticket, Some(snapshot)));
                }
                _ => {}
            }
        }
    }

    /// Whether the engine wants this connection closed.
    pub(crate) fn is_closed(&self, id: ConnId) -> bool {
        self.closed.contains(&id)
    }

    /// The machine sleeps: only the time of day goes on.
    pub(crate) fn sleep(&mut self, ms: u64) {
        self.now.wall_ms += ms;
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.now.mono_ms += ms;
        self.now.wall_ms += ms;
        self.handle(Input::Tick);
    }

    /// Sends bytes on a connection and takes what is written to it.
    pub(crate) fn say(&mut self, id: ConnId, bytes: &[u8]) -> String {
        self.handle(Input::Received(id, bytes));
        self.written(id)
    }

    /// Everything that is written to a connection now; what is for others is dropped.
    pub(crate) fn written(&mut self, id: ConnId) -> String {
        let mut written = Vec::new();
        while let Some(dirty) = self.engine.next_dirty() {
            let mut slices = [IoSlice::new(&[]); SLICES_PER_WRITE];
            let filled = self.engine.outgoing(dirty, &mut slices);
            let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
            self.engine.sent(self.now, dirty, bytes.len(), false);
            if dirty == id {
                written.extend(bytes);
            }
        }
        self.drain();
        String::from_utf8(written).unwrap()
    }

    /// One request on a connection of its own, which stays open.
    pub(crate) fn ask(&mut self, line: &str, body: &str) -> String {
        let id = self.open();
        self.say(id, &crate::server::request(line, "application/json", body))
    }

    /// Starts a run and finishes it: its commit is with the store.
    pub(crate) fn run_to_commit(&mut self, chat: &str) -> RunId {
        let started = self.ask(&format!("POST /chats/{chat}/runs"), "{}");
        let at = started.find("\"run_id\":\"").unwrap() + 10;
        let run = RunId::parse(&started[at..at + 22]).unwrap();
        self.ask(&format!("POST /runs/{run}/finish"), "");
        assert!(matches!(self.jobs.last(), Some(Job::Commit(turn)) if turn.run == run));
        run
    }

    pub(crate) fn answer(&mut self, run: RunId, outcome: Outcome) {
        self.jobs.pop().unwrap();
        self.handle(Input::Stored(Answer::Finalized { run, outcome }));
    }

    /// One value of `GET /metrics`.
    pub(crate) fn metric(&mut self, name: &str) -> f64 {
        let answer = self.ask("GET /metrics", "");
        let line = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {answer}")).parse().unwrap()
    }
}
