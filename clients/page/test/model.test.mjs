// What the pages compute, without a browser.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import test from "node:test";

import { emptyTranscript, transcriptOf } from "../client/index.js";
import { bytes, duration, moment, pretty, rate } from "../src/format.js";
import { allExchanges, exchangesOf, isRunning, textOf } from "../src/history-model.js";
import { figures, SAMPLES, takeSample } from "../src/inspect-model.js";

const turn = (number, members = {}) => ({
  turn: number,
  runId: `r${number}`,
  trigger: "user",
  persisted: true,
  superseded: false,
  closed: null,
  messages: 2,
  events: [{ type: "TEXT_MESSAGE_CHUNK", messageId: `m${number}`, delta: `answer ${number}` }],
  ...members,
});
const user = (content) => ({ id: `u-${content}`, role: "user", content });
const assistant = { id: "a", role: "assistant", content: "answer" };
const live = (members) => ({ runId: "r9", user: null, from: null, transcript: emptyTranscript(), end: null, seeded: false, ...members });

const page = {
  messages: [user("one"), assistant, assistant, user("three"), user("four")],
  turns: [turn(1), turn(2, { messages: 1 }), turn(3, { messages: 2, superseded: true }), turn(4, { messages: 0, persisted: false, events: [] })],
};

test("each turn gets its own messages, and the place of the one that began it", () => {
  const exchanges = exchangesOf(page);
  assert.deepEqual(
    exchanges.map(({ user: text, index, state }) => [text, index, state]),
    [
      ["one", 0, "saved"],
      [null, null, "saved"],
      ["three\n\nfour", 3, "replaced"],
      [null, null, "unsaved"],
    ],
  );
  assert.equal(exchanges[0].transcript.parts[0].text, "answer 1");
  assert.equal(textOf({ content: [{ type: "text", text: "see" }, { type: "image" }, { type: "document", filename: "a.pdf" }] }), "see\n[image]\n[a.pdf]");
});

test("the followed run stands in the place of its turn until the history has it", () => {
  const history = exchangesOf(page);
  const transcript = transcriptOf([{ type: "TEXT_MESSAGE_CHUNK", messageId: "m", delta: "so far" }]);
  const shown = allExchanges(history, live({ runId: "r4", transcript }), null);
  assert.deepEqual(shown.map(({ key, state }) => [key, state]).at(-1), ["r4", "live"]);
  assert.equal(shown.length, 4);
  // Saved is what the history says, and only then.
  assert.equal(allExchanges(history, live({ runId: "r1", transcript }), null)[0].transcript.parts[0].text, "answer 1");
  assert.equal(allExchanges(history, live({ end: { persisted: false, superseded: false } }), null).at(-1).state, "not-saved");
  assert.equal(allExchanges(history, live({ end: { persisted: true, superseded: false } }), null).at(-1).state, "saved");
});

test("what a retry takes back is gone at once", () => {
  const history = exchangesOf(page);
  const keys = (exchanges) => exchanges.map(({ key }) => key);
  assert.deepEqual(keys(allExchanges(history, null, { user: "one", from: 0 })), ["r2", "r4", "pending"]);
  assert.deepEqual(keys(allExchanges(history, live({ user: "one", from: 3 }), null)), ["r1", "r2", "r4", "r9"]);
  assert.deepEqual(keys(allExchanges(history, null, { user: "five", from: null })), ["r1", "r2", "r3", "r4", "pending"]);
});

test("a picture of an earlier page is no run that goes on", () => {
  assert.deepEqual([live({}), live({ seeded: true }), live({ end: {} }), null].map(isRunning), [true, false, false, false]);
});

test("rates are differences, and begin anew with the server", () => {
  const status = (uptime, events) => ({ uptime_ms: uptime, totals: { events, event_bytes: 0, sent_bytes: 0, attached: 0, snapshots: 0, runs: 0 } });
  let samples = takeSample({ series: {}, last: null }, status(1_000, 10), 0);
  assert.deepEqual(samples.series, {});
  samples = takeSample(samples, status(3_000, 30), 2_000);
  assert.deepEqual(samples.series.events, [10]);
  samples = takeSample(samples, status(500, 1), 3_000);
  samples = takeSample(samples, status(1_500, 6), 4_000);
  assert.deepEqual(samples.series.events, [10, 5]);
  for (let second = 2; second < 2 * SAMPLES; second += 1) samples = takeSample(samples, status(second * 1_000, second), 4_000 + second * 1_000);
  assert.equal(samples.series.events.length, SAMPLES);
});

test("figures count what is written apart from what is retained", () => {
  const run = (persisted, observers) => ({ persisted, observers });
  const totals = { saved: 3, not_saved: 1, superseded: 2, resets: 4 };
  const rest = { more: 5, connections: 9, subscribers: 1, waiting: 2, memory_bytes: 2048, memory_bytes_max: 1 << 30, turns: { running: 1, queued: 7 }, commits: 1, totals };
  const shown = figures({ runs: [run(null, 3), run(true, 1), run(false, 0)], ...rest });
  assert.deepEqual(shown[0], ["Runs being written", "1", "7 retained"]);
  assert.deepEqual(shown[1].slice(0, 2), ["Observers", "4"]);
  assert.deepEqual(shown[2], ["Memory of runs", "2.0 KiB", "of 1.0 GiB"]);
});

test("numbers and times are written for people", () => {
  assert.deepEqual([0, 999, 1_000, 1_536, 10_240, 5 << 20].map(bytes), ["0 B", "999 B", "1.0 KiB", "1.5 KiB", "10 KiB", "5.0 MiB"]);
  assert.deepEqual([0, 0.25, 9.96, 1234].map(rate), ["0", "0.3", "10.0", "1,234"]);
  assert.deepEqual([0, 61_000, 3_600_000, 90_000_000].map(duration), ["0 s", "1 min 1 s", "1 h 0 min", "1 d 1 h"]);
  assert.match(moment(0, new Date(86_400_000 * 3)), /1970|1969/);
  assert.equal(pretty('{"a":1}'), '{\n  "a": 1\n}');
  assert.equal(pretty("no JSON"), "no JSON");
});

test("the libraries are those of their packages, byte for byte", async () => {
  const require = createRequire(import.meta.url);
  const pairs = [
    ["marked", "lib/marked.esm.js", "marked.esm.js"],
    ["dompurify", "dist/purify.es.mjs", "purify.es.mjs"],
  ];
  for (const [name, file, vendored] of pairs) {
    const folder = join(dirname(require.resolve(name)), "..");
    const [theirs, ours] = await Promise.all([readFile(join(folder, file)), readFile(new URL(`../vendor/${vendored}`, import.meta.url))]);
    assert.ok(theirs.equals(ours), `${vendored} is not the one of the installed ${name}: copy it anew`);
  }
});
