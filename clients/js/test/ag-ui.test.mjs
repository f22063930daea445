// The AG-UI agent under @ag-ui/client's own pipeline, which verifies every sequence, against the real server.

process.env.SUPPRESS_TRANSFORMATION_WARNINGS = "true";

import assert from "node:assert/strict";
import test from "node:test";

import { verifyEvents } from "@ag-ui/client";
import { from, lastValueFrom, toArray } from "rxjs";

import { RejoinAgent } from "../src/ag-ui.js";
import { Continuation } from "../src/ag-ui-continuation.js";
import { OpenEntities } from "../src/ag-ui-open.js";
import { createClient, transcriptOf } from "../src/index.js";
import { begin, finish, more, startAgent } from "./support/agent.mjs";
import { compact } from "./support/compact.mjs";
import { dice, randomRun } from "./support/random.mjs";
import { cuttingProxy, produce, withServer } from "./support/rejoin.mjs";
import { FAST, end, event, hangUp, json, snapshot, stream, withScript } from "./support/scripted.mjs";

async function withAgent(test, args = []) {
  const agent = await startAgent();
  try {
    await withServer(["--agent", agent.url, ...args], (server) => test(agent, server));
  } finally {
    await agent.close();
  }
}

/** A front end's agent. `notices` is what its connection tells, `types` the types of what it emits. */
function frontEnd(url, threadId = "c", options = {}) {
  const notices = [];
  const types = [];
  const agent = new RejoinAgent({
    client: createClient({ baseUrl: url, backoff: { ...FAST, attemptsMax: 50 } }),
    threadId,
    onNotice: (notice) => notices.push(notice),
    ...options,
  });
  agent.subscribe({ onEvent: ({ event }) => void types.push(event.type) });
  return { agent, notices, types };
}

const say = (agent, content, id = `u${agent.messages.length}`) => agent.addMessage({ id, role: "user", content });

const shown = (agent) => agent.messages.map(({ role, content }) => [role, content]);

test("what a snapshot adds to what was emitted is exactly the rest, wherever it comes", async () => {
  for (let seed = 1; seed <= 400; seed += 1) {
    const events = randomRun(seed, 60);
    const roll = dice(seed);
    const emitted = [];
    const continuation = new Continuation();
    let at = 0;
    while (at < events.length) {
      const goOn = Math.min(events.length, at + roll(9));
      for (const event of events.slice(at, goOn)) {
        continuation.note(event);
        emitted.push(event);
      }
      at = Math.min(events.length, goOn + roll(9));
      emitted.push(...continuation.rest(compact(events.slice(0, at))));
      assert.deepEqual(continuation.rest(compact(events.slice(0, at))), [], `seed ${seed}: again is nothing new`);
    }
    assert.deepEqual(transcriptOf(emitted), transcriptOf(events), `seed ${seed}`);
    const verified = await lastValueFrom(from(emitted.filter(({ type }) => !type.endsWith("_CHUNK"))).pipe(verifyEvents(), toArray()));
    assert.equal(verified.at(-1).type, "RUN_FINISHED");
  }
});

test("what is open is closed so that another run may begin", async () => {
  for (let seed = 1; seed <= 100; seed += 1) {
    const events = randomRun(seed, 60).slice(0, -1);
    const before = events.slice(0, 1 + (seed % events.length)).filter(({ type }) => !type.endsWith("_CHUNK"));
    const open = new OpenEntities();
    before.forEach((event) => open.note(event));
    const all = [...before, ...open.close(), { type: "RUN_STARTED", threadId: "c", runId: "b" }, { type: "RUN_FINISHED", threadId: "c", runId: "b" }];
    await lastValueFrom(from(all).pipe(verifyEvents(), toArray()));
    all.forEach((event) => open.note(event));
    assert.deepEqual(open.close(), []);
  }
  const open = new OpenEntities();
  for (const event of [
    { type: "RUN_STARTED", threadId: "c", runId: "a" },
    { type: "STEP_STARTED", stepName: "s" },
    { type: "SUBAGENT_STARTED", subagentRunId: "x", name: "helper" },
    { type: "SUBAGENT_STARTED", subagentRunId: "y", name: "helper" },
    { type: "SUBAGENT_ERROR", subagentRunId: "y", message: "no" },
    { type: "TEXT_MESSAGE_START", messageId: "m", subagentRunId: "x" },
  ]) open.note(event);
  assert.deepEqual(open.close().map(({ type }) => type), ["TEXT_MESSAGE_END", "SUBAGENT_FINISHED", "STEP_FINISHED", "RUN_FINISHED"]);
});

test("a turn is sent, observed and saved", async () => {
  await withAgent(async (upstream, server) => {
    const { agent, notices } = frontEnd(server.url);
    say(agent, "hi");
    const running = agent.runAgent({ tools: [{ name: "t", description: "d", parameters: {} }], context: [{ description: "k", value: "v" }], forwardedProps: { f: 1 } });
    const turn = await upstream.turn();
    assert.deepEqual([turn.input.messages[0].content, turn.input.tools[0].name, turn.input.context[0].value, turn.input.forwardedProps], ["hi", "t", "v", { f: 1 }]);
    turn.say(...begin(turn.input, "Hel"), more("lo"), ...finish(turn.input));
    turn.end();
    const { newMessages } = await running;
    assert.deepEqual(newMessages.map(({ role, content }) => [role, content]), [["assistant", "Hello"]]);
    assert.equal(notices.at(-1).type, "end");
    assert.equal(notices.at(-1).persisted, true);
  });
});

test("neither cuts nor snapshots in mid-stream double or lose a word", async () => {
  for (const window of [4096, 6]) {
    await withAgent(async (upstream, server) => {
      let size = 700;
      const proxy = await cuttingProxy(server.port, () => (size += 120));
      const { agent, notices } = frontEnd(proxy.url);
      say(agent, "count");
      // The send itself must come through: it is never repeated.
      const running = agent.runAgent();
      const turn = await upstream.turn();
      turn.say(...begin(turn.input, "0"));
      let expected = "0";
      for (let number = 1; number < 150; number += 1) {
        const word = ` ${number}é👩‍🚀`;
        expected += word;
        turn.say(more(word));
        if (number % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
      }
      turn.say(...finish(turn.input));
      turn.end();
      await running;
      assert.equal(agent.messages.at(-1).content, expected);
      assert.ok(proxy.cuts() >= 3, `${proxy.cuts()} cuts`);
      const snapshots = notices.filter(({ type }) => type === "snapshot").length;
      assert.ok(window > 6 || snapshots >= 1, `${snapshots} snapshots with a window of ${window}`);
      await proxy.close();
    }, ["--window-events", String(window)]);
  }
});

test("a snapshot in mid-stream emits the rest of a delta only", async () => {
  const started = { type: "RUN_STARTED", threadId: "c", runId: "a" };
  const start = { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" };
  const text = (delta) => ({ type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta });
  const last = [{ type: "TEXT_MESSAGE_END", messageId: "m" }, { type: "RUN_FINISHED", threadId: "c", runId: "a" }];
  const acts = [
    json(202, { chat_id: "c", run_id: "r" }),
    stream([event("r", 1, started), event("r", 2, start), event("r", 3, text("ab")), event("r", 4, text("c"))], "cut"),
    stream([snapshot("r", 6, [started, start, text("abcdef")]), event("r", 7, last[0]), event("r", 8, last[1]), end("r", 8)]),
  ];
  await withScript(acts, async (server) => {
    const { agent } = frontEnd(server.url);
    const deltas = [];
    agent.subscribe({ onTextMessageContentEvent: ({ event }) => void deltas.push(event.delta) });
    say(agent, "hi");
    await agent.runAgent();
    assert.deepEqual(deltas, ["ab", "c", "def"]);
    assert.deepEqual(server.asked[1].body, { chat_id: "c", protocol: 1, wait_ms: 0, run_id: "r", after_seq: 0 });
  });
});

test("a lost acknowledgement is looked for, never sent again", async () => {
  const events = [{ type: "RUN_STARTED", threadId: "c", runId: "a" }, { type: "RUN_FINISHED", threadId: "c", runId: "a" }];
  await withScript([hangUp, stream([snapshot("r", 2, events), end("r", 2)])], async (server) => {
    const { agent, types } = frontEnd(server.url);
    say(agent, "hi");
    await agent.runAgent();
    assert.deepEqual(types, ["RUN_STARTED", "RUN_FINISHED"]);
    assert.deepEqual(server.asked.map(({ url }) => url), ["/chat/send?chat_id=c", "/chat/live?chat_id=c"]);
  });
});

/** The error that a run fails with; the client also writes it to the console. */
async function failure(context, run) {
  context.mock.method(console, "error", () => {});
  return run.then(
    () => assert.fail("it did not fail"),
    (error) => error,
  );
}

test("what can't be recovered fails the run and keeps what was received", async (context) => {
  const started = [{ type: "RUN_STARTED", threadId: "c", runId: "a" }, { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" }, { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "so far" }];
  const acts = [json(202, { chat_id: "c", run_id: "r" }), stream([snapshot("r", 3, started)], "cut"), hangUp];
  await withScript(acts, async (server) => {
    const client = createClient({ baseUrl: server.url, backoff: { ...FAST, attemptsMax: 1 } });
    const { agent } = frontEnd(server.url, "c", { client });
    say(agent, "hi");
    const error = await failure(context, agent.runAgent());
    assert.equal(error.code, "lost");
    assert.equal(agent.messages.at(-1).content, "so far");
  });
});

test("a refused send fails the run with the server's words", async (context) => {
  await withServer([], async (server) => {
    const { agent } = frontEnd(server.url);
    say(agent, "hi");
    assert.equal((await failure(context, agent.runAgent())).code, "no_agent");
  });
});

test("a steer from elsewhere closes the run that is shown, and the new one is shown", async () => {
  await withAgent(async (upstream, server) => {
    const { agent, types } = frontEnd(server.url);
    say(agent, "hi");
    const running = agent.runAgent();
    const first = await upstream.turn();
    first.say(...begin(first.input, "old"));
    while (!types.includes("TEXT_MESSAGE_CONTENT")) await new Promise((resolve) => setTimeout(resolve, 5));
    await createClient({ baseUrl: server.url }).steer("c", "rather");
    const second = await upstream.turn();
    second.say(...begin(second.input, "new", "m2"), ...finish(second.input, "m2"));
    second.end();
    await running;
    assert.deepEqual(shown(agent).slice(1), [["assistant", "old"], ["assistant", "new"]]);
    assert.equal(types.filter((type) => type === "RUN_FINISHED").length, 2);
  });
});

test("abortRun stops the turn at the server, also one that is only being sent", async (context) => {
  for (const early of [true, false]) {
    await withAgent(async (upstream, server) => {
      const { agent, types } = frontEnd(server.url);
      say(agent, "hi");
      let code;
      agent.subscribe({ onRunErrorEvent: ({ event }) => void (code = event.code) });
      const running = agent.runAgent().catch(() => undefined);
      context.mock.method(console, "error", () => {});
      if (early) await new Promise((resolve) => setTimeout(resolve, 0));
      else {
        const turn = await upstream.turn();
        turn.say(...begin(turn.input, "par"));
        while (!types.includes("TEXT_MESSAGE_CONTENT")) await new Promise((resolve) => setTimeout(resolve, 5));
      }
      agent.abortRun();
      await running;
      if (!early) assert.equal(code, "stopped");
      const { turns } = await createClient({ baseUrl: server.url }).wholeChat("c");
      assert.deepEqual(turns.map(({ persisted }) => persisted), [true]);
    });
  }
});

test("leaving does not stop the turn, and connecting shows the conversation and goes on", async () => {
  await withAgent(async (upstream, server) => {
    const first = frontEnd(server.url);
    say(first.agent, "hi");
    const running = first.agent.runAgent();
    const turn = await upstream.turn();
    turn.say(...begin(turn.input, "Hel"));
    while (!first.types.includes("TEXT_MESSAGE_CONTENT")) await new Promise((resolve) => setTimeout(resolve, 5));
    await first.agent.detachActiveRun();
    await running;

    const second = frontEnd(server.url);
    const connected = second.agent.connectAgent();
    while (!second.types.includes("TEXT_MESSAGE_CONTENT")) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.deepEqual(shown(second.agent), [["user", "hi"], ["assistant", "Hel"]]);
    turn.say(more("lo"), ...finish(turn.input));
    turn.end();
    await connected;
    assert.deepEqual(shown(second.agent), [["user", "hi"], ["assistant", "Hello"]]);

    const third = frontEnd(server.url);
    await third.agent.connectAgent();
    assert.deepEqual(shown(third.agent), [["user", "hi"], ["assistant", "Hello"]]);
    assert.deepEqual(third.types, ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
    // And the conversation goes on from there.
    say(third.agent, "more", "u-more");
    const next = third.agent.runAgent();
    const more2 = await upstream.turn();
    assert.deepEqual(more2.input.messages.map(({ content }) => content), ["hi", "Hello", "more"]);
    more2.say(...begin(more2.input, "Yes", "m2"), ...finish(more2.input, "m2"));
    more2.end();
    await next;
    assert.deepEqual(shown(third.agent).at(-1), ["assistant", "Yes"]);
  });
});

test("a run that is saved while the conversation is read is shown once", async () => {
  const message = { id: "m", role: "assistant", content: "Hello" };
  const turn = { turn: 1, run_id: "r", trigger: "user", seq: 3, persisted: true, superseded: false, closed: null, events: [] };
  const events = [{ type: "RUN_STARTED", threadId: "c", runId: "a" }, { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" }, { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "Hello" }];
  const acts = [stream([snapshot("r", 3, events)], "hang"), json(200, { chat_id: "c", revision: 1, messages: [message], turns: [turn], next: null })];
  await withScript(acts, async (server) => {
    const { agent } = frontEnd(server.url);
    await agent.connectAgent();
    assert.deepEqual(shown(agent), [["assistant", "Hello"]]);
  });
});

test("a chat that nobody has begun connects to nothing and keeps what the front end has", async () => {
  await withServer([], async (server) => {
    const { agent, types } = frontEnd(server.url, "new", { initialMessages: [{ id: "w", role: "assistant", content: "Welcome" }] });
    await agent.connectAgent();
    assert.deepEqual(shown(agent), [["assistant", "Welcome"]]);
    assert.deepEqual(types, ["RUN_STARTED", "RUN_FINISHED"]);
  });
});

test("every random run gets through connect with AG-UI's checks, however it is cut", async () => {
  for (let seed = 1; seed <= 8; seed += 1) {
    await withServer(["--window-events", "8"], async (server) => {
      let size = 300;
      const proxy = await cuttingProxy(server.port, () => (size += 700));
      const run = await produce(server, "c");
      const events = randomRun(seed, 80);
      await run.append(events.slice(0, 5));
      const { agent } = frontEnd(proxy.url);
      const connected = agent.connectAgent();
      for (let at = 5; at < events.length; at += 4) {
        await run.append(events.slice(at, at + 4));
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      await run.finish();
      await connected;
      const expected = transcriptOf(events).parts.filter(({ kind, text }) => kind === "text" && text !== "");
      for (const { messageId, text } of expected) {
        assert.equal(agent.messages.find(({ id }) => id === messageId)?.content, text, `seed ${seed}, ${messageId}`);
      }
      await proxy.close();
    });
  }
});

test("an interrupt is answered with resume", async () => {
  await withAgent(async (upstream, server) => {
    const { agent } = frontEnd(server.url);
    say(agent, "hi");
    const running = agent.runAgent();
    const turn = await upstream.turn();
    const { threadId, runId } = turn.input;
    turn.say({ type: "RUN_STARTED", threadId, runId }, { type: "RUN_FINISHED", threadId, runId, outcome: { type: "interrupt", interrupts: [{ id: "i", reason: "ask" }] } });
    turn.end();
    await running;
    assert.equal(agent.pendingInterrupts.length, 1);
    const resumed = agent.runAgent({ resume: [{ interruptId: "i", status: "resolved", payload: true }] });
    const next = await upstream.turn();
    assert.deepEqual(next.input.resume, [{ interruptId: "i", status: "resolved", payload: true }]);
    assert.equal(next.input.messages.length, 1, "nothing is asked twice");
    next.say(...begin(next.input, "ok"), ...finish(next.input));
    next.end();
    await resumed;
    assert.deepEqual([agent.pendingInterrupts, shown(agent).at(-1)], [[], ["assistant", "ok"]]);
  });
});

test("files in a message are files of the turn", async () => {
  await withAgent(async (upstream, server) => {
    const { agent } = frontEnd(server.url);
    say(agent, [
      { type: "text", text: "look" },
      { type: "image", source: { type: "data", value: "AQID", mimeType: "image/png" }, metadata: { filename: "a.png" } },
    ]);
    const running = agent.runAgent();
    const turn = await upstream.turn();
    assert.deepEqual(turn.input.messages[0].content[1], {
      type: "image",
      source: { type: "data", value: "AQID", mimeType: "image/png" },
      metadata: { filename: "a.png" },
    });
    turn.say(...begin(turn.input, "ok"), ...finish(turn.input));
    turn.end();
    await running;
  });
});

test("the result of a front end's tool goes as the whole input, and is observed like any turn", async () => {
  await withAgent(async (upstream, server) => {
    const { agent } = frontEnd(server.url);
    say(agent, "what time is it");
    const running = agent.runAgent();
    const turn = await upstream.turn();
    const { threadId, runId } = turn.input;
    turn.say(
      { type: "RUN_STARTED", threadId, runId },
      { type: "TOOL_CALL_START", toolCallId: "t", toolCallName: "clock" },
      { type: "TOOL_CALL_ARGS", toolCallId: "t", delta: "{}" },
      { type: "TOOL_CALL_END", toolCallId: "t" },
      { type: "RUN_FINISHED", threadId, runId },
    );
    turn.end();
    await running;
    agent.addMessage({ id: "result", role: "tool", toolCallId: "t", content: "noon" });
    const again = agent.runAgent();
    const next = await upstream.turn();
    assert.equal(next.input.messages.at(-1).content, "noon");
    next.say(...begin(next.input, "Noon."), ...finish(next.input));
    next.end();
    await again;
    assert.deepEqual(shown(agent).at(-1), ["assistant", "Noon."]);
  });
});

test("a clone asks the same server", async () => {
  await withAgent(async (upstream, server) => {
    const { agent } = frontEnd(server.url);
    const clone = agent.clone();
    clone.threadId = "d";
    say(clone, "hi");
    const running = clone.runAgent();
    const turn = await upstream.turn();
    assert.equal(turn.input.threadId, "d");
    turn.say(...begin(turn.input, "ok"), ...finish(turn.input));
    turn.end();
    await running;
    assert.deepEqual(shown(clone).at(-1), ["assistant", "ok"]);
  });
});
