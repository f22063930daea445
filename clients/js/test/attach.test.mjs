import assert from "node:assert/strict";
import test from "node:test";

import { createClient } from "../src/index.js";
import { FAST, brief, collect, end, event, hangUp, json, nothing, snapshot, stream, text, withScript } from "./support/scripted.mjs";

/** What is told when a chat is followed against this script, in brief, and the bodies of the requests. */
async function follow(acts, options = {}, clientOptions = {}) {
  let result;
  await withScript(acts, async (server) => {
    const client = createClient({ baseUrl: server.url, backoff: FAST, ...clientOptions });
    const notices = await collect(client.attach("c", options));
    result = { told: notices.map(brief), notices, bodies: server.asked.map(({ body }) => body), asked: server.asked };
  });
  return result;
}

const fresh = { chat_id: "c", protocol: 1, wait_ms: 0 };
const from = (run_id, after_seq) => ({ ...fresh, run_id, after_seq });

test("a run is followed to its end", async () => {
  const act = stream([": keep-alive\n\n", snapshot("r", 1, [text("a")]), event("r", 2, text("b")), end("r", 2)]);
  const { told, notices, bodies, asked } = await follow([act], { waitMs: 900 });
  assert.deepEqual(told, ["connecting", "live", "snapshot r 1", "event r 2", "end r saved"]);
  assert.deepEqual(notices[2].events, [text("a")]);
  assert.deepEqual(notices[3].event, text("b"));
  assert.deepEqual(bodies, [{ ...fresh, wait_ms: 900 }]);
  assert.deepEqual([asked[0].method, asked[0].url], ["POST", "/chat/live?chat_id=c"]);
});

test("nothing to follow is told", async () => {
  const { told } = await follow([nothing]);
  assert.deepEqual(told, ["connecting", "idle false"]);
});

test("a stream that is cut behind any frame is taken up behind it", async () => {
  const frames = [snapshot("r", 1), event("r", 2), event("r", 3), end("r", 3)];
  for (const how of ["end", "cut"]) {
    for (let cut = 0; cut < frames.length; cut += 1) {
      const rest = cut === 0 ? frames : frames.slice(cut);
      const { told, bodies } = await follow([stream(frames.slice(0, cut), how), stream(rest)]);
      const plain = told.filter((line) => !/^(connecting|live|retrying)/.test(line));
      assert.deepEqual(plain, ["snapshot r 1", "event r 2", "event r 3", "end r saved"], `${how} at ${cut}`);
      assert.deepEqual(bodies[1], cut === 0 ? fresh : from("r", cut));
    }
  }
});

test("five attempts follow the last progress, and then it is lost", async () => {
  const busy = json(503, { error: { code: "shutting_down", message: "later" } });
  const { told, notices, bodies } = await follow([
    stream([snapshot("r", 7)]),
    hangUp,
    busy,
    stream([]),
    json(200, {}),
    stream(["data: nonsense\n\n"]),
  ]);
  assert.deepEqual(told, [
    "connecting",
    "live",
    "snapshot r 7",
    "retrying 1 eof",
    "retrying 2 network",
    "retrying 3 status",
    "live",
    "retrying 4 eof",
    "retrying 5 malformed",
    "live",
    "lost lost malformed",
  ]);
  assert.deepEqual(bodies.slice(1), Array(5).fill(from("r", 7)));
  assert.match(notices.at(-1).error.message, /lost.*5 attempts/);
});

test("duplicates are dropped, and a gap is asked for again", async () => {
  const { told, bodies } = await follow([
    stream([snapshot("r", 1), event("r", 1), event("r", 2), event("r", 4)]),
    stream([event("r", 2), event("r", 3), event("r", 4), end("r", 4)]),
  ]);
  assert.deepEqual(told, [
    "connecting",
    "live",
    "snapshot r 1",
    "event r 2",
    "retrying 1 gap",
    "live",
    "event r 3",
    "event r 4",
    "end r saved",
  ]);
  assert.deepEqual(bodies[1], from("r", 2));
});

test("a replaced run leads to the new one", async () => {
  const acts = [stream([snapshot("r", 3), end("r", 3, false, true)]), stream([snapshot("s", 0), event("s", 1), end("s", 1, false)])];
  const { told, bodies } = await follow(acts);
  assert.deepEqual(told.slice(2), ["snapshot r 3", "end r unsaved superseded", "connecting", "live", "snapshot s 0", "event s 1", "end s unsaved"]);
  assert.deepEqual(bodies[1], { ...from("r", 3), wait_ms: 25_000 });
});

test("a cursor from elsewhere is asked for, also at 0", async () => {
  const { told, bodies } = await follow([stream([event("r", 1), end("r", 1)])], { cursor: { runId: "r", afterSeq: 0 } });
  assert.deepEqual(told, ["connecting", "live", "event r 1", "end r saved"]);
  assert.deepEqual(bodies, [from("r", 0)]);
});

test("what the server refuses is told with its code", async () => {
  const { told, notices } = await follow([json(400, { error: { code: "bad_request", message: "say what" } })]);
  assert.deepEqual(told, ["connecting", "lost bad_request 400"]);
  assert.equal(notices[1].error.message, "say what");
});

test("silence is a loss, and life signs are not silence", async () => {
  const alive = async (answer) => {
    answer.writeHead(200, { "Content-Type": "text/event-stream" });
    answer.write(`data: ${JSON.stringify(snapshot("r", 1))}\n\n`);
    for (let sign = 0; sign < 8; sign += 1) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      answer.write(": keep-alive\n\n");
    }
    answer.end(`data: ${JSON.stringify(end("r", 1))}\n\n`);
  };
  const { told } = await follow([stream([], "hang"), () => {}, alive], {}, { silenceMs: 200 });
  assert.deepEqual(told.filter((line) => line !== "live"), [
    "connecting",
    "retrying 1 silent",
    "retrying 2 silent",
    "snapshot r 1",
    "end r saved",
  ]);
});

test("the time that a reader takes is not silence", async () => {
  await withScript([stream([snapshot("r", 1), event("r", 2), end("r", 2)])], async (server) => {
    const told = [];
    for await (const notice of createClient({ baseUrl: server.url, silenceMs: 60 }).attach("c")) {
      told.push(brief(notice));
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    assert.deepEqual(told, ["connecting", "live", "snapshot r 1", "event r 2", "end r saved"]);
  });
});

test("a signal ends it at once and quietly, whatever it waits for", async () => {
  const cases = [
    [[stream([snapshot("r", 1)], "hang")], "snapshot r 1"],
    [[() => {}], "connecting"],
    [[hangUp], "retrying 1 network"],
  ];
  for (const [acts, last] of cases) {
    await withScript(acts, async (server) => {
      const controller = new AbortController();
      const client = createClient({ baseUrl: server.url, backoff: { firstMs: 60_000, lastMs: 60_000 } });
      const told = [];
      for await (const notice of client.attach("c", { signal: controller.signal })) {
        told.push(brief(notice));
        if (told.at(-1) === last) setTimeout(() => controller.abort(), 40);
      }
      assert.equal(told.at(-1), last);
    });
  }
});

test("leaving the loop closes the connection", async () => {
  let gone;
  const closed = new Promise((resolve) => {
    gone = resolve;
  });
  const act = (answer) => {
    answer.on("close", gone);
    stream([snapshot("r", 1)], "hang")(answer);
  };
  await withScript([act], async (server) => {
    for await (const notice of createClient({ baseUrl: server.url }).attach("c")) if (notice.type === "snapshot") break;
    await closed;
  });
});

test("an iterator that waits for bytes can be ended", async () => {
  await withScript([stream([snapshot("r", 1)], "hang")], async (server) => {
    const attachment = createClient({ baseUrl: server.url }).attach("c");
    for (let count = 0; count < 3; count += 1) await attachment.next();
    const pending = attachment.next();
    await attachment.return();
    assert.equal((await pending).done, true);
  });
});

test("a cut connection recovers", async () => {
  await withScript([stream([snapshot("r", 1)], "hang"), stream([event("r", 2), end("r", 2)])], async (server) => {
    const told = [];
    const attachment = createClient({ baseUrl: server.url, backoff: FAST }).attach("c");
    for await (const notice of attachment) {
      told.push(brief(notice));
      if (notice.type === "snapshot") {
        assert.deepEqual(attachment.cursor, { runId: "r", afterSeq: 1 });
        setTimeout(() => attachment.cut(), 20);
      }
    }
    assert.deepEqual(told.slice(2), ["snapshot r 1", "retrying 1 cut", "live", "event r 2", "end r saved"]);
  });
});

test("bytes that are cut anywhere are whole again", async () => {
  const bytes = Buffer.from(`data: ${JSON.stringify(snapshot("r", 1, [text("é日👩‍🚀")]))}\r\n\r\ndata: ${JSON.stringify(end("r", 1))}\r\n\r\n`);
  const trickle = async (answer) => {
    answer.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" });
    for (const byte of bytes) {
      answer.write(Uint8Array.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    answer.end();
  };
  const { notices } = await follow([trickle]);
  assert.deepEqual(notices[2].events, [text("é日👩‍🚀")]);
});

test("no network after the last attempt waits for one", async (context) => {
  const listeners = new Set();
  const navigator = { onLine: false };
  for (const [name, value] of Object.entries({
    navigator,
    addEventListener: (type, listener) => type === "online" && listeners.add(listener),
    removeEventListener: (_, listener) => listeners.delete(listener),
  })) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, { value, configurable: true });
    context.after(() => (before ? Object.defineProperty(globalThis, name, before) : delete globalThis[name]));
  }
  await withScript([hangUp, hangUp, stream([snapshot("r", 0), end("r", 0)])], async (server) => {
    const told = [];
    for await (const notice of createClient({ baseUrl: server.url, backoff: { ...FAST, attemptsMax: 1 } }).attach("c")) {
      told.push(brief(notice));
      if (notice.state === "offline") {
        setTimeout(() => {
          navigator.onLine = true;
          for (const listener of [...listeners]) listener();
        }, 20);
      }
    }
    assert.deepEqual(told, ["connecting", "retrying 1 network", "offline", "connecting", "live", "snapshot r 0", "end r saved"]);
    assert.equal(listeners.size, 0);
  });
});

test("nobody comes back earlier than the server asked for", async () => {
  const later = (value) => (answer) => answer.writeHead(503, { "Retry-After": value }).end();
  const { notices } = await follow([later("1"), later("Fri, 31 Dec 1999 23:59:59 GMT"), nothing]);
  const delays = notices.filter(({ state }) => state === "retrying").map(({ delayMs }) => delayMs);
  assert.ok(delays[0] > 1_000 && delays[0] <= 1_001, `${delays[0]}`);
  assert.ok(delays[1] <= FAST.lastMs, "a date counts as nothing");
});
