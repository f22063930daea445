//! The body of `GET /status`: what an operator looks at first.

use serde::Serialize;

use crate::histogram::Histogram;

/// The server as a whole.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status<'a> {
    /// The server's version.
    pub version: &'static str,
    /// Milliseconds since the server began.
    pub uptime_ms: u64,
    /// Whether it is being shut down.
    pub stopping: bool,
    /// Open connections.
    pub connections: usize,
    /// Requests that wait for a run to be registered.
    pub waiting: usize,
    /// Followers of the event bus.
    pub subscribers: usize,
    /// Turns that agents carry out, and turns that wait for a thread.
    pub turns: Turns,
    /// Commits whose outcome is awaited.
    pub commits: usize,
    /// Bytes of memory held for the events of all runs and for request bodies on their way, and the bound beyond which new runs are refused.
    pub memory_bytes: u64,
    /// See `memory_bytes`.
    pub memory_bytes_max: u64,
    /// How long the reactor's turns took, from one poll to the next, in microseconds.
    pub loop_lag_us: Lag,
    /// What has happened since the server began.
    pub totals: Totals,
    /// Runs that are not over, then those that are retained; by chat.
    pub runs: Vec<RunStatus<'a>>,
    /// Runs that were left out.
    pub more: usize,
}

/// Turns of agents.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Turns {
    /// With a thread.
    pub running: usize,
    /// Without one yet.
    pub queued: usize,
}

/// Durations since the server began.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Lag {
    /// How many there were.
    pub count: u64,
    /// Half of them took no longer.
    pub p50: u64,
    /// Of a hundred, 99 took no longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl From<&Histogram> for Lag {
    fn from(histogram: &Histogram) -> Lag {
        Lag {
            count: histogram.count,
            p50: histogram.percentile_us(50),
            p99: histogram.percentile_us(99),
            max: histogram.max_us,
        }
    }
}

/// Counters. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Runs that were registered.
    pub runs: u64,
    /// Events that were appended, and their bytes.
    pub events: u64,
    /// See `events`.
    pub event_bytes: u64,
    /// Connections that were accepted.
    pub connections: u64,
    /// Bytes that were read from clients.
    pub received_bytes: u64,
    /// Bytes that were written to clients.
    pub sent_bytes: u64,
    /// Observers that were attached.
    pub attached: u64,
    /// Snapshots that were serialised.
    pub snapshots: u64,
    /// Observers that fell out of the window and were sent a snapshot.
    pub resets: u64,
    /// Observers that came back too late for the window, or with a cursor beyond the head.
    pub expired: u64,
    /// Observers that came with the cursor of another run.
    pub foreign: u64,
    /// Observers that were disconnected because they read too slowly.
    pub cut: u64,
    /// Runs that ended saved.
    pub saved: u64,
    /// Runs that ended and are not known to be saved.
    pub not_saved: u64,
    /// Runs that a newer one replaced.
    pub superseded: u64,
    /// Commits of which the store said that they are done.
    pub committed: u64,
    /// Commits that were not wanted any more.
    pub skipped: u64,
    /// Commits that failed.
    pub failed: u64,
    /// Commits that took too long.
    pub timed_out: u64,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct RunStatus<'a> {
    /// Its conversation.
    pub chat_id: &'a str,
    /// Its id.
    pub run_id: &'a str,
    /// Where it stands.
    pub state: &'static str,
    /// Whether its turn waits for a thread.
    pub queued: bool,
    /// Whether it is saved; `null` while that is not decided.
    pub persisted: Option<bool>,
    /// What started it.
    pub trigger: &'static str,
    /// When it was registered, in milliseconds since 1970.
    pub started_ms: u64,
    /// Number of its last event.
    pub seq: u64,
    /// Number of the first event of its replay window.
    pub window_from: u64,
    /// Bytes of its events.
    pub event_bytes: u64,
    /// Bytes of memory it holds.
    pub memory_bytes: u64,
    /// Who follows it.
    pub observers: usize,
    /// Its snapshots, oldest first.
    pub snapshots: Vec<SnapshotStatus>,
}

/// One snapshot.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SnapshotStatus {
    /// Number of the last event in it.
    pub seq: u64,
    /// Its bytes; `null` while it is being serialised.
    pub bytes: Option<u64>,
}

/// The body.
pub fn body(status: &Status<'_>) -> Vec<u8> {
    super::reply::json(status)
}
