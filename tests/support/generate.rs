//! Sequences of AG-UI events from a seed: what agents send, in every order and spelling that the client accepts, and,
//! if asked for, broken in the ways that agents break it. It keeps the client's rules of order, and may not know how
//! events are recovered.

#![allow(dead_code, reason = "every test includes this file and uses its own part of it")]

#[path = "faults.rs"]
mod faults;
#[path = "rng.rs"]
pub(crate) mod rng;
#[path = "samples.rs"]
mod samples;
#[path = "spelling.rs"]
pub(crate) mod spelling;
#[path = "streams.rs"]
mod streams;

use rng::Rng;
use spelling::Object;

/// What to generate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// The client accepts the sequence; if not, most of them are refused somewhere.
    pub(crate) valid: bool,
    /// Steps of the model: most give one event, some a few.
    pub(crate) steps: usize,
    /// Pretty-printed events may hold line breaks; without them every event is one line.
    pub(crate) line_breaks: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { valid: true, steps: 120, line_breaks: true }
    }
}

/// The events of this seed, each the text of a JSON object with a string `type`.
pub(crate) fn events(seed: u64, options: Options) -> Vec<String> {
    let mut model = Model::new(seed, options);
    loop {
        model.start_run();
        for _ in 0..options.steps {
            model.step();
        }
        if !model.finish_run() || model.rng.chance(75) {
            break;
        }
    }
    if !options.valid {
        faults::inject(&mut model.rng, &mut model.events);
    }
    model.events
}

/// The events as one JSON array.
pub(crate) fn array<S: AsRef<str>>(events: &[S]) -> Vec<u8> {
    let events: Vec<&str> = events.iter().map(AsRef::as_ref).collect();
    format!("[{}]", events.join(",")).into_bytes()
}

/// What text can stream into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
    Tool,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Text, Kind::Reasoning, Kind::Tool];

    fn event(self, suffix: &str) -> String {
        let stem = match self {
            Kind::Text => "TEXT_MESSAGE",
            Kind::Reasoning => "REASONING_MESSAGE",
            Kind::Tool => "TOOL_CALL",
        };
        let suffix = if self == Kind::Tool && suffix == "CONTENT" { "ARGS" } else { suffix };
        format!("{stem}_{suffix}")
    }

    fn id_key(self) -> &'static str {
        if self == Kind::Tool { "toolCallId" } else { "messageId" }
    }
}

/// Something that text streams into.
#[derive(Clone, Debug)]
struct Stream {
    kind: Kind,
    id: String,
    /// The subagent that owns it; none: the agent itself.
    owner: Option<String>,
    /// The last delta ended in the first half of a surrogate pair.
    half: bool,
}

struct Model {
    rng: Rng,
    line_breaks: bool,
    events: Vec<String>,
    /// How many of 100 events carry members beside those that they need: none in some seeds, for long stretches.
    extras_percent: usize,
    names: usize,
    run: Run,
}

/// What one run has going on.
#[derive(Default)]
struct Run {
    open: Vec<Stream>,
    closed: Vec<Stream>,
    /// At most one per owner: what the CHUNK events of that owner stream into.
    lanes: Vec<Stream>,
    spans: Vec<(String, Option<String>)>,
    steps: Vec<(String, Option<String>)>,
    subagents: Vec<String>,
    activities: Vec<(String, Option<String>)>,
    /// Depth of the THINKING events: 0 none, 1 a span, 2 a message in it.
    thinking: usize,
}

impl Model {
    fn new(seed: u64, options: Options) -> Model {
        let mut rng = Rng::new(seed);
        let extras_percent = *rng.pick(&[0, 0, 3, 10, 40]);
        Model {
            rng,
            line_breaks: options.line_breaks,
            events: Vec::new(),
            extras_percent,
            names: 0,
            run: Run::default(),
        }
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..=44 => self.burst(),
            45..=53 => self.open_stream(),
            54..=58 => self.close_stream(),
            59..=73 => self.chunk(),
            74..=77 => self.bracket(),
            78..=83 => self.thinking(),
            84..=87 => self.subagent(),
            88..=90 => self.activity(),
            91 => self.messages_snapshot(),
            92 => self.about_a_stream(),
            _ => self.boundary(),
        }
    }

    /// Writes an event; `owner` is the subagent that it names, whose chunk stream it may end.
    fn emit(&mut self, kind: &str, owner: Option<&str>, members: Object) {
        let typed = Object::default().odd(&mut self.rng, "type", kind);
        let mut event = typed.and(members);
        if let Some(owner) = owner {
            event = event.odd(&mut self.rng, "subagentRunId", owner);
        }
        if self.rng.chance(self.extras_percent) {
            event = samples::extras(&mut self.rng, event);
        }
        self.events.push(event.spelled(&mut self.rng, self.line_breaks));
    }

    /// Writes an event that ends the chunk stream of the subagent that it names.
    fn emit_closing(&mut self, kind: &str, owner: Option<&str>, members: Object) {
        self.close_lane(owner);
        self.emit(kind, owner, members);
    }

    fn close_lane(&mut self, owner: Option<&str>) {
        if let Some(index) = self.run.lanes.iter().position(|lane| lane.owner.as_deref() == owner) {
            let lane = self.run.lanes.remove(index);
            self.run.closed.push(lane);
        }
    }

    fn fresh(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    fn maybe_subagent(&mut self) -> Option<String> {
        let named = !self.run.subagents.is_empty() && self.rng.chance(40);
        named.then(|| self.rng.pick(&self.run.subagents).clone())
    }

    /// The owner, or none: naming it is always optional.
    fn maybe(&mut self, owner: &Option<String>) -> Option<String> {
        if self.rng.chance(50) { owner.clone() } else { None }
    }

    fn start_run(&mut self) {
        let (thread, run) = (self.fresh("thread-"), self.fresh("run-"));
        let mut members = Object::default().text("threadId", &thread).text("runId", &run);
        if self.rng.chance(30) {
            let input = r#"{"threadId":"t","runId":"r","messages":[{"id":"echo","role":"user","content":"hi"}],"tools":[],"context":[],"state":{}}"#;
            members = members.raw("input", input);
        }
        self.emit("RUN_STARTED", None, members);
    }

    /// Ends the run in one of the ways that runs end; true if another run may follow.
    fn finish_run(&mut self) -> bool {
        let left_open = self.rng.below(100);
        if left_open < 12 {
            return false;
        }
        if left_open < 25 {
            let members = Object::default().text("message", "the model broke").text("code", "rate_limit");
            self.emit("RUN_ERROR", None, members);
            self.run = Run::default();
            return true;
        }
        self.close_everything();
        let mut members = Object::default().text("threadId", "t").text("runId", "r");
        let outcome = samples::outcome(&mut self.rng);
        members = if outcome.is_empty() { members } else { members.raw("outcome", outcome) };
        self.emit("RUN_FINISHED", None, members);
        self.run = Run::default();
        if self.rng.chance(5) {
            self.emit("RUN_ERROR", None, Object::default().text("message", "it broke after all"));
        }
        true
    }

    fn close_everything(&mut self) {
        while !self.run.open.is_empty() {
            self.close_stream();
        }
        while let Some((id, owner)) = self.run.spans.pop() {
            self.emit_closing("REASONING_END", owner.as_deref(), Object::default().text("messageId", &id));
        }
        while let Some((name, owner)) = self.run.steps.pop() {
            self.emit_closing("STEP_FINISHED", owner.as_deref(), Object::default().text("stepName", &name));
        }
        while self.run.thinking > 0 {
            self.end_thinking();
        }
        while let Some(subagent) = self.run.subagents.pop() {
            self.emit_closing("SUBAGENT_FINISHED", Some(&subagent), Object::default());
        }
    }
}

/// What streams no text.
impl Model {
    /// Opens or closes a reasoning span or a step.
    fn bracket(&mut self) {
        let owner = self.maybe_subagent();
        let (name, closing) = (self.fresh("s"), self.rng.chance(50));
        let members = |key: &str, name: &str| Object::default().text(key, name);
        if self.rng.chance(50) {
            match if closing { self.run.spans.pop() } else { None } {
                Some((id, owner)) => {
                    self.emit_closing("REASONING_END", owner.as_deref(), members("messageId", &id));
                }
                None => {
                    self.emit_closing("REASONING_START", owner.as_deref(), members("messageId", &name));
                    self.run.spans.push((name, owner));
                }
            }
        } else {
            match if closing { self.run.steps.pop() } else { None } {
                Some((name, owner)) => {
                    self.emit_closing("STEP_FINISHED", owner.as_deref(), members("stepName", &name));
                }
                None => {
                    self.emit_closing("STEP_STARTED", owner.as_deref(), members("stepName", &name));
                    self.run.steps.push((name, owner));
                }
            }
        }
    }

    fn thinking(&mut self) {
        match (self.run.thinking, self.rng.below(100)) {
            (0, _) => {
                self.emit_closing("THINKING_START", None, Object::default());
                self.run.thinking = 1;
            }
            (1, 0..=79) => {
                self.emit_closing("THINKING_TEXT_MESSAGE_START", None, Object::default());
                self.run.thinking = 2;
            }
            (2, 0..=79) => {
                for _ in 0..=self.rng.below(4) {
                    let delta = self.delta(&mut false);
                    let members = Object::default().raw("delta", delta);
                    self.emit_closing("THINKING_TEXT_MESSAGE_CONTENT", None, members);
                }
            }
            _ => self.end_thinking(),
        }
    }

    fn end_thinking(&mut self) {
        let kind = if self.run.thinking == 2 { "THINKING_TEXT_MESSAGE_END" } else { "THINKING_END" };
        self.emit_closing(kind, None, Object::default());
        self.run.thinking -= 1;
    }

    /// Starts a subagent. None ends before its run does, since what it owns may still be open.
    fn subagent(&mut self) {
        if self.run.subagents.len() < 3 {
            let id = self.fresh("sub-");
            self.emit("SUBAGENT_STARTED", Some(&id), Object::default().text("name", "researcher"));
            self.run.subagents.push(id);
        }
    }

    fn activity(&mut self) {
        if self.run.activities.is_empty() || self.rng.chance(40) {
            let owner = self.maybe_subagent();
            // One that takes the id of a text turns that message into an activity.
            let taken = self.run.open.first().filter(|_| self.rng.chance(15)).map(|stream| stream.id.clone());
            let id = taken.unwrap_or_else(|| self.fresh("activity-"));
            let members = Object::default().text("messageId", &id).text("activityType", "plan");
            self.emit("ACTIVITY_SNAPSHOT", owner.as_deref(), members.raw("content", r#"{"steps":[],"n":1}"#));
            self.run.activities.push((id, owner));
        } else {
            let (id, _) = self.rng.pick(&self.run.activities).clone();
            let members = Object::default().text("messageId", &id).text("activityType", "plan");
            let patch = r#"[{"op":"add","path":"/steps/-","value":"look"}]"#;
            self.emit("ACTIVITY_DELTA", None, members.raw("patch", patch));
        }
    }

    /// Restates the conversation, mostly without what is streaming: later deltas for that go nowhere.
    fn messages_snapshot(&mut self) {
        let mut messages = vec![r#"{"id":"u1","role":"user","content":"ask"}"#.to_owned()];
        if let Some(kept) = self.run.open.iter().find(|stream| stream.kind == Kind::Text) {
            let message =
                Object::default().text("id", &kept.id).text("role", "assistant").text("content", "so far ");
            let owned =
                kept.owner.iter().fold(message, |message, owner| message.text("subagentRunId", owner));
            messages.push(owned.plain());
        }
        while let Some(lane) = self.run.lanes.pop() {
            self.run.closed.push(lane);
        }
        self.emit(
            "MESSAGES_SNAPSHOT",
            None,
            Object::default().raw("messages", format!("[{}]", messages.join(","))),
        );
    }

    /// A tool's result or an encrypted value, for a stream that is or was open.
    fn about_a_stream(&mut self) {
        let (id, encrypted) = (self.fresh("result-"), self.rng.chance(50));
        let Some(stream) = self.run.open.iter().chain(&self.run.closed).next() else { return };
        let name = stream.id.clone();
        if encrypted {
            let subtype = if stream.kind == Kind::Tool { "tool-call" } else { "message" };
            let members = Object::default().text("subtype", subtype).text("entityId", &name);
            self.emit("REASONING_ENCRYPTED_VALUE", None, members.text("encryptedValue", "c2VjcmV0"));
        } else {
            let members = Object::default().text("messageId", &id).text("toolCallId", &name);
            self.emit_closing("TOOL_CALL_RESULT", None, members.text("content", "sunny"));
        }
    }

    /// An event that touches no stream.
    fn boundary(&mut self) {
        let owner = self.maybe_subagent();
        let value = samples::value(&mut self.rng);
        match self.rng.below(5) {
            0 => self.emit_closing(
                "STATE_SNAPSHOT",
                owner.as_deref(),
                Object::default().raw("snapshot", value),
            ),
            1 => {
                let patch = format!(r#"[{{"op":"add","path":"/note","value":{value}}}]"#);
                self.emit_closing("STATE_DELTA", owner.as_deref(), Object::default().raw("delta", patch));
            }
            2 => {
                let members = Object::default().text("name", "acp.permission_request").raw("value", value);
                self.emit_closing("CUSTOM", owner.as_deref(), members);
            }
            3 => self.emit("RAW", owner.as_deref(), Object::default().raw("event", value)),
            _ => {
                let kind = *self.rng.pick(&samples::UNKNOWN_TYPES);
                let members = Object::default().text("messageId", "m1").text("delta", "not a delta");
                self.emit(kind, None, members.raw("x", value));
            }
        }
    }
}
