import assert from "node:assert/strict";
import test from "node:test";

import { createClient } from "../src/index.js";
import { FAST, collect, end, event, hangUp, nothing, snapshot, stream, text, withScript } from "./support/scripted.mjs";

class MemoryStorage extends Map {
  getItem = (key) => this.get(key) ?? null;
  setItem = (key, value) => void this.set(key, value);
  removeItem = (key) => void this.delete(key);
}

const textOf = (transcript) => transcript.parts.map((part) => part.text).join("");

/** Follows up to and with the first notice of this type, as a page that is then reloaded. */
async function until(client, type, options = { seed: true }) {
  const notices = [];
  for await (const notice of client.attach("c", options)) {
    notices.push(notice);
    if (notice.type === type) return notices;
  }
  return notices;
}

test("a reload begins with the last picture, asks without a cursor, and a snapshot replaces the picture", async () => {
  const storage = new MemoryStorage();
  const acts = [stream([snapshot("r", 1, [text("a")]), event("r", 2, text("b"))], "hang"), stream([snapshot("r", 2, [text("ab")]), end("r", 2)])];
  await withScript(acts, async (server) => {
    const client = createClient({ baseUrl: server.url, storage });
    await until(client, "event");
    const notices = await until(client, "end");
    assert.deepEqual(notices.map(({ type }) => type), ["seed", "connection", "connection", "snapshot", "end"]);
    assert.deepEqual([notices[0].runId, notices[0].seq, textOf(notices[0].transcript)], ["r", 2, "ab"]);
    assert.deepEqual(server.asked[1].body, { chat_id: "c", protocol: 1, wait_ms: 0 }, "a picture is no cursor");
    assert.equal(storage.size, 0, "what has ended is in the history");
  });
});

test("nothing to observe drops the picture, a lost connection keeps it", async () => {
  const storage = new MemoryStorage();
  const acts = [stream([snapshot("r", 1, [text("a")])], "cut"), hangUp, nothing];
  await withScript(acts, async (server) => {
    const client = createClient({ baseUrl: server.url, storage, backoff: { ...FAST, attemptsMax: 1 } });
    const lost = await until(client, "lost");
    assert.equal(lost.at(-1).type, "lost");
    assert.equal(storage.size, 1);
    await until(client, "idle");
    assert.equal(storage.size, 0);
  });
});

test("pictures are of one chat, and only for who asks", async () => {
  const storage = new MemoryStorage();
  const hanging = stream([snapshot("r", 1, [text("a")])], "hang");
  await withScript([hanging, nothing, nothing], async (server) => {
    const client = createClient({ baseUrl: server.url, storage });
    await until(client, "snapshot");
    assert.deepEqual((await collect(client.attach("d", { seed: true }))).map(({ type }) => type), ["connection", "idle"]);
    assert.deepEqual((await collect(client.attach("c"))).map(({ type }) => type), ["connection", "idle"]);
  });
});

test("a broken picture and a full or forbidden storage are no picture", async () => {
  const full = { getItem: () => null, setItem: () => assert.fail("full"), removeItem: () => assert.fail("full") };
  const forbidden = { getItem: () => assert.fail("forbidden"), setItem: () => assert.fail("forbidden"), removeItem: () => assert.fail("forbidden") };
  const broken = (text) => ({ ...full, getItem: () => text });
  for (const storage of [full, forbidden, broken("{"), broken("[]"), broken('{"runId":"r","seq":1,"transcript":{}}'), broken("7"), null]) {
    await withScript([stream([snapshot("r", 1, [text("a")]), end("r", 1)])], async (server) => {
      const notices = await until(createClient({ baseUrl: server.url, storage }), "end");
      assert.deepEqual(notices.map(({ type }) => type), ["connection", "connection", "snapshot", "end"]);
    });
  }
});

test("a picture that is too long is not kept", async () => {
  const storage = new MemoryStorage();
  await withScript([stream([snapshot("r", 1, [text("x".repeat(1_000_001))])], "hang")], async (server) => {
    await until(createClient({ baseUrl: server.url, storage }), "snapshot");
    assert.equal(storage.size, 0);
  });
});
