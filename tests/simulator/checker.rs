//! The checker: what is true of each run, as an all-seeing subscriber of the event bus learns it, and what may never
//! be seen by anybody.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::model;
use crate::swarm::Swarm;

/// What is known of a run.
#[derive(Debug, Default)]
struct Truth {
    chat: String,
    /// How many runs there were before it.
    began: usize,
    events: Vec<Value>,
    /// `persisted` and `superseded` of its end, once that can be had.
    end: Option<(bool, bool)>,
    ended_ms: u64,
}

/// A claim that is looked at when the step is over, since the all-seeing subscriber may hear later than others.
#[derive(Debug)]
enum Claim {
    /// Somebody's events up to this seq reduce to these.
    Has { run: String, seq: u64, events: Vec<Value> },
    /// The run has ended like this.
    Ended { run: String, seq: u64, persisted: bool, superseded: bool },
    /// A producer was told that the run reaches this seq.
    Acknowledged { run: String, seq: u64 },
    /// The run is in the store.
    Saved { run: String },
    /// A listener heard this event of the run.
    Heard { run: String, seq: u64, event: Value },
    /// A listener heard all of the run's events, up to this one.
    HeardAll { run: String, seq: u64 },
    /// A sender was told that its turn is taken.
    Accepted { run: String },
    /// The run's agent was told the answer to its question.
    Answered { run: String },
    /// A legacy stream of the chat was complete with these.
    Legacy { chat: String, events: Vec<Value> },
}

/// Whether the engine says with this that a question is answered.
fn is_resolution(event: &Value) -> bool {
    event["name"] == "acp.permission_resolved"
}

/// Truths, claims, and the violation that was found.
#[derive(Debug, Default)]
pub struct Checker {
    runs: BTreeMap<String, Truth>,
    /// The run that goes on in each chat, by the bus.
    current: BTreeMap<String, String>,
    claims: Vec<Claim>,
    /// Chats that somebody may have deleted.
    deleted: BTreeSet<String>,
    pub now_ms: u64,
    /// Runs' events that an observer may be behind, for how long ended runs are kept, and how many of them.
    window: u64,
    retention_ms: u64,
    retention_chats: usize,
    /// How often each rare situation was met.
    pub seen: BTreeMap<&'static str, u64>,
    pub violation: Option<String>,
    /// Claims looked at.
    pub checked: u64,
}

impl Checker {
    pub fn new(swarm: &Swarm) -> Checker {
        Checker {
            window: swarm.window as u64,
            retention_ms: swarm.retention_ms,
            retention_chats: swarm.retention_chats,
            ..Checker::default()
        }
    }

    pub fn fail(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    pub fn require(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.fail(what());
        }
    }

    /// How many runs of a chat were replaced.
    pub fn replaced(&self, chat: &str) -> usize {
        let replaced =
            |truth: &&Truth| truth.chat == chat && truth.end.is_some_and(|(_, superseded)| superseded);
        self.runs.values().filter(replaced).count()
    }

    /// A situation that has to be met now and then, if the rest is to mean something.
    pub fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// Somebody is about to delete a chat.
    pub fn may_be_deleted(&mut self, chat: &str) {
        self.deleted.insert(chat.to_owned());
    }

    /// An observer gets this run on a connection that it opened then.
    pub fn served(&mut self, run: &str, connected_ms: u64) {
        let Some(truth) = self.runs.get(run) else { return };
        let gone = truth.end.is_some() && truth.ended_ms + self.retention_ms < connected_ms;
        self.require(!gone, || format!("{run} is served although its retention is over"));
    }

    /// An observer with a cursor of this run was told that there is nothing.
    pub fn not_served(&mut self, chat: &str, run: &str) {
        let Some(truth) = self.runs.get(run) else { return };
        if truth.chat != chat
            || self.deleted.contains(chat)
            || truth.end.is_some_and(|(_, superseded)| superseded)
        {
            return;
        }
        let later = self
            .runs
            .values()
            .filter(|other| other.end.is_some() && other.ended_ms >= truth.ended_ms)
            .count();
        let kept = truth.end.is_none()
            || self.now_ms < truth.ended_ms + self.retention_ms && later <= self.retention_chats;
        let replaced = self.runs.values().any(|other| other.chat == truth.chat && other.began > truth.began);
        if kept && !replaced {
            self.fail(format!("an observer of {run} was told that there is nothing"));
        }
        self.saw("an observer came too late");
    }

    /// An event was sent live: its reader was no more than the window behind.
    pub fn in_window(&mut self, frame: &Value) {
        let Some(truth) = frame["run_id"].as_str().and_then(|run| self.runs.get(run)) else { return };
        let (head, before) = (truth.events.len() as u64, frame["seq"].as_u64().unwrap_or(1) - 1);
        let window = self.window;
        self.require(head <= before + window, || {
            format!("{before} is followed by an event, with {head} there")
        });
    }

    /// A message of the bus.
    pub fn tap(&mut self, message: &Value) {
        let text = |name: &str| message[name].as_str().unwrap_or("").to_owned();
        let (run, chat) = (text("run_id"), text("chat_id"));
        match message["event"].as_str() {
            Some("snapshot") => {
                self.require(message["streams"] == serde_json::json!([]), || "early runs".to_owned())
            }
            Some("stream_started") => {
                let before = self.current.insert(chat.clone(), run.clone());
                if before.as_ref() == Some(&run) {
                    // Its turn waits for a thread, or does no longer.
                    return;
                }
                self.require(before.is_none(), || format!("{run} started before {before:?} ended"));
                let began = self.runs.len();
                self.runs.insert(run, Truth { chat, began, ..Truth::default() });
            }
            Some("chunk") => {
                let Some(truth) = self.runs.get_mut(&run) else {
                    return self.fail(format!("chunk of unknown {run}"));
                };
                let (seq, expected) = (message["seq"].as_u64(), truth.events.len() as u64 + 1);
                let over = truth.end.is_some();
                truth.events.push(message["data"].clone());
                self.require(seq == Some(expected), || format!("chunk {seq:?} of {run}, not {expected}"));
                self.require(!over, || format!("{run} got an event after its end"));
            }
            Some("stream_ended") => {
                let flag = |name: &str| message[name].as_bool().unwrap_or(false);
                let end = (flag("persisted"), flag("superseded"));
                let ended = self.current.remove(&chat);
                self.require(ended.as_ref() == Some(&run), || format!("{run} ended out of order"));
                let before = self.runs.get_mut(&run).and_then(|truth| {
                    truth.ended_ms = self.now_ms;
                    truth.end.replace(end)
                });
                self.require(before.is_none(), || format!("{run} ended twice"));
            }
            _ => self.fail(format!("odd message on the bus: {message}")),
        }
    }

    /// The first events of a run, if it has so many.
    pub fn prefix(&self, run: &str, seq: u64) -> Option<Vec<Value>> {
        let events = &self.runs.get(run)?.events;
        events.get(..usize::try_from(seq).ok()?).map(<[Value]>::to_vec)
    }

    /// Runs of a chat with their heads, the newest first; without any, those of all chats.
    pub fn known(&self, chat: &str) -> Vec<(String, u64)> {
        let mut runs: Vec<_> = self.runs.iter().filter(|(_, truth)| truth.chat == chat).collect();
        if runs.is_empty() {
            runs.extend(&self.runs);
        }
        runs.sort_by_key(|(_, truth)| std::cmp::Reverse(truth.began));
        runs.iter().map(|(run, truth)| ((*run).clone(), truth.events.len() as u64)).collect()
    }

    pub fn has(&mut self, run: &str, seq: u64, events: Vec<Value>) {
        self.claims.push(Claim::Has { run: run.to_owned(), seq, events });
    }

    pub fn ended(&mut self, run: &str, seq: u64, persisted: bool, superseded: bool) {
        self.claims.push(Claim::Ended { run: run.to_owned(), seq, persisted, superseded });
    }

    pub fn acknowledged(&mut self, run: &str, seq: u64) {
        self.claims.push(Claim::Acknowledged { run: run.to_owned(), seq });
    }

    pub fn legacy_complete(&mut self, chat: &str, events: Vec<Value>) {
        self.claims.push(Claim::Legacy { chat: chat.to_owned(), events });
    }

    pub fn heard(&mut self, run: &str, seq: u64, event: Value) {
        self.claims.push(Claim::Heard { run: run.to_owned(), seq, event });
    }

    pub fn heard_all(&mut self, run: &str, seq: u64) {
        self.saw("a listener heard the end of a run");
        self.claims.push(Claim::HeardAll { run: run.to_owned(), seq });
    }

    pub fn accepted(&mut self, run: &str) {
        self.claims.push(Claim::Accepted { run: run.to_owned() });
    }

    pub fn answered(&mut self, run: &str) {
        self.claims.push(Claim::Answered { run: run.to_owned() });
    }

    /// The answer to a finish. It tells of the save even if the run was replaced meanwhile.
    pub fn finished(&mut self, run: &str, seq: u64, persisted: bool) {
        self.acknowledged(run, seq);
        if persisted {
            self.claims.push(Claim::Saved { run: run.to_owned() });
        }
    }

    /// Somebody who can be written to has all events of the run, and its end if that can be had.
    pub fn is_current(&mut self, run: &str, seq: u64, ended: bool) {
        let Some(truth) = self.runs.get(run) else { return };
        let current = seq == truth.events.len() as u64 && ended == truth.end.is_some();
        self.require(current, || format!("an observer of {run} is left behind at {seq}, ended {ended}"));
    }

    /// Whether a run of this chat goes on.
    pub fn goes_on(&self, chat: &str) -> bool {
        self.current.contains_key(chat)
    }

    /// Looks at what was claimed in this step. `saved` says whether the store has told that a run is committed.
    pub fn settle(&mut self, saved: impl Fn(&str) -> bool, begun: impl Fn(&str) -> bool) {
        for claim in std::mem::take(&mut self.claims) {
            self.checked += 1;
            if let Err(what) = self.judge(&claim, &saved, &begun) {
                self.fail(format!("{what} ({claim:?})"));
            }
        }
    }

    fn judge(
        &self,
        claim: &Claim,
        saved: &impl Fn(&str) -> bool,
        begun: &impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        match claim {
            Claim::Has { run, seq, events } => {
                let all = self.prefix(run, *seq).ok_or("more events than the run has")?;
                if model::compact(events) != model::compact(&all) {
                    return Err("the state is not the run's".to_owned());
                }
            }
            Claim::Ended { run, seq, persisted, superseded } => {
                let truth = self.runs.get(run).ok_or("the end of an unknown run")?;
                if truth.end != Some((*persisted, *superseded)) {
                    return Err(format!("the bus says {:?}", truth.end));
                }
                if *seq != truth.events.len() as u64 {
                    return Err(format!("the run has {} events", truth.events.len()));
                }
                if *persisted && !saved(run) {
                    return Err("END says persisted, the store has not".to_owned());
                }
            }
            Claim::Acknowledged { run, seq } => {
                let has = self.runs.get(run).map_or(0, |truth| truth.events.len() as u64);
                if has < *seq {
                    return Err(format!("acknowledged, but the run has {has} events"));
                }
            }
            Claim::Saved { run } => {
                if !saved(run) {
                    return Err("a producer was told that its run is saved".to_owned());
                }
            }
            Claim::Heard { run, seq, event } => {
                let events = &self.runs.get(run).ok_or("an event of an unknown run")?.events;
                let index = usize::try_from(*seq).unwrap_or(0).wrapping_sub(1);
                if events.get(index) != Some(event) {
                    return Err("a listener heard what is not in the run".to_owned());
                }
            }
            Claim::HeardAll { run, seq } => {
                let has = self.runs.get(run).map_or(0, |truth| truth.events.len() as u64);
                if has != *seq {
                    return Err(format!("a listener heard the end, but the run has {has} events"));
                }
            }
            Claim::Accepted { run } => {
                if !begun(run) {
                    return Err("a turn was taken whose message is not in the history".to_owned());
                }
            }
            Claim::Answered { run } => {
                let truth = self.runs.get(run).ok_or("an answer for an unknown run")?;
                let over =
                    truth.end.is_some() || truth.events.iter().any(|event| event["type"] == "RUN_FINISHED");
                if !over && !truth.events.iter().any(is_resolution) {
                    return Err("the agent has the answer before the run has".to_owned());
                }
            }
            Claim::Legacy { chat, events } => {
                let compacted = model::compact(events);
                let whole = |truth: &Truth| {
                    truth.chat == *chat
                        && truth.end.is_some_and(|(_, superseded)| !superseded)
                        && model::compact(&truth.events) == compacted
                };
                if !self.runs.values().any(whole) {
                    let runs = self.runs.values().filter(|truth| truth.chat == *chat);
                    let runs: Vec<_> = runs.map(|truth| (truth.end, truth.events.len())).collect();
                    return Err(format!("a complete legacy stream is no whole run of {runs:?}"));
                }
            }
        }
        Ok(())
    }

    /// What a producer meant to say against what the run has: its own events first and in order, all that were
    /// acknowledged, then only what the engine appends.
    pub fn produced(&mut self, run: &str, plan: &[Value], acked: usize) {
        let Some(truth) = self.runs.get(run) else { return };
        let events: Vec<&Value> = truth.events.iter().filter(|event| !is_resolution(event)).collect();
        let own = events.iter().zip(plan).take_while(|(event, planned)| **event == *planned).count();
        let closes = |event: &Value| {
            let kind = event["type"].as_str().unwrap_or("");
            kind.ends_with("_END") || kind == "RUN_ERROR"
        };
        let odd = events[own..].iter().find(|event| !closes(event)).map(|event| (*event).clone());
        self.require(own >= acked, || format!("{run}: {acked} events were acknowledged, {own} are there"));
        self.require(odd.is_none(), || format!("{run}: nobody sent {odd:?}"));
    }

    /// Whether no run goes on.
    pub fn all_ended(&self) -> bool {
        self.current.is_empty()
    }

    /// Faults are off and everything has come to rest.
    pub fn at_rest(&mut self) {
        for (run, truth) in &self.runs {
            let Some((_, superseded)) = truth.end else {
                self.violation.get_or_insert(format!("{run} never ended"));
                return;
            };
            let cut_off = superseded || truth.end == Some((false, false));
            if let Some(fault) = model::ending_fault(&truth.events)
                && !cut_off
            {
                self.violation.get_or_insert(format!("{run}: {fault}"));
            }
        }
    }
}
