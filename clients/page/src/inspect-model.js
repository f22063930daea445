// Rates and figures from what `GET /status` says at intervals. Pure.

import { bytes, count, duration, rate } from "./format.js";

/** Samples that a chart shows: two minutes at one a second. */
export const SAMPLES = 120;

/** What a chart shows: a rate of a counter that only grows, and how to write it. */
export const CHARTS = [
  { key: "events", title: "Events appended", unit: "/s", write: rate },
  { key: "event_bytes", title: "Event bytes", unit: "/s", write: bytes },
  { key: "sent_bytes", title: "Bytes sent", unit: "/s", write: bytes },
  { key: "attached", title: "Observers attached", unit: "/s", write: rate },
  { key: "snapshots", title: "Snapshots made", unit: "/s", write: rate },
  { key: "runs", title: "Runs begun", unit: "/s", write: rate },
];

/** Takes a sample in: `series` has the rates so far by key, `last` the sample before. A server that began anew has none yet. */
export function takeSample({ series, last }, status, atMs) {
  const next = { series, last: { totals: status.totals, uptimeMs: status.uptime_ms, atMs } };
  if (last === null || status.uptime_ms < last.uptimeMs || atMs <= last.atMs) return next;
  const seconds = (status.uptime_ms - last.uptimeMs) / 1000 || (atMs - last.atMs) / 1000;
  const grown = CHARTS.map(({ key }) => [key, [...(series[key] ?? []), (status.totals[key] - last.totals[key]) / seconds].slice(-SAMPLES)]);
  return { ...next, series: Object.fromEntries(grown) };
}

/** Titles with what stands below them. */
export function figures(status) {
  const { totals, runs, more } = status;
  const open = runs.filter(({ persisted }) => persisted === null).length;
  const observers = runs.reduce((sum, run) => sum + run.observers, 0);
  return [
    ["Runs being written", count(open), `${count(runs.length - open + more)} retained`],
    ["Observers", count(observers), `${count(status.connections)} connections, ${count(status.subscribers)} on the bus, ${count(status.waiting)} waiting`],
    ["Memory of runs", bytes(status.memory_bytes), `of ${bytes(status.memory_bytes_max)}`],
    ["Turns of agents", count(status.turns.running), `${count(status.turns.queued)} waiting for a thread`],
    ["Being saved", count(status.commits), `${count(totals.saved)} saved, ${count(totals.not_saved)} not, ${count(totals.superseded)} replaced`],
    ["Resets", count(totals.resets), "observers too slow for the window"],
  ];
}

export function about({ version, uptime_ms: uptimeMs, stopping }) {
  return `rejoin ${version}, up ${duration(uptimeMs)}${stopping ? ", shutting down" : ""}`;
}
