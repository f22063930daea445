//! What an operator asks for: how the server is, and which runs it holds.

use crate::engine::Engine;
use crate::engine::conn::{Role, Wait};
use crate::histogram::Histogram;
use crate::limits::STATUS_RUNS_MAX;
use crate::proto::run::{Run, SnapshotSlot, Stage, State};
use crate::wire::metrics::{self, Counts, Figures};
use crate::wire::snapshot::Snapshot;
use crate::wire::status::{self, RunStatus, SnapshotStatus, Status, Totals};

/// What `GET /metrics` tells beside the totals.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    /// How long the reactor's turns took.
    loop_lag: Histogram,
    /// How long snapshots took from the capture to their bytes.
    snapshot_lag: Histogram,
    /// Refused requests by code.
    pub(super) refused: Counts,
    /// Runs closed with an error, by its code.
    pub(super) closed: Counts,
}

impl Engine {
    /// The body of `GET /metrics`.
    pub(super) fn metrics(&mut self) -> Vec<u8> {
        self.evict();
        let mut runs = Counts::from(State::NAMES.map(|state| (state, 0)));
        for run in self.registry.all() {
            *runs.entry(run.state.name()).or_default() += 1;
        }
        let roles = || self.conns.iter().flatten().map(|conn| &conn.role);
        metrics::body(&Figures {
            version: env!("CARGO_PKG_VERSION"),
            uptime_ms: self.now.mono_ms,
            ready: self.unready().is_none(),
            runs,
            observers: roles().filter(|role| matches!(role, Role::Observer(_))).count(),
            waiting: roles().filter(|role| matches!(role, Role::Waiting(Wait::Run(..)))).count(),
            subscribers: roles().filter(|role| matches!(role, Role::Bus(_))).count(),
            connections: self.conns_len,
            connections_max: self.config.limits.connections_max,
            turns: self.turns.status(),
            store_owed: self.store_watch.owed,
            memory_bytes: self.memory_bytes(),
            memory_bytes_max: self.config.limits.memory_bytes_max,
            totals: self.all_totals(),
            refused: self.tallies.refused.clone(),
            closed: self.tallies.closed.clone(),
            loop_lag: self.tallies.loop_lag.clone(),
            snapshot_lag: self.tallies.snapshot_lag.clone(),
        })
    }

    /// The totals, with those of the runs that are still here.
    fn all_totals(&self) -> Totals {
        self.registry.all().fold(self.totals, with_events_of)
    }

    /// The body of `GET /status`.
    pub(super) fn status(&mut self) -> Vec<u8> {
        self.evict();
        let mut runs: Vec<&Run<Snapshot>> = self.registry.retained().map(|(_, run)| run).collect();
        let totals = self.all_totals();
        let more = runs.len().saturating_sub(STATUS_RUNS_MAX);
        runs.sort_by_key(|run| matches!(run.state, State::Over(_)));
        runs.truncate(STATUS_RUNS_MAX);
        let roles = || self.conns.iter().flatten().map(|conn| &conn.role);
        status::body(&Status {
            version: env!("CARGO_PKG_VERSION"),
            uptime_ms: self.now.mono_ms,
            stopping: self.stopping,
            connections: self.conns_len,
            waiting: roles().filter(|role| matches!(role, Role::Waiting(Wait::Run(..)))).count(),
            subscribers: roles().filter(|role| matches!(role, Role::Bus(_))).count(),
            turns: self.turns.status(),
            commits: self.commits.len(),
            memory_bytes: self.memory_bytes(),
            memory_bytes_max: self.config.limits.memory_bytes_max,
            loop_lag_us: (&self.tallies.loop_lag).into(),
            totals,
            runs: runs.into_iter().map(run_status).collect(),
            more,
        })
    }

    /// A turn of the reactor, from one poll to the next, took so long.
    pub fn note_turn(&mut self, us: u64) {
        self.tallies.loop_lag.record(us);
    }

    /// A snapshot was serialised so long after it was captured.
    pub fn note_snapshot(&mut self, us: u64) {
        self.tallies.snapshot_lag.record(us);
    }

    /// A run is let go: what it had counts on.
    pub(super) fn tally_run(&mut self, run: &Run<Snapshot>) {
        self.totals = with_events_of(self.totals, run);
    }
}

fn with_events_of(totals: Totals, run: &Run<Snapshot>) -> Totals {
    Totals {
        events: totals.events + run.head().0,
        event_bytes: totals.event_bytes + run.event_bytes,
        ..totals
    }
}

fn run_status(run: &Run<Snapshot>) -> RunStatus<'_> {
    let persisted = if let State::Over(end) = run.state { Some(end.persisted) } else { None };
    RunStatus {
        chat_id: run.chat.as_str(),
        run_id: run.id.as_str(),
        state: run.state.name(),
        queued: run.queued,
        persisted,
        trigger: run.trigger.name(),
        started_ms: run.started.wall_ms,
        seq: run.head().0,
        window_from: run.log.first().0,
        event_bytes: run.event_bytes,
        memory_bytes: run.memory_bytes(),
        observers: run.observers.len(),
        snapshots: run.snapshots.iter().map(snapshot_status).collect(),
    }
}

fn snapshot_status(slot: &SnapshotSlot<Snapshot>) -> SnapshotStatus {
    let bytes = match &slot.stage {
        Stage::Making(_) => None,
        Stage::Ready(snapshot) => Some(snapshot.bytes()),
    };
    SnapshotStatus { seq: slot.seq.0, bytes }
}
