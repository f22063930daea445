//! Producing: bodies of events are appended to runs as their bytes come in.

use crate::engine::Engine;
use crate::engine::conn::Role;
use crate::proto::event::Kind;
use crate::proto::id::{ConnId, RunId, Seq};
use crate::proto::parts::Ending;
use crate::proto::pool::BlockPool;
use crate::proto::registry::RunKey;
use crate::proto::run::Run;
use crate::wire::body::{BodyFault, EventReader, Format, Item};
use crate::wire::event::pattern::{Fit, Patterns};
use crate::wire::event::{self, EventFault};
use crate::wire::frame::FrameHead;
use crate::wire::reply;
use crate::wire::snapshot::Snapshot;

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

/// What the reading of a producer's events goes on from, lent by the producer for a stretch of them.
#[derive(Debug)]
pub(super) struct Reading {
    /// Takes an event's line if that differs from its bytes.
    line: Vec<u8>,
    /// What the producer's deltas look like around their texts.
    patterns: Patterns,
    head: FrameHead,
    /// Where the run stood before this stretch.
    seq_before: Seq,
    /// Memory that it held then.
    memory_before: u64,
}

impl Reading {
    fn new(run: RunId) -> Reading {
        let (line, patterns) = (Vec::new(), Patterns::default());
        Reading { line, patterns, head: FrameHead::new(run), seq_before: Seq::ZERO, memory_before: 0 }
    }

    /// Appends the delta that `input` begins with: its frame is written once, its text is compacted.
    #[inline]
    fn append_fit(&mut self, run: &mut Run<Snapshot>, pool: &mut BlockPool, input: &[u8], fit: Fit) {
        let line = input.get(..fit.end).unwrap_or_default();
        let text = input.get(fit.text_start..fit.text_end).unwrap_or_default();
        frame(run, pool, &mut self.head, line);
        let entry = self.patterns.entry(fit);
        if entry.is_none_or(|entry| !run.join(entry, line, text, pool)) {
            self.append_first(run, pool, input, fit);
        }
    }

    /// The first delta of its pattern in a stretch may have to begin an entry; the next ones will know it.
    #[cold]
    fn append_first(&mut self, run: &mut Run<Snapshot>, pool: &mut BlockPool, input: &[u8], fit: Fit) {
        let event = self.patterns.event(input, fit);
        run.note(event.line, &event.kind, pool);
        self.patterns.note_entry(fit, run.text.last_entry());
    }
}

#[inline]
fn frame(run: &mut Run<Snapshot>, pool: &mut BlockPool, head: &mut FrameHead, line: &[u8]) {
    let bytes = head.turn_to(run.head().next(), line);
    run.log.append(pool, bytes, head.event_offset(), |out| head.write(line, out));
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
        let mut reading = self.begin_reading(key);
        let mut fault = None;
        loop {
            self.take_deltas(key, &mut bytes, &mut body, &mut reading);
            match body.reader.next(&mut bytes) {
                None => break,
                Some(Ok(item)) => fault = self.take_event(key, item, &mut body.number, &mut reading).err(),
                Some(Err(body)) => fault = Some(Fault::Body(body)),
            }
            if fault.is_some() {
                break;
            }
        }
        self.end_reading(key, reading);
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
        let mut reading = self.begin_reading(key);
        let fault = match body.reader.finish() {
            None => None,
            Some(Ok(item)) => self.take_event(key, item, &mut body.number, &mut reading).err(),
            Some(Err(fault)) => Some(Fault::Body(fault)),
        };
        self.end_reading(key, reading);
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

    /// Events of a run's producer come.
    pub(super) fn begin_reading(&mut self, key: RunKey) -> Box<Reading> {
        let run = self.registry.run(key);
        let kept = self.producers.get_mut(&run.id).and_then(|producer| producer.reading.take());
        let mut reading = kept.unwrap_or_else(|| Box::new(Reading::new(run.id)));
        reading.line = std::mem::take(&mut self.line);
        (reading.seq_before, reading.memory_before) = (run.head(), run.memory_bytes());
        reading
    }

    /// They were appended: once for all of them, memory is accounted for and observers are told.
    pub(super) fn end_reading(&mut self, key: RunKey, mut reading: Box<Reading>) {
        self.line = std::mem::take(&mut reading.line);
        let run = self.registry.run(key);
        self.runs_bytes = self.runs_bytes - reading.memory_before + run.memory_bytes();
        let has_news = run.head() != reading.seq_before;
        if let Some(producer) = self.producers.get_mut(&run.id) {
            producer.reading = Some(reading);
        }
        if has_news {
            self.changed(key);
        }
    }

    /// Appends the deltas that `input` begins with, as long as each is a line of its own that fits a pattern. That is
    /// most of what comes; whatever else it may be is left to [`Engine::take_event`].
    fn take_deltas(&mut self, key: RunKey, input: &mut &[u8], body: &mut PushBody, reading: &mut Reading) {
        let run = self.registry.run_mut(key);
        let is_new = body.number.is_none_or(|number| number > run.produced);
        if !is_new || self.bus.wants_chunks() || !body.reader.begins_line() {
            return;
        }
        let limits = &self.config.limits;
        let before = run.produced;
        while let Some(fit) = reading.patterns.fit(input) {
            let too_large =
                fit.end > limits.event_bytes_max || run.event_bytes + fit.end as u64 > limits.run_bytes_max;
            if input.get(fit.end) != Some(&b'\n') || too_large {
                break;
            }
            run.produced += 1;
            reading.append_fit(run, &mut self.pool, input, fit);
            *input = input.get(fit.end + 1..).unwrap_or_default();
        }
        let taken = run.produced - before;
        body.reader.pass_lines(taken);
        body.number = body.number.map(|number| number + taken);
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
        match self.append_read(key, item.bytes, reading) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Fault::RunTooLarge(item.line)),
            Err(fault) => Err(Fault::Event(item.line, fault)),
        }
    }

    /// Reads one event of the producer and appends it. Returns false, and appends nothing, if the run would hold too much.
    pub(super) fn append_read(
        &mut self,
        key: RunKey,
        bytes: &[u8],
        reading: &mut Reading,
    ) -> Result<bool, EventFault> {
        let run = self.registry.run_mut(key);
        let left = self.config.limits.run_bytes_max.saturating_sub(run.event_bytes);
        if let Some(fit) = reading.patterns.fit(bytes).filter(|fit| fit.end == bytes.len()) {
            if bytes.len() as u64 > left {
                return Ok(false);
            }
            run.produced += 1;
            reading.append_fit(run, &mut self.pool, bytes, fit);
            self.publish_appended(key, bytes);
            return Ok(true);
        }
        let event = event::read(bytes, &mut reading.line)?;
        if event.line.len() as u64 > left {
            return Ok(false);
        }
        reading.patterns.learn(&event);
        run.produced += 1;
        self.append(key, event.line, &event.kind, &mut reading.head);
        Ok(true)
    }

    /// Appends an event of the engine's own making.
    pub(super) fn append_own(&mut self, key: RunKey, line: &[u8]) {
        let mut reading = self.begin_reading(key);
        match event::read(line, &mut reading.line) {
            Ok(event) => self.append(key, event.line, &event.kind, &mut reading.head),
            Err(fault) => debug_assert!(false, "our own event is one: {fault:?}"),
        }
        self.end_reading(key, reading);
    }

    /// Appends an event to a run: its frame is written once, its text is compacted.
    fn append(&mut self, key: RunKey, line: &[u8], kind: &Kind<'_>, head: &mut FrameHead) {
        let run = self.registry.run_mut(key);
        frame(run, &mut self.pool, head, line);
        run.note(line, kind, &mut self.pool);
        self.publish_appended(key, line);
    }

    fn publish_appended(&mut self, key: RunKey, line: &[u8]) {
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
