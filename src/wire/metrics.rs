//! The body of `GET /metrics`: OpenMetrics text, made from plain numbers when it is asked for.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::histogram::Histogram;
use crate::wire::status::{Totals, Turns};

/// The media type of the body.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The first bound of a histogram's buckets, in microseconds; each further one is its double, which the counts are exact
/// for.
const FIRST_BOUND_US: u64 = 8;

/// How many bounds there are; the last is about a second.
const BOUNDS: u32 = 18;

/// Counts by a name that is known when the program is built.
pub type Counts = BTreeMap<&'static str, u64>;

/// What the server knows of itself.
#[derive(Debug)]
pub struct Figures {
    /// The server's version.
    pub version: &'static str,
    /// Milliseconds since the server began.
    pub uptime_ms: u64,
    /// Whether it takes new work.
    pub ready: bool,
    /// Runs by state.
    pub runs: Counts,
    /// Observers of all runs.
    pub observers: usize,
    /// Requests that wait for a run to be registered.
    pub waiting: usize,
    /// Followers of the event bus.
    pub subscribers: usize,
    /// Open connections.
    pub connections: usize,
    /// See `connections`.
    pub connections_max: usize,
    /// Turns that agents carry out, and turns that wait for a thread.
    pub turns: Turns,
    /// Answers that the store owes.
    pub store_owed: u64,
    /// Bytes of memory held for the events of all runs and for request bodies on their way, and the bound beyond which new runs are refused.
    pub memory_bytes: u64,
    /// See `memory_bytes`.
    pub memory_bytes_max: u64,
    /// Counters.
    pub totals: Totals,
    /// Refused requests by the code they were told.
    pub refused: Counts,
    /// Runs that the server closed with an error, by its code.
    pub closed: Counts,
    /// How long the reactor's turns took.
    pub loop_lag: Histogram,
    /// How long snapshots took from the capture to their bytes.
    pub snapshot_lag: Histogram,
}

/// The body.
pub fn body(figures: &Figures) -> Vec<u8> {
    let mut registry = Registry::with_prefix("rejoin");
    registry.register_collector(Box::new(Families(families(figures))));
    let mut text = String::new();
    // A string takes everything.
    let _ = text::encode(&mut text, &registry);
    text.into_bytes()
}

/// One metric with all its values.
#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Counter(u64),
    Counters(&'static str, Counts),
    Gauge(f64),
    Gauges(&'static str, Counts),
    Histogram(Box<Histogram>),
    Info(&'static str, &'static str),
}

use Values::{Counters, Gauges, Info};

fn families(figures: &Figures) -> Vec<Family> {
    let totals = &figures.totals;
    let mut families = now(figures);
    families.extend(traffic(totals));
    families.extend([
        counter("runs_started", "Runs that were registered.", totals.runs),
        counters(
            "runs_ended",
            "Runs that ended, by how.",
            "outcome",
            [("saved", totals.saved), ("not_saved", totals.not_saved), ("superseded", totals.superseded)],
        ),
        family(
            "runs_closed",
            "Runs that the server closed with RUN_ERROR, by its code.",
            Counters("code", figures.closed.clone()),
        ),
        counters(
            "finalizations",
            "Commits of runs, by how they came out.",
            "outcome",
            [
                ("committed", totals.committed),
                ("skipped", totals.skipped),
                ("failed", totals.failed),
                ("timed_out", totals.timed_out),
            ],
        ),
        family(
            "requests_refused",
            "Requests that were refused, by the code of the error.",
            Counters("code", figures.refused.clone()),
        ),
        seconds(
            "snapshot",
            "From the capture of a snapshot to its bytes, the wait for a worker included.",
            &figures.snapshot_lag,
        ),
        seconds(
            "loop_lag",
            "How long the reactor's turns took, from one poll to the next.",
            &figures.loop_lag,
        ),
    ]);
    families
}

fn now(figures: &Figures) -> Vec<Family> {
    let turns = [("running", figures.turns.running as u64), ("queued", figures.turns.queued as u64)];
    let limits = [
        ("memory_max", "Beyond this, new runs are refused.", figures.memory_bytes_max),
        ("memory", "Memory held for the events of all runs.", figures.memory_bytes),
    ];
    let mut families = vec![
        family("build", "The server's version.", Info("version", figures.version)),
        Family {
            unit: Some(Unit::Seconds),
            ..gauge("uptime", "Time since the server began.", figures.uptime_ms as f64 / 1e3)
        },
        gauge("ready", "1 if the server takes new work, else 0.", f64::from(u8::from(figures.ready))),
        family("runs", "Runs in memory, by state.", Gauges("state", figures.runs.clone())),
        gauge("observers", "Responses that follow a run.", figures.observers as f64),
        gauge("waiting_probes", "Requests that wait for a run.", figures.waiting as f64),
        gauge("subscribers", "Followers of the event bus.", figures.subscribers as f64),
        gauge("connections", "Open connections.", figures.connections as f64),
        gauge(
            "connections_max",
            "Beyond this, new connections find no room.",
            figures.connections_max as f64,
        ),
        family("turns", "Turns of agents, by whether they have a thread.", Gauges("state", turns.into())),
        gauge("store_queue", "Answers that the store owes.", figures.store_owed as f64),
    ];
    families.extend(
        limits
            .map(|(name, help, bytes)| Family { unit: Some(Unit::Bytes), ..gauge(name, help, bytes as f64) }),
    );
    families
}

fn traffic(totals: &Totals) -> [Family; 9] {
    [
        counter("connections_accepted", "Connections that were accepted.", totals.connections),
        Family {
            unit: Some(Unit::Bytes),
            ..counter("received", "Bytes read from clients.", totals.received_bytes)
        },
        Family { unit: Some(Unit::Bytes), ..counter("sent", "Bytes written to clients.", totals.sent_bytes) },
        counter("events", "Events that were appended to runs.", totals.events),
        Family { unit: Some(Unit::Bytes), ..counter("event", "Bytes of those events.", totals.event_bytes) },
        counter("observers_attached", "Responses that began to follow a run.", totals.attached),
        counter(
            "observers_cut",
            "Observers that were disconnected because they read too slowly.",
            totals.cut,
        ),
        counter("snapshots", "Snapshots that were serialised.", totals.snapshots),
        counters(
            "resets",
            "Snapshots that were sent where a client had hoped for the next events, by reason.",
            "reason",
            [("slow", totals.resets), ("expired", totals.expired), ("unknown_run", totals.foreign)],
        ),
    ]
}

fn family(name: &'static str, help: &'static str, values: Values) -> Family {
    Family { name, help, unit: None, values }
}

fn counter(name: &'static str, help: &'static str, value: u64) -> Family {
    family(name, help, Values::Counter(value))
}

fn counters<const N: usize>(
    name: &'static str,
    help: &'static str,
    label: &'static str,
    values: [(&'static str, u64); N],
) -> Family {
    family(name, help, Counters(label, values.into()))
}

fn gauge(name: &'static str, help: &'static str, value: f64) -> Family {
    family(name, help, Values::Gauge(value))
}

fn seconds(name: &'static str, help: &'static str, histogram: &Histogram) -> Family {
    Family { unit: Some(Unit::Seconds), ..family(name, help, Values::Histogram(Box::new(histogram.clone()))) }
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|family| {
            let kind = family.values.kind();
            let metric = encoder.encode_descriptor(family.name, family.help, family.unit.as_ref(), kind)?;
            family.values.encode(metric)
        })
    }
}

impl Values {
    fn kind(&self) -> MetricType {
        match self {
            Values::Counter(_) | Counters(..) => MetricType::Counter,
            Values::Gauge(_) | Gauges(..) => MetricType::Gauge,
            Values::Histogram(_) => MetricType::Histogram,
            Info(..) => MetricType::Info,
        }
    }

    fn encode(&self, mut metric: MetricEncoder<'_>) -> fmt::Result {
        match self {
            Values::Counter(value) => metric.encode_counter::<NoLabelSet, _, u64>(value, None),
            Values::Gauge(value) => metric.encode_gauge(value),
            Counters(label, counts) => counts.iter().try_for_each(|(name, value)| {
                let labels = [(*label, *name)];
                metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(value, None)
            }),
            Gauges(label, counts) => counts
                .iter()
                .try_for_each(|(name, value)| metric.encode_family(&[(*label, *name)])?.encode_gauge(value)),
            Values::Histogram(histogram) => metric.encode_histogram::<NoLabelSet>(
                histogram.sum_us as f64 / 1e6,
                histogram.count,
                &buckets(histogram),
                None,
            ),
            Info(label, value) => metric.encode_info(&[(*label, *value)]),
        }
    }
}

/// Upper bounds in seconds, each with the count of what lies between it and the one before.
fn buckets(histogram: &Histogram) -> Vec<(f64, u64)> {
    let bounds = (0..BOUNDS).map(|doublings| FIRST_BOUND_US << doublings);
    let bounds = bounds.map(|us| (us as f64 / 1e6, histogram.below(us)));
    let all = bounds.chain([(f64::INFINITY, histogram.count)]);
    let mut before = 0;
    all.map(|(bound, below)| (bound, below - std::mem::replace(&mut before, below))).collect()
}
