//! Producing: bodies of events are appended to runs as their bytes come in.

use crate::engine::Engine;
use crate::engine::conn::Role;
use crate::proto::event::Kind;
use crate::proto::id::{ConnId, RunId};
use crate::proto::parts::Ending;
use crate::proto::registry::RunKey;
use crate::wire::body::{BodyFault, EventReader, Format, Item};
use crate::wire::event::pattern::Patterns;
use crate::wire::event::{self, Event, EventFault};
use crate::wire::frame::EventFrame;
use crate::wire::reply;

/// A body of events being read.
pub(super) struct PushBody {
    pub(super) run: RunId,
    reader: EventReader,
    /// Number of the body's next event, if the producer counts them.
    number: Option<u64>,
    /// Whether the run ends with this body.
    stream: bool,
}

impl PushBody {
    /// The body of a request that also started the run.
    pub(super) fn of_stream(run: RunId, reader: EventReader) -> PushBody {
        PushBody { run, reader, number: None, stream: true }
    }
}

/// Why a body is read no further.
enum Fault {
    Body(BodyFault),
    Event(u64, EventFault),
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

/// What the reading of a producer's events needs, lent by the engine and by the producer.
pub(super) struct Reading {
    /// Takes an event's line if that differs from its bytes.
    line: Vec<u8>,
    patterns: Patterns,
}

impl Reading {
    #[inline]
    pub(super) fn read<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Event<'a>, EventFault> {
        match self.patterns.fit(bytes) {
            Some(fit) => Ok(self.patterns.event(bytes, fit)),
            None => {
                let event = event::read(bytes, &mut self.line)?;
                self.patterns.learn(&event);
                Ok(event)
            }
        }
    }
}

impl Engine {
    pub(super) fn reader(&self, format: Format) -> EventReader {
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

    /// A new body takes the place of the one being read, of which no later byte counts.
    fn take_over(&mut self, run: RunId, next: u64) {
        let older = self.producers.get_mut(&run).and_then(|producer| producer.body.take());
        if let Some(older) = older {
            let message = "another body of this run took over";
            let body = reply::producer_error("taken_over", message, None, Some(next), None);
            self.answer_and_close(older, 409, &body);
        }
    }

    pub(super) fn take_body(&mut self, id: ConnId, body: PushBody) {
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
        let mut reading = self.begin_reading(body.run);
        let mut fault = None;
        while let Some(item) = body.reader.next(&mut bytes) {
            match item {
                Ok(item) => fault = self.take_event(key, item, &mut body.number, &mut reading).err(),
                Err(body) => fault = Some(Fault::Body(body)),
            }
            if fault.is_some() {
                break;
            }
        }
        self.end_reading(body.run, reading);
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
        let mut reading = self.begin_reading(body.run);
        let fault = match body.reader.finish() {
            None => None,
            Some(Ok(item)) => self.take_event(key, item, &mut body.number, &mut reading).err(),
            Some(Err(fault)) => Some(Fault::Body(fault)),
        };
        self.end_reading(body.run, reading);
        if let Some(fault) = fault {
            return self.push_fault(id, &body, &fault);
        }
        self.body_done(body.run);
        if body.stream {
            self.finish(key, None);
            return self.await_outcome(id, body.run);
        }
        let run = self.registry.run(key);
        let answer = reply::appended(run.head(), run.produced);
        self.answer(id, 200, &answer);
    }

    pub(super) fn begin_reading(&mut self, run: RunId) -> Reading {
        let patterns = self.producers.get_mut(&run).map(|producer| std::mem::take(&mut producer.patterns));
        Reading { line: std::mem::take(&mut self.line), patterns: patterns.unwrap_or_default() }
    }

    pub(super) fn end_reading(&mut self, run: RunId, reading: Reading) {
        self.line = reading.line;
        if let Some(producer) = self.producers.get_mut(&run) {
            producer.patterns = reading.patterns;
        }
    }

    /// One event of a body; those that the run already has are skipped.
    fn take_event(
        &mut self,
        key: RunKey,
        item: Item<'_>,
        number: &mut Option<u64>,
        reading: &mut Reading,
    ) -> Result<(), Fault> {
        if let Some(number) = number {
            *number += 1;
            if *number <= self.registry.run(key).produced + 1 {
                return Ok(());
            }
        }
        let event = reading.read(item.bytes).map_err(|fault| Fault::Event(item.line, fault))?;
        let run = self.registry.run_mut(key);
        if run.event_bytes + event.line.len() as u64 > self.config.limits.run_bytes_max {
            return Err(Fault::RunTooLarge(item.line));
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
        run.note(line, kind, &mut self.pool);
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
            return self.lose(key);
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
}
