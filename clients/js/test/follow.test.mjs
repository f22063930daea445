import assert from "node:assert/strict";
import test from "node:test";

import { RejoinError, follow, startFollowing } from "../src/index.js";
import { brief } from "./support/scripted.mjs";

/** Delays at their longest. */
const LONGEST = 1;

const snapshot = (runId, seq) => ({ type: "snapshot", runId, seq, events: [] });
const event = (runId, seq) => ({ type: "event", runId, seq, event: { type: "X" } });
const end = (runId, seq, persisted = true, superseded = false) => ({ type: "end", runId, seq, persisted, superseded });
const frame = (value) => ({ type: "frame", frame: value });
const lost = (reason, online = true) => ({ type: "lost", reason, online });
const cursor = (runId, afterSeq) => ({ runId, afterSeq });

/** A follower that is told one thing after another. */
function following(options) {
  let step = startFollowing(options);
  return {
    get action() {
      return step.action;
    },
    get notices() {
      return step.notices;
    },
    tell(input) {
      step = follow(step.state, input, LONGEST);
      return step.notices.map(brief);
    },
    /** Each frame, and what is told of it. */
    frames(cases) {
      for (const [value, ...expected] of cases) assert.deepEqual(this.tell(frame(value)), expected, JSON.stringify(value));
    },
    asks(delayMs, from, waitMs) {
      assert.deepEqual(step.action, { type: "ask", delayMs, cursor: from, waitMs });
    },
  };
}

function opened(options = { waitMs: 700 }) {
  const follower = following(options);
  assert.deepEqual(follower.notices.map(brief), ["connecting"]);
  assert.deepEqual(follower.tell({ type: "opened" }), ["live"]);
  assert.deepEqual(follower.action, { type: "read" });
  return follower;
}

test("frames are applied in order and duplicates ignored", () => {
  const follower = opened();
  follower.frames([
    [snapshot("1", 4), "snapshot 1 4"],
    [event("1", 4)],
    [event("1", 5), "event 1 5"],
    [event("1", 5)],
    [event("1", 1)],
    [event("1", 6), "event 1 6"],
    [end("1", 6), "end 1 saved"],
  ]);
  assert.deepEqual(follower.action, { type: "stop" });
});

test("a gap is a lost connection", () => {
  const follower = opened();
  follower.frames([[snapshot("1", 4), "snapshot 1 4"], [event("1", 6), "retrying 1 gap"]]);
  follower.asks(500, cursor("1", 4), 0);
});

test("an event of a run that was not announced is a lost connection", () => {
  const follower = opened();
  follower.frames([[event("1", 1), "retrying 1 gap"]]);
  follower.asks(500, null, 700);
  follower.tell({ type: "opened" });
  follower.frames([[snapshot("1", 4), "snapshot 1 4"], [event("2", 5), "retrying 1 gap"]]);
  follower.asks(500, cursor("1", 4), 0);
});

test("an end behind missing events is no end", () => {
  for (const wrong of [end("1", 5), end("2", 4), end("1", 3)]) {
    const follower = opened();
    follower.frames([[snapshot("1", 4), "snapshot 1 4"], [wrong, "retrying 1 gap"]]);
  }
  opened().frames([[end("1", 0), "retrying 1 gap"]]);
});

test("a second snapshot replaces everything, also one of another run or one that is behind", () => {
  opened().frames([
    [snapshot("1", 4), "snapshot 1 4"],
    [snapshot("1", 90), "snapshot 1 90"],
    [event("1", 91), "event 1 91"],
    [snapshot("1", 7), "snapshot 1 7"],
    [event("1", 8), "event 1 8"],
    [snapshot("2", 0), "snapshot 2 0"],
    [event("2", 1), "event 2 1"],
  ]);
});

test("a cursor that is ahead of the server is answered with a snapshot, which counts", () => {
  const follower = following({ cursor: cursor("1", 99) });
  follower.asks(0, cursor("1", 99), 0);
  follower.tell({ type: "opened" });
  follower.frames([[snapshot("1", 4), "snapshot 1 4"], [event("1", 5), "event 1 5"]]);
});

test("a failed save is passed on as such", () => {
  const follower = opened();
  follower.frames([[snapshot("1", 0), "snapshot 1 0"], [end("1", 0, false), "end 1 unsaved"]]);
  assert.deepEqual(follower.action, { type: "stop" });
});

test("a superseded run leads to its replacement", () => {
  const follower = opened();
  follower.frames([[snapshot("1", 4), "snapshot 1 4"], [end("1", 4, false, true), "end 1 unsaved superseded", "connecting"]]);
  follower.asks(0, cursor("1", 4), 25_000);
  follower.tell({ type: "opened" });
  follower.frames([[snapshot("2", 9), "snapshot 2 9"], [end("2", 9), "end 2 saved"]]);
  assert.deepEqual(follower.action, { type: "stop" });
});

test("a superseded run is the end for who doesn't follow", () => {
  const follower = opened({ follow: false });
  follower.frames([[snapshot("1", 4), "snapshot 1 4"], [end("1", 4, false, true), "end 1 unsaved superseded"]]);
  assert.deepEqual(follower.action, { type: "stop" });
});

test("the same superseded end again is told once and drops the cursor", () => {
  const follower = opened();
  follower.frames([[snapshot("1", 4), "snapshot 1 4"], [end("1", 4, false, true), "end 1 unsaved superseded", "connecting"]]);
  follower.tell({ type: "opened" });
  follower.frames([[end("1", 4, false, true)]]);
  follower.asks(0, null, 25_000);
  assert.deepEqual(follower.tell({ type: "nothing" }), ["idle true"]);
});

test("end of file is no end, and five attempts follow", () => {
  const follower = opened();
  follower.frames([[snapshot("1", 4), "snapshot 1 4"], [event("1", 5), "event 1 5"]]);
  for (const [index, delayMs] of [500, 1_000, 2_000, 4_000, 8_000].entries()) {
    assert.deepEqual(follower.tell(lost("eof")), [`retrying ${index + 1} eof`]);
    follower.asks(delayMs, cursor("1", 5), 0);
  }
  assert.deepEqual(follower.tell(lost("silent")), ["lost lost silent"]);
  assert.deepEqual(follower.action, { type: "stop" });
});

test("end of file behind every frame goes on behind it", () => {
  const frames = [snapshot("1", 4), event("1", 5), event("1", 6), end("1", 6)];
  for (let cut = 0; cut < frames.length; cut += 1) {
    const follower = opened();
    for (const value of frames.slice(0, cut)) follower.tell(frame(value));
    follower.tell(lost("eof"));
    const seq = [null, 4, 5, 6][cut];
    follower.asks(500, seq === null ? null : cursor("1", seq), seq === null ? 700 : 0);
  }
});

test("jitter shortens a delay down to half", () => {
  const first = startFollowing();
  for (const [random, delayMs] of [[0, 250], [0.5, 375], [1, 500]]) {
    assert.equal(follow(first.state, lost("eof"), random).action.delayMs, delayMs);
  }
});

test("progress starts the attempts anew", () => {
  for (const progress of [event("1", 5), snapshot("1", 5), snapshot("2", 0)]) {
    const follower = opened();
    follower.tell(frame(snapshot("1", 4)));
    for (let attempt = 0; attempt < 5; attempt += 1) follower.tell(lost("eof"));
    follower.tell({ type: "opened" });
    follower.tell(frame(progress));
    assert.deepEqual(follower.tell(lost("eof")), ["retrying 1 eof"]);
  }
});

test("the same snapshot again is no progress", () => {
  const follower = opened();
  follower.tell(frame(snapshot("1", 4)));
  for (let attempt = 0; attempt < 5; attempt += 1) {
    follower.tell(lost("eof"));
    follower.tell({ type: "opened" });
    follower.frames([[snapshot("1", 4), "snapshot 1 4"], [event("1", 4)]]);
  }
  assert.deepEqual(follower.tell(lost("eof")), ["lost lost eof"]);
});

test("without a network the last attempt is not the end", () => {
  const follower = opened();
  follower.tell(frame(snapshot("1", 4)));
  for (let attempt = 0; attempt < 5; attempt += 1) follower.tell(lost("network", false));
  assert.deepEqual(follower.tell(lost("network", false)), ["offline"]);
  assert.deepEqual(follower.action, { type: "await-online" });
  assert.deepEqual(follower.tell({ type: "online" }), ["connecting"]);
  follower.asks(0, cursor("1", 4), 700);
  assert.deepEqual(follower.tell(lost("network")), ["retrying 1 network"]);
});

test("no content means that there is nothing to observe", () => {
  const fresh = following();
  assert.deepEqual(fresh.tell({ type: "nothing" }), ["idle false"]);
  assert.deepEqual(fresh.action, { type: "stop" });
  const follower = opened();
  follower.tell(frame(snapshot("1", 4)));
  follower.tell(lost("eof"));
  assert.deepEqual(follower.tell({ type: "nothing" }), ["idle true"]);
});

test("a refusal is final", () => {
  const follower = following();
  const error = new RejoinError("bad_request", "no", { status: 400 });
  assert.deepEqual(follower.tell({ type: "refused", error }), ["lost bad_request 400"]);
  assert.deepEqual(follower.action, { type: "stop" });
});

test("a step changes no state that was handed out", () => {
  const { state } = startFollowing();
  const before = structuredClone(state);
  follow(state, frame(snapshot("1", 4)), LONGEST);
  follow(state, lost("eof"), LONGEST);
  assert.deepEqual(state, before);
});

test("a delay comes on top of what the server asks for", () => {
  const follower = following({});
  follower.tell({ ...lost("status"), earliestMs: 2_000 });
  follower.asks(2_500, null, 0);
  follower.tell(lost("status"));
  follower.asks(1_000, null, 0);
});
