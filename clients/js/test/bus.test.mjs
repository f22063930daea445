import assert from "node:assert/strict";
import { Worker } from "node:worker_threads";
import test from "node:test";

import { servePort } from "../src/bus-worker-port.js";
import { createClient } from "../src/index.js";
import { FAST, stream, withScript } from "./support/scripted.mjs";
import { fakeLocks } from "./support/locks.mjs";

const row = (chat_id, run_id, more) => ({ chat_id, run_id, trigger: "user", ...more });
const first = { event: "snapshot", streams: [row("a", "r1", { state: "active" }), row("b", "r2", { state: "registered", queued: true })] };
const started = { event: "stream_started", ...row("c", "r3") };
const ended = { event: "stream_ended", chat_id: "a", run_id: "r1", persisted: true, superseded: false };

/** Takes notices until there are as many that say something; connection states don't. */
async function take(bus, count, all = []) {
  const taken = [];
  while (taken.length < count) {
    const { done, value } = await bus.next();
    if (done) return taken;
    all.push(value);
    if (value.type !== "connection") taken.push(value);
  }
  return taken;
}

const runIds = ({ streams }) => streams.map(({ runId }) => runId).sort();

/** Replaces a global for one test. */
function stub(context, name, value) {
  const before = Object.getOwnPropertyDescriptor(globalThis, name);
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  context.after(() => (before ? Object.defineProperty(globalThis, name, before) : delete globalThis[name]));
}

test("the bus tells what goes on, begins and ends", async () => {
  await withScript([stream([first, started, { event: "news", x: 1 }, ended], "hang")], async (server) => {
    const all = [];
    const bus = createClient({ baseUrl: server.url }).bus({ share: "none" });
    const notices = await take(bus, 3, all);
    assert.deepEqual(all.slice(0, 2), [{ type: "connection", state: "connecting" }, { type: "connection", state: "live" }]);
    assert.deepEqual(notices, [
      {
        type: "snapshot",
        streams: [
          { chatId: "a", runId: "r1", trigger: "user", state: "active", queued: false },
          { chatId: "b", runId: "r2", trigger: "user", state: "registered", queued: true },
        ],
      },
      { type: "started", chatId: "c", runId: "r3", trigger: "user", queued: false },
      { type: "ended", chatId: "a", runId: "r1", persisted: true, superseded: false },
    ]);
    assert.deepEqual([server.asked[0].method, server.asked[0].url], ["GET", "/events/stream"]);
    await bus.return();
  });
});

test("after a loss a new snapshot says what changed, however often it fails", async () => {
  const refused = (answer) => answer.writeHead(404).end();
  const acts = [stream([first], "cut"), ...Array(7).fill(refused), stream([{ event: "snapshot", streams: [] }], "hang")];
  await withScript(acts, async (server) => {
    const all = [];
    const bus = createClient({ baseUrl: server.url, backoff: FAST }).bus({ share: "none" });
    const notices = await take(bus, 2, all);
    assert.deepEqual(notices.map(runIds), [["r1", "r2"], []]);
    const attempts = all.filter(({ state }) => state === "retrying").map(({ attempt }) => attempt);
    assert.deepEqual(attempts, [1, 2, 3, 4, 5, 6, 7, 8]);
    await bus.return();
  });
});

test("who comes while the connection is lost is not told what was known before", async () => {
  await withScript([stream([first], "cut"), stream([{ event: "snapshot", streams: [] }], "hang")], async (server) => {
    const client = createClient({ baseUrl: server.url, backoff: { firstMs: 200, lastMs: 200 } });
    const early = client.bus({ share: "none" });
    let notice;
    do notice = (await early.next()).value;
    while (notice.state !== "retrying");
    const all = [];
    const late = client.bus({ share: "none" });
    assert.deepEqual(runIds((await take(late, 1, all))[0]), []);
    assert.equal(all[0].state, "retrying");
    await early.return();
    await late.return();
  });
});

test("subscriptions of a client share a connection, and a later one is told where things stand", async () => {
  await withScript([stream([first, started, ended], "hang")], async (server) => {
    const client = createClient({ baseUrl: server.url });
    const early = client.bus({ share: "none" });
    await take(early, 3);
    const late = client.bus({ share: "none" });
    assert.deepEqual(runIds((await take(late, 1))[0]), ["r2", "r3"]);
    await early.return();
    await late.return();
  });
});

test("a signal or leaving ends it, also while it waits, and the last one closes the connection", async () => {
  let closed;
  const gone = new Promise((resolve) => {
    closed = resolve;
  });
  const act = (answer) => {
    answer.on("close", closed);
    stream([first], "hang")(answer);
  };
  await withScript([act], async (server) => {
    const client = createClient({ baseUrl: server.url });
    const controller = new AbortController();
    const bus = client.bus({ share: "none", signal: controller.signal });
    await take(bus, 1);
    const other = client.bus({ share: "none" });
    await take(other, 1);
    const pending = bus.next();
    controller.abort();
    assert.equal((await pending).done, true);
    const waiting = other.next();
    await other.return();
    assert.equal((await waiting).done, true);
    await gone;
    assert.equal((await client.bus({ signal: controller.signal }).next()).done, true);
  });
});

test("ten tabs have one worker and one connection", async (context) => {
  const ports = [];
  stub(
    context,
    "SharedWorker",
    class {
      constructor(url, { type }) {
        assert.match(String(url), /bus-worker\.js$/);
        assert.equal(type, "module");
        const { port1, port2 } = new MessageChannel();
        servePort(port2);
        this.port = port1;
        ports.push(port1, port2);
      }
    },
  );
  context.after(() => ports.forEach((port) => port.close()));
  await withScript([stream([first, started], "hang"), stream([first], "hang")], async (server) => {
    const tabs = Array.from({ length: 10 }, () => createClient({ baseUrl: server.url }).bus());
    for (const tab of tabs) {
      const seen = new Set();
      for (const notice of await take(tab, 1)) for (const id of runIds(notice)) seen.add(id);
      assert.ok(seen.has("r1"));
    }
    assert.equal(server.asked.length, 1);
    for (const tab of tabs) await tab.return();
    // The worker has let go of the connection: who comes back causes a new one.
    await new Promise((resolve) => setTimeout(resolve, 50));
    const again = createClient({ baseUrl: server.url }).bus();
    assert.deepEqual(runIds((await take(again, 1))[0]), ["r1", "r2"]);
    await again.return();
    await new Promise((resolve) => setTimeout(resolve, 50));
  });
});

test("a worker that can't be loaded is replaced", async (context) => {
  const failures = [
    class {
      constructor() {
        throw new Error("not allowed");
      }
    },
    class {
      constructor() {
        const { port1, port2 } = new MessageChannel();
        context.after(() => port2.close());
        this.port = port1;
        setTimeout(() => this.onerror(new Event("error")), 10);
      }
    },
  ];
  for (const SharedWorker of failures) {
    stub(context, "SharedWorker", SharedWorker);
    await withScript([stream([first], "hang")], async (server) => {
      const bus = createClient({ baseUrl: server.url }).bus();
      assert.deepEqual(runIds((await take(bus, 1))[0]), ["r1", "r2"]);
      await bus.return();
    });
  }
});

test("a client with a fetch of its own never uses a worker", async (context) => {
  stub(context, "SharedWorker", class {
    constructor() {
      assert.fail("no worker");
    }
  });
  await withScript([stream([first], "hang")], async (server) => {
    const bus = createClient({ baseUrl: server.url, fetch: (...call) => fetch(...call) }).bus();
    await take(bus, 1);
    await bus.return();
  });
});

test("tabs elect a leader, and when it goes another has the only connection", async (context) => {
  stub(context, "navigator", { locks: fakeLocks(), onLine: true });
  let leaderGone;
  const closed = new Promise((resolve) => {
    leaderGone = resolve;
  });
  const act = (answer) => {
    answer.on("close", leaderGone);
    stream([first, started], "hang")(answer);
  };
  await withScript([act, stream([{ event: "snapshot", streams: [] }], "hang")], async (server) => {
    const tabs = Array.from({ length: 10 }, () => createClient({ baseUrl: server.url }).bus({ share: "leader" }));
    const [leader, ...others] = tabs;
    await take(leader, 2);
    for (const tab of others) assert.ok((await take(tab, 1)).length === 1);
    assert.equal(server.asked.length, 1);
    await leader.return();
    await closed;
    for (const tab of others) {
      let notice;
      do [notice] = await take(tab, 1);
      while (notice.type !== "snapshot" || notice.streams.length > 0);
    }
    assert.equal(server.asked.length, 2);
    for (const tab of others) await tab.return();
  });
});

test("a tab in another thread follows the leader in this one", async (context) => {
  stub(context, "navigator", { locks: fakeLocks(), onLine: true });
  await withScript([stream([first], "hang")], async (server) => {
    const leader = createClient({ baseUrl: server.url }).bus({ share: "leader" });
    await take(leader, 1);
    const worker = new Worker(new URL("./support/follower.mjs", import.meta.url), { workerData: server.url });
    const [runs] = await Promise.all([new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject))]);
    assert.deepEqual(runs, ["r1", "r2"]);
    assert.equal(server.asked.length, 1);
    await worker.terminate();
    await leader.return();
  });
});
