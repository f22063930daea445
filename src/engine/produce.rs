//! Producing: runs are started, and bodies of events are appended to them as their bytes come in.

use crate::engine::conn::{Role, Wait};
use crate::engine::routes::{Refusal, unknown_run};
use crate::engine::timers::Timer;
use crate::engine::{Engine, LocalReply, Output};
use crate::limits;
use crate::proto::event::Kind;
use crate::proto::history::{Job, Trigger};
use crate::proto::id::{ChatId, ConnId, LocalId, RunId};
use crate::proto::parts::Ending;
use crate::proto::registry::{Known, RunKey};
use crate::proto::run::{Cause, End, Run, State};
use crate::wire::body::{BodyFault, EventReader, Format};
use crate::wire::event::{self, PUNCTUATION};
use crate::wire::frame::{EventFrame, Flavour};
use crate::wire::reply;
use crate::wire::request::{self, Start};

/// Who writes a run that is not over.
#[derive(Debug)]
pub(super) struct Producer {
    /// The body whose events are appended.
    body: Option<ConnId>,
    /// The stream on which the producer is told things.
    control: Option<ConnId>,
    /// The producer in this process, if it is one.
    pub(super) local: Option<LocalId>,
    /// A body broke off then, and no other came yet.
    broken_ms: Option<u64>,
    /// When there was last a body or a control stream.
    quiet_ms: u64,
    /// When its timer is set.
    armed_ms: u64,
}

/// A body of events being read.
pub(super) struct PushBody {
    pub(super) run: RunId,
    reader: EventReader,
    /// Number of the body's next event, if the producer counts them.
    number: Option<u64>,
    /// Whether the run ends with this body.
    stream: bool,
}

/// A request to start a run.
#[derive(Debug)]
pub(super) struct Starter {
    pub(super) who: Who,
    pub(super) chat: ChatId,
    pub(super) start: Start,
}

/// Who wants to start a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Who {
    /// A push producer that will send its events later.
    Push(ConnId),
    /// A push producer whose events follow in the same request.
    Stream(ConnId, Format),
    /// A producer in this process.
    Local(LocalId),
}

/// Why a body is read no further.
enum Fault {
    Body(BodyFault),
    Event(u64, event::EventFault),
    RunTooLarge(u64),
}

impl Fault {
    fn status(&self) -> (u16, &'static str) {
        match self {
            Fault::Body(BodyFault::TooLarge { .. }) => (413, "event_too_large"),
            Fault::RunTooLarge(_) => (413, "run_too_large"),
            Fault::Body(_) | Fault::Event(..) => (400, "bad_event"),
        }
    }

    fn line(&self) -> u64 {
        match self {
            Fault::Body(fault) => fault.line(),
            Fault::Event(line, _) | Fault::RunTooLarge(line) => *line,
        }
    }

    fn message(&self, run_bytes_max: u64) -> String {
        match self {
            Fault::Body(fault) => fault.message(),
            Fault::Event(line, fault) => {
                format!("line {line}: {}; the events before it were taken", fault.message())
            }
            Fault::RunTooLarge(line) => {
                format!(
                    "line {line}: the run would hold more than {run_bytes_max} bytes of events (--run-bytes-max)"
                )
            }
        }
    }
}

impl Engine {
    pub(super) fn start_requested(&mut self, id: ConnId, chat: ChatId, body: &[u8]) -> Result<(), Refusal> {
        let start = request::start(body)?;
        self.start(Starter { who: Who::Push(id), chat, start });
        Ok(())
    }

    pub(super) fn begin_stream(&mut self, id: ConnId, chat: ChatId, start: Start, format: Format) {
        self.start(Starter { who: Who::Stream(id, format), chat, start });
    }

    /// Starts a run, now or when the chat's finalization is over.
    pub(super) fn start(&mut self, starter: Starter) {
        self.evict();
        if self.stopping {
            let refusal =
                Refusal::new(503, "shutting_down", "the server is being shut down; try again later");
            return self.start_refused(starter.who, &refusal);
        }
        if self.runs_bytes >= self.config.limits.memory_bytes_max {
            let message =
                "the server's memory for runs is used up (--memory-max); try again when runs have ended";
            return self.start_refused(starter.who, &Refusal::new(503, "out_of_memory", message));
        }
        let supersede = starter.start.supersede && starter.start.trigger != Trigger::Heartbeat;
        match self.registry.of_chat(&starter.chat) {
            None => self.register(starter),
            Some(old) => match self.registry.run(old).state {
                State::Over(_) => self.register(starter),
                State::Registered | State::Active | State::Finalizing if supersede => {
                    self.replace(old);
                    self.register(starter);
                }
                State::Registered | State::Active => {
                    let message =
                        "a run of this chat is still active; wait for its end, or start with supersede";
                    self.start_refused(starter.who, &Refusal::new(409, "already_streaming", message));
                }
                State::Finalizing => self.wait_for_outcome(starter),
            },
        }
    }

    fn wait_for_outcome(&mut self, starter: Starter) {
        match starter.who {
            Who::Push(id) | Who::Stream(id, _) => {
                if let Some(conn) = self.conn_mut(id) {
                    conn.role = Role::Waiting(Wait::Start(starter.chat.clone()));
                }
            }
            Who::Local(_) => {}
        }
        self.starters.entry(starter.chat.clone()).or_default().push_back(starter);
    }

    /// A chat's finalization is over: who waited for it starts now, in order.
    pub(super) fn start_waiting(&mut self, chat: &ChatId) {
        for starter in self.starters.remove(chat).unwrap_or_default() {
            self.start(starter);
        }
    }

    pub(super) fn forget_starter(&mut self, id: ConnId, chat: &ChatId) {
        let Some(waiting) = self.starters.get_mut(chat) else { return };
        waiting.retain(|starter| match starter.who {
            Who::Push(other) | Who::Stream(other, _) => other != id,
            Who::Local(_) => true,
        });
        if waiting.is_empty() {
            self.starters.remove(chat);
        }
    }

    pub(super) fn start_refused(&mut self, who: Who, refusal: &Refusal) {
        match who {
            Who::Push(id) => self.refuse(id, refusal),
            Who::Stream(id, _) => self.refuse_and_close(id, refusal),
            Who::Local(id) => {
                let message = refusal.message.clone();
                self.output(Output::Local(id, LocalReply::Refused { code: refusal.code, message }));
            }
        }
    }

    /// Registers a run and lets its producer know; who waited for a run of the chat follows it from here on.
    fn register(&mut self, starter: Starter) {
        let Starter { who, chat, start } = starter;
        let id = self.run_id();
        let window = self.config.limits.window_events;
        let run = Run::new(id, chat.clone(), start.trigger, self.now, window, &PUNCTUATION);
        if let Some(old) = self.registry.of_chat(&chat) {
            self.registry.forget(old);
            self.release(old);
        }
        let key = self.registry.register(run);
        self.runs_bytes += self.registry.run(key).memory_bytes();
        let local = match who {
            Who::Local(local) => Some(local),
            Who::Push(_) | Who::Stream(..) => None,
        };
        let producer = Producer {
            body: None,
            control: None,
            local,
            broken_ms: None,
            quiet_ms: self.now.mono_ms,
            armed_ms: u64::MAX,
        };
        self.producers.insert(id, producer);
        self.output(Output::Store(Job::Begin { run: id, chat: chat.clone() }));
        self.publish_started(key);
        self.attach_waiters(&chat, key);
        match who {
            Who::Push(conn) => self.answer(conn, 201, &reply::started(id)),
            Who::Stream(conn, format) => {
                let body = PushBody { run: id, reader: self.reader(format), number: None, stream: true };
                self.take_body(conn, body);
            }
            Who::Local(local) => {
                self.locals.insert(local, id);
                self.output(Output::Local(local, LocalReply::Started(id)));
            }
        }
        self.arm_run(id);
    }

    fn reader(&self, format: Format) -> EventReader {
        EventReader::new(format, self.config.limits.event_bytes_max)
    }

    /// A body of events begins.
    pub(super) fn begin_append(&mut self, id: ConnId, run: RunId, from_seq: Option<u64>, format: Format) {
        let open = match self.open_run(run) {
            Ok(key) => key,
            Err((status, body)) => return self.answer_and_close(id, status, &body),
        };
        let next = self.registry.run(open).produced + 1;
        if from_seq.is_some_and(|from| from > next) {
            let message = format!("events are missing before from_seq; send from {next} on");
            let body = reply::producer_error("gap", &message, None, Some(next), None);
            return self.answer_and_close(id, 409, &body);
        }
        self.take_over(run, next);
        let body = PushBody { run, reader: self.reader(format), number: from_seq, stream: false };
        self.take_body(id, body);
    }

    /// The run, if it takes events from a push producer; else what to answer.
    fn open_run(&mut self, run: RunId) -> Result<RunKey, (u16, Vec<u8>)> {
        self.evict();
        match self.registry.known(run) {
            None => {
                let refusal = unknown_run();
                Err((refusal.status, reply::error(refusal.code, &refusal.message)))
            }
            Some(Known::Gone(stone)) => Err((409, run_over(stone.state))),
            Some(Known::Run(key)) => {
                let state = self.registry.run(key).state;
                if !state.is_open() {
                    return Err((409, run_over(state)));
                }
                if self.producers.get(&run).is_some_and(|producer| producer.local.is_some()) {
                    let message = "this run is written by a producer inside the server";
                    return Err((409, reply::error("other_producer", message)));
                }
                Ok(key)
            }
        }
    }

    /// A new body takes the place of the one being read, of which no later byte counts.
    fn take_over(&mut self, run: RunId, next: u64) {
        let older = self.producers.get_mut(&run).and_then(|producer| producer.body.take());
        if let Some(older) = older {
            let message = "another body of this run took over";
            let body = reply::producer_error("taken_over", message, None, Some(next), None);
            self.answer_and_close(older, 409, &body);
        }
    }

    fn take_body(&mut self, id: ConnId, body: PushBody) {
        if let Some(producer) = self.producers.get_mut(&body.run) {
            producer.body = Some(id);
            producer.broken_ms = None;
        }
        let Some(conn) = self.conn_mut(id) else { return };
        conn.role = Role::Push(Box::new(body));
        self.take_pending(id);
    }

    /// Bytes of a body: each event is appended as soon as its last byte is here.
    pub(super) fn push_bytes(&mut self, id: ConnId, mut bytes: &[u8]) {
        let Some(conn) = self.conn_mut(id) else { return };
        let role = std::mem::replace(&mut conn.role, Role::Answered);
        let Role::Push(mut body) = role else { return conn.role = role };
        let Some(key) = self.registry.of_id(body.run) else { return };
        let mut line = std::mem::take(&mut self.line);
        let mut fault = None;
        while let Some(item) = body.reader.next(&mut bytes) {
            match item {
                Ok(item) => {
                    fault = self.take_event(key, item.bytes, item.line, &mut body.number, &mut line).err()
                }
                Err(body) => fault = Some(Fault::Body(body)),
            }
            if fault.is_some() {
                break;
            }
        }
        self.line = line;
        match fault {
            Some(fault) => self.push_fault(id, &body, &fault),
            None => {
                if let Some(conn) = self.conn_mut(id) {
                    conn.role = Role::Push(body);
                }
            }
        }
    }

    /// The body is complete.
    pub(super) fn push_end(&mut self, id: ConnId, mut body: PushBody) {
        let Some(key) = self.registry.of_id(body.run) else { return };
        let mut line = std::mem::take(&mut self.line);
        let fault = match body.reader.finish() {
            None => None,
            Some(Ok(item)) => self.take_event(key, item.bytes, item.line, &mut body.number, &mut line).err(),
            Some(Err(fault)) => Some(Fault::Body(fault)),
        };
        self.line = line;
        if let Some(fault) = fault {
            return self.push_fault(id, &body, &fault);
        }
        self.body_done(body.run);
        if body.stream {
            self.end_producer(key, Ending::ByItself, "agent_error", UNFINISHED);
            return self.await_outcome(id, body.run);
        }
        let run = self.registry.run(key);
        let answer = reply::appended(run.head(), run.produced);
        self.answer(id, 200, &answer);
    }

    /// One event of a body; those that the run already has are skipped.
    fn take_event(
        &mut self,
        key: RunKey,
        bytes: &[u8],
        line: u64,
        number: &mut Option<u64>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        if let Some(number) = number {
            *number += 1;
            if *number <= self.registry.run(key).produced + 1 {
                return Ok(());
            }
        }
        let event = event::read(bytes, scratch).map_err(|fault| Fault::Event(line, fault))?;
        let run = self.registry.run_mut(key);
        if run.event_bytes + event.line.len() as u64 > self.config.limits.run_bytes_max {
            return Err(Fault::RunTooLarge(line));
        }
        run.produced += 1;
        self.append(key, event.line, &event.kind);
        Ok(())
    }

    /// Appends an event to a run: its frame is written once, its text is compacted, its observers are told.
    pub(super) fn append(&mut self, key: RunKey, line: &[u8], kind: &Kind<'_>) {
        let run = self.registry.run_mut(key);
        let before = run.memory_bytes();
        let frame = EventFrame::new(run.id, run.head().next(), line);
        run.log.append(&mut self.pool, frame.bytes, frame.event_offset, |out| frame.write(out));
        run.note(line, kind);
        self.runs_bytes = self.runs_bytes - before + run.memory_bytes();
        self.changed(key);
        if self.bus.wants_chunks() {
            self.publish_chunk(key, line);
        }
    }

    /// A line of a body is no event: what came before it stays, and the producer learns where it stands.
    fn push_fault(&mut self, id: ConnId, body: &PushBody, fault: &Fault) {
        let Some(key) = self.registry.of_id(body.run) else { return };
        self.body_done(body.run);
        let (status, code) = fault.status();
        let message = fault.message(self.config.limits.run_bytes_max);
        let next = self.registry.run(key).produced + 1;
        let answer = reply::producer_error(code, &message, Some(fault.line()), Some(next), None);
        self.answer_and_close(id, status, &answer);
        let too_large = matches!(fault, Fault::RunTooLarge(_));
        if body.stream || too_large {
            let code = if status == 413 { "too_large" } else { "agent_error" };
            self.end_producer(key, Ending::Broken, code, &message);
        }
    }

    /// The connection of a body is gone, or what came was no HTTP.
    pub(super) fn push_broken(&mut self, id: ConnId, body: &PushBody) {
        let now_ms = self.now.mono_ms;
        let Some(producer) = self.producers.get_mut(&body.run) else { return };
        if producer.body != Some(id) {
            return;
        }
        producer.body = None;
        producer.broken_ms = Some(now_ms);
        producer.quiet_ms = now_ms;
        if body.stream
            && let Some(key) = self.registry.of_id(body.run)
        {
            return self.end_producer(key, Ending::Broken, "producer_lost", LOST);
        }
        self.arm_run(body.run);
    }

    fn body_done(&mut self, run: RunId) {
        let now_ms = self.now.mono_ms;
        if let Some(producer) = self.producers.get_mut(&run) {
            producer.body = None;
            producer.quiet_ms = now_ms;
        }
        self.arm_run(run);
    }

    pub(super) fn run_state(&mut self, id: ConnId, run: RunId) -> Result<(), Refusal> {
        self.evict();
        let body = match self.registry.known(run).ok_or_else(unknown_run)? {
            Known::Gone(stone) => reply::run_state(run, &stone.chat, stone.state, stone.seq, stone.produced),
            Known::Run(key) => {
                let known = self.registry.run(key);
                reply::run_state(run, &known.chat, known.state, known.head(), known.produced)
            }
        };
        self.answer(id, 200, &body);
        Ok(())
    }

    pub(super) fn control(&mut self, id: ConnId, run: RunId) -> Result<(), Refusal> {
        match self.open_run(run) {
            Err((404, _)) => return Err(unknown_run()),
            Err((status, body)) => self.answer(id, status, &body),
            Ok(_) => {
                let older = self.producers.get_mut(&run).and_then(|producer| producer.control.replace(id));
                if let Some(older) = older {
                    self.end_stream(older);
                }
                self.begin_stream_answer(id, Flavour::Post);
                if let Some(conn) = self.conn_mut(id) {
                    conn.role = Role::Control(run);
                }
                self.arm(id);
            }
        }
        Ok(())
    }

    pub(super) fn control_left(&mut self, id: ConnId, run: RunId) {
        let now_ms = self.now.mono_ms;
        let Some(producer) = self.producers.get_mut(&run) else { return };
        if producer.control == Some(id) {
            producer.control = None;
            producer.quiet_ms = now_ms;
            self.arm_run(run);
        }
    }

    pub(super) fn finish_requested(&mut self, id: ConnId, run: RunId, body: &[u8]) -> Result<(), Refusal> {
        let error = request::finish(body)?;
        self.evict();
        match self.registry.known(run).ok_or_else(unknown_run)? {
            Known::Gone(stone) => {
                let (state, seq) = (stone.state, stone.seq);
                self.answer_over(id, run, state, seq);
            }
            Known::Run(key) => match self.registry.run(key).state {
                State::Registered | State::Active => {
                    self.finish(key, error.as_deref());
                    self.await_outcome(id, run);
                }
                State::Finalizing => self.await_outcome(id, run),
                state @ State::Over(_) => {
                    let seq = self.registry.run(key).head();
                    self.answer_over(id, run, state, seq);
                }
            },
        }
        Ok(())
    }

    /// The producer says that it is done.
    pub(super) fn finish(&mut self, key: RunKey, error: Option<&str>) {
        match error {
            None => self.end_producer(key, Ending::ByItself, "agent_error", UNFINISHED),
            Some(message) => self.end_producer(key, Ending::Broken, "agent_error", message),
        }
    }

    /// A producer that did not hear the answer to its finish asks again.
    fn answer_over(&mut self, id: ConnId, run: RunId, state: State, seq: crate::proto::id::Seq) {
        match state {
            State::Over(End { persisted, cause: Cause::Finalized | Cause::Shutdown }) => {
                self.answer(id, 200, &reply::finished(run, seq, persisted));
            }
            State::Over(_) | State::Registered | State::Active | State::Finalizing => {
                self.answer(id, 409, &run_over(state));
            }
        }
    }

    /// The run takes no more events: its producer is told, and why.
    pub(super) fn dismiss_producer(&mut self, run: RunId, state: State, cancel: Option<&str>) {
        let Some(producer) = self.producers.remove(&run) else { return };
        self.timers.unset(producer.armed_ms, Timer::Run(run));
        if let Some(body) = producer.body {
            self.answer_and_close(body, 409, &run_over(state));
        }
        if let Some(control) = producer.control {
            if let Some(reason) = cancel
                && let Some(conn) = self.conn_mut(control)
            {
                let message = reply::control_cancel(reason);
                crate::wire::frame::message(&[&message], conn.chunked, conn.out.tail());
            }
            self.end_stream(control);
        }
        if let Some(local) = producer.local
            && cancel.is_some()
        {
            self.locals.remove(&local);
            self.output(Output::Local(local, LocalReply::Cancelled(state)));
        }
    }

    /// Sets the run's timer for the next deadline of its producer.
    pub(super) fn arm_run(&mut self, run: RunId) {
        let Some(producer) = self.producers.get_mut(&run) else { return };
        if let Some(due) = producer.due()
            && due < producer.armed_ms
        {
            let before = std::mem::replace(&mut producer.armed_ms, due);
            self.timers.unset(before, Timer::Run(run));
            self.timers.set(due, Timer::Run(run));
        }
    }

    /// A deadline of a run may have come.
    pub(super) fn run_due(&mut self, run: RunId) {
        self.commit_due(run);
        let now_ms = self.now.mono_ms;
        let Some(key) = self.registry.of_id(run) else { return };
        let Some(producer) = self.producers.get_mut(&run) else { return };
        producer.armed_ms = u64::MAX;
        match producer.due() {
            Some(due) if due <= now_ms => match producer.broken_ms {
                Some(_) => self.end_producer(key, Ending::Broken, "producer_lost", LOST),
                None => self.end_producer(key, Ending::Broken, "timeout", SILENT),
            },
            Some(_) => self.arm_run(run),
            None => {}
        }
    }

    /// Every producer of an open run has to stop.
    pub(super) fn close_all_runs(&mut self) {
        let open: Vec<RunKey> =
            self.registry.retained().filter(|(_, run)| run.state.is_open()).map(|(key, _)| key).collect();
        for key in open {
            self.end_producer(key, Ending::Broken, "shutdown", "the server was shut down");
        }
    }

    /// A server that is to stop: nobody waits for a run any more.
    pub(super) fn refuse_all_waiting(&mut self) {
        let waiting: Vec<ConnId> = self.waiters.values().flatten().copied().collect();
        for id in waiting {
            self.stop_waiting(id);
        }
        for starter in std::mem::take(&mut self.starters).into_values().flatten() {
            self.start(starter);
        }
    }

    /// A producer vanished in a way that ends its run at once.
    pub(super) fn lose(&mut self, key: RunKey) {
        self.end_producer(key, Ending::Broken, "producer_lost", LOST);
    }
}

impl Producer {
    /// When it has to show itself.
    fn due(&self) -> Option<u64> {
        if let Some(broken) = self.broken_ms {
            return Some(broken + limits::GRACE_MS);
        }
        let quiet = self.body.is_none() && self.control.is_none() && self.local.is_none();
        quiet.then_some(self.quiet_ms + limits::PRODUCER_IDLE_MS)
    }
}

const LOST: &str = "the connection to the agent was lost";
const SILENT: &str = "the agent was silent for too long";
const UNFINISHED: &str = "the agent ended without finishing its run";

fn run_over(state: State) -> Vec<u8> {
    let message = format!("the run is {}; it takes no more events", state.name());
    reply::producer_error("run_over", &message, None, None, Some(state))
}
