// Against the real server: REJOIN_BIN has to name it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

import { applyNotice, createClient, emptyTranscript, transcriptOf } from "../src/index.js";
import { begin, finish, more, startAgent } from "./support/agent.mjs";
import { dice, randomRun } from "./support/random.mjs";
import { cuttingProxy, produce, serve, withServer } from "./support/rejoin.mjs";
import { FAST, brief, collect } from "./support/scripted.mjs";

const FAKE_ACP = fileURLToPath(new URL("../../../tests/agents/fake_acp.py", import.meta.url));

/** Runs a test with an AG-UI agent behind the server. */
async function withAgent(test, args = []) {
  const agent = await startAgent();
  try {
    await withServer(["--agent", agent.url, ...args], (server) => test(agent, createClient({ baseUrl: server.url, backoff: FAST }), server));
  } finally {
    await agent.close();
  }
}

/** Follows to the end; `each` is told every notice. */
async function follow(attachment, each = () => {}) {
  let transcript = emptyTranscript();
  let end = null;
  for await (const notice of attachment) {
    transcript = applyNotice(transcript, notice);
    if (notice.type === "end") end = notice;
    await each(notice, transcript);
  }
  return { transcript, end };
}

/** Waits for the first notice of this type. */
async function until(attachment, fits) {
  for (;;) {
    const { done, value } = await attachment.next();
    assert.ok(!done, "the notices ended");
    if (fits(value)) return value;
  }
}

const isEvent = (fits) => (notice) =>
  (notice.type === "event" && fits(notice.event)) || (notice.type === "snapshot" && notice.events.some(fits));

test("a run survives a connection that is cut again and again, with and without a window", async () => {
  for (const [seed, window] of [[1, 4096], [2, 4096], [3, 8], [4, 8]]) {
    await withServer(["--window-events", String(window)], async (server) => {
      const roll = dice(seed);
      // More each time, or a snapshot would never come through.
      let size = 300;
      const proxy = await cuttingProxy(server.port, () => (size += roll(900)));
      const events = randomRun(seed, 120);
      const run = await produce(server, "c");
      const client = createClient({ baseUrl: proxy.url, backoff: { ...FAST, attemptsMax: 50 } });
      const following = follow(client.attach("c"));
      for (let at = 0; at < events.length; at += 3) {
        await run.append(events.slice(at, at + 3));
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      await run.finish();
      const { transcript, end } = await following;
      assert.deepEqual(transcript, transcriptOf(events), `seed ${seed}, window ${window}`);
      assert.deepEqual([end.persisted, end.seq], [true, events.length]);
      assert.ok(proxy.cuts() >= 2, `${proxy.cuts()} cuts`);
      await proxy.close();
      const { turns } = await createClient({ baseUrl: server.url }).chat("c");
      assert.deepEqual(transcriptOf(turns[0].events), transcript, "the history shows the same");
    });
  }
});

test("a turn that is over before it is followed is found by its cursor", async () => {
  await withAgent(async (agent, client) => {
    const accepted = client.send("c", "hi");
    const turn = await agent.turn();
    turn.say(...begin(turn.input, "Hello"), ...finish(turn.input));
    turn.end();
    const { runId } = await accepted;
    for (let attempt = 0; !(await client.chat("c")).turns[0].persisted; attempt += 1) {
      assert.ok(attempt < 200, "it is saved");
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.deepEqual((await collect(client.attach("c"))).map(brief), ["connecting", "idle false"]);
    const { transcript, end } = await follow(client.attach("c", { cursor: { runId, afterSeq: 0 } }));
    assert.deepEqual([transcript.parts[0].text, end.persisted], ["Hello", true]);
    const whole = await client.wholeChat("c");
    assert.deepEqual(whole.messages.map(({ role, content }) => [role, content]), [["user", "hi"], ["assistant", "Hello"]]);
  });
});

test("a wait for a run begins at its first event", async () => {
  await withServer([], async (server) => {
    const client = createClient({ baseUrl: server.url });
    const attachment = client.attach("c", { waitMs: 20_000 });
    await attachment.next();
    const live = attachment.next();
    await new Promise((resolve) => setTimeout(resolve, 50));
    const run = await produce(server, "c");
    assert.equal((await live).value.state, "live");
    assert.deepEqual((await attachment.next()).value, { type: "snapshot", runId: run.runId, seq: 0, events: [] });
    await attachment.return();
  });
});

test("a steer is followed, and its partial answer is saved", async () => {
  await withAgent(async (agent, client) => {
    await client.send("c", "first");
    const first = await agent.turn();
    first.say(...begin(first.input, "I thi"));
    const attachment = client.attach("c");
    await until(attachment, isEvent(({ delta }) => delta === "I thi"));
    const { runId } = await client.steer("c", "rather");
    const second = await agent.turn();
    assert.equal(second.input.messages.at(-1).content, "rather");
    second.say(...begin(second.input, "Rather", "m2"), ...finish(second.input, "m2"));
    second.end();
    const rest = await collect(attachment);
    const ends = rest.filter(({ type }) => type === "end");
    assert.deepEqual(ends.map(({ superseded, persisted }) => [superseded, persisted]), [[true, false], [false, true]]);
    assert.equal(ends[1].runId, runId);
    const { turns } = await client.wholeChat("c");
    assert.deepEqual(turns.map(({ superseded, persisted }) => [superseded, persisted]), [[true, true], [false, true]]);
  });
});

test("a stop keeps the partial answer, a retry takes it back, an edit replaces the question", async () => {
  await withAgent(async (agent, client) => {
    await client.send("c", "one");
    const first = await agent.turn();
    first.say(...begin(first.input, "par"));
    const attachment = client.attach("c");
    await until(attachment, isEvent(({ delta }) => delta === "par"));
    await assert.rejects(client.send("c", "two"), { code: "already_streaming", status: 409 });
    const stopped = await client.stop("c", { reason: "enough" });
    assert.equal(stopped.persisted, true);
    const { transcript, end } = await follow(attachment);
    assert.deepEqual([transcript.error.code, end.runId, end.persisted], ["stopped", stopped.runId, true]);
    await assert.rejects(client.stop("c"), { code: "no_active_run", status: 404 });

    const { runId } = await client.retry("c", { messageIndex: 0, message: "uno" });
    const second = await agent.turn();
    assert.deepEqual(second.input.messages.map(({ content }) => content), ["uno"]);
    second.say(...begin(second.input, "due"), ...finish(second.input));
    second.end();
    const again = await follow(client.attach("c", { cursor: { runId, afterSeq: 0 } }));
    assert.equal(again.end.persisted, true);
    assert.deepEqual((await client.wholeChat("c")).messages.map(({ content }) => content), ["uno", "due"]);
    await assert.rejects(client.retry("nobody"), { code: "nothing_to_retry", status: 409 });
  });
});

test("files and what is passed on reach the agent", async () => {
  await withAgent(async (agent, client) => {
    const files = [{ name: "a.png", mimeType: "image/png", data: Uint8Array.of(1, 2, 3) }];
    await client.send("c", "look", { files, payload: { n: 1 }, config: { state: { s: 1 }, forwardedProps: { f: 1 } } });
    const { input } = await agent.turn();
    assert.deepEqual(input.messages[0].content[1].source, { type: "data", value: "AQID", mimeType: "image/png" });
    assert.deepEqual([input.state, input.forwardedProps], [{ s: 1 }, { f: 1, payload: { n: 1 } }]);
  });
});

test("a permission that one client answers is resolved for the other, and after a reload", async () => {
  await withServer(["--agent", `acp:python3 '${FAKE_ACP}'`], async (server) => {
    const [one, two] = [createClient({ baseUrl: server.url }), createClient({ baseUrl: server.url })];
    await one.send("c", "permission");
    const attachments = [one.attach("c"), two.attach("c")];
    const asks = isEvent(({ name }) => name === "acp.permission_request");
    const notices = await Promise.all(attachments.map((attachment) => until(attachment, asks)));
    const asking = notices.map((notice) => (notice.type === "snapshot" ? notice.events : [notice.event]));
    const part = transcriptOf(asking[0]).parts.find(({ kind }) => kind === "permission");
    assert.equal(part.resolved, null);
    const { optionId } = part.options[0];
    const outcome = await one.respond("c", part.requestId, { optionId });
    assert.deepEqual(outcome, { requestId: part.requestId, outcome: "selected", optionId });
    await assert.rejects(two.respond("c", part.requestId, { cancelled: true }), (error) => {
      assert.deepEqual([error.code, error.details], ["already_answered", { outcome: "selected", option_id: optionId }]);
      return true;
    });
    const rest = await collect(attachments[1]);
    assert.ok(rest.some(isEvent(({ name }) => name === "acp.permission_resolved")));
    const { turns } = await two.chat("c");
    const saved = transcriptOf(turns[0].events).parts.find(({ kind }) => kind === "permission");
    assert.deepEqual(saved.resolved, { outcome: "selected", optionId });
    await attachments[0].return();
  });
});

test("a form is filled in, with the answer in every replay", async () => {
  await withServer(["--agent", `acp:python3 '${FAKE_ACP}'`], async (server) => {
    const client = createClient({ baseUrl: server.url });
    await client.send("c", "form");
    let answered = null;
    const { transcript } = await follow(client.attach("c"), async (_, now) => {
      const form = now.parts.find(({ kind, resolved }) => kind === "form" && resolved === null);
      if (form && answered === null) {
        answered = form.requestId;
        await client.respond("c", form.requestId, { action: "accept", content: { name: "Ada" } });
      }
    });
    const form = transcript.parts.find(({ requestId }) => requestId === answered);
    assert.deepEqual(form.resolved, { outcome: "accepted", content: { name: "Ada" } });
  });
});

test("a save that fails is never called saved", async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), "rejoin-js-"));
  const db = path.join(folder, "rejoin.db");
  // Another process that holds the database's lock.
  const script = "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute('BEGIN IMMEDIATE'); print('held',flush=True); sys.stdin.read()";
  await withServer(
    ["--commit-timeout", "1"],
    async (server) => {
      const client = createClient({ baseUrl: server.url });
      const run = await produce(server, "c");
      await run.append([{ type: "TEXT_MESSAGE_CHUNK", messageId: "m", delta: "lost?" }]);
      const locker = spawn("python3", ["-c", script, db], { stdio: ["pipe", "pipe", "inherit"] });
      await once(locker.stdout, "data");
      const following = follow(client.attach("c"));
      await run.finish();
      const { transcript, end } = await following;
      assert.deepEqual([transcript.parts[0].text, end.persisted, end.superseded], ["lost?", false, false]);
      const again = await follow(client.attach("c"));
      assert.deepEqual([again.transcript.parts[0].text, again.end.persisted], ["lost?", false], "it can still be shown");
      locker.stdin.end();
      await once(locker, "exit");
    },
    { db },
  );
  await rm(folder, { recursive: true });
});

test("a deleted chat ends its run unsaved", async () => {
  await withServer([], async (server) => {
    const client = createClient({ baseUrl: server.url });
    await produce(server, "c/ü");
    const attachment = client.attach("c/ü");
    await until(attachment, ({ type }) => type === "snapshot");
    await client.deleteChat("c/ü");
    assert.deepEqual((await collect(attachment)).map(brief).at(-1).replace(/ [^ ]+ /, " "), "end unsaved");
  });
});

test("a server that comes back without its runs is told as idle, one that doesn't as lost", async () => {
  const server = await serve();
  const run = await produce(server, "c");
  await run.append([{ type: "TEXT_MESSAGE_CHUNK", messageId: "m", delta: "x" }]);
  const client = createClient({ baseUrl: server.url, backoff: { firstMs: 100, lastMs: 400, attemptsMax: 5 } });
  const attachments = [client.attach("c"), createClient({ baseUrl: server.url, backoff: FAST }).attach("c")];
  for (const attachment of attachments) await until(attachment, ({ type }) => type === "snapshot");
  await server.stop("SIGKILL");
  assert.equal((await collect(attachments[1])).at(-1).error.code, "lost");
  const again = await serve([], { listen: `127.0.0.1:${server.port}` });
  assert.deepEqual((await collect(attachments[0])).at(-1), { type: "idle", attached: true });
  await again.stop();
});

test("lists of conversations and the bus agree with what happens", async () => {
  await withServer([], async (server) => {
    const client = createClient({ baseUrl: server.url });
    const bus = client.bus();
    const next = async () => {
      for (;;) {
        const { value } = await bus.next();
        if (value.type !== "connection") return value;
      }
    };
    assert.deepEqual(await next(), { type: "snapshot", streams: [] });
    const run = await produce(server, "a", { trigger: "schedule" });
    assert.deepEqual(await next(), { type: "started", chatId: "a", runId: run.runId, trigger: "schedule", queued: false });
    await run.append([{ type: "CUSTOM", name: "x", value: 1 }]);
    await run.finish();
    assert.deepEqual(await next(), { type: "ended", chatId: "a", runId: run.runId, persisted: true, superseded: false });
    await bus.return();
    const other = await produce(server, "b");
    await other.append([{ type: "CUSTOM", name: "x", value: 1 }]);
    await other.finish();
    const page = await client.chats();
    assert.deepEqual(page.chats.map(({ chatId, turns }) => [chatId, turns]).sort(), [["a", 1], ["b", 1]]);
    await assert.rejects(client.send("a", "hi"), { code: "no_agent", status: 503 });
  });
});

test("an agent's text grows while it is followed", async () => {
  await withAgent(async (agent, client) => {
    await client.send("c", "hi");
    const turn = await agent.turn();
    turn.say(...begin(turn.input, "a"));
    const seen = [];
    await follow(client.attach("c"), (notice, { parts }) => {
      const text = parts.at(-1)?.text ?? "";
      if (text.length === seen.length + 1 && text.length < 5) {
        seen.push(text);
        turn.say(more("bcde"[text.length - 1] ?? "!"));
      }
      if (text.length === 5 && seen.length === 4) {
        seen.push(text);
        turn.say(...finish(turn.input));
        turn.end();
      }
    });
    assert.deepEqual(seen, ["a", "ab", "abc", "abcd", "abcde"]);
  });
});
