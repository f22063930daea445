import assert from "node:assert/strict";
import test from "node:test";

import { RejoinError, createClient } from "../src/index.js";
import { collect, end, event, hangUp, json, nothing, stream, withScript } from "./support/scripted.mjs";

/** One request against one act: what it comes to, and what was asked. */
async function ask(act, request, clientOptions = {}) {
  let result;
  await withScript([act], async (server) => {
    const client = createClient({ baseUrl: server.url, ...clientOptions });
    const outcome = await request(client).then(
      (value) => ({ value }),
      (error) => ({ error }),
    );
    result = { ...outcome, asked: server.asked[0] };
  });
  return result;
}

const accepted = json(202, { chat_id: "c", run_id: "r" });

test("each turn is one request", async () => {
  const cases = [
    [(client) => client.send("c", "hi", { trigger: "schedule", runtime: "a" }), "/chat/send", { message: "hi", trigger: "schedule", runtime: "a" }],
    [(client) => client.send("c", null, { resume: [1], config: { state: {} } }), "/chat/send", { resume: [1], config: { state: {} } }],
    [(client) => client.steer("c", "no, that"), "/chat/steer-send", { message: "no, that" }],
    [(client) => client.retry("c"), "/chat/retry", {}],
    [(client) => client.retry("c", { messageIndex: 0, message: "edit" }), "/chat/retry", { message_index: 0, message: "edit" }],
  ];
  for (const [request, url, members] of cases) {
    const { value, asked } = await ask(accepted, request);
    assert.deepEqual(value, { chatId: "c", runId: "r" });
    assert.deepEqual([asked.method, asked.url, asked.body], ["POST", `${url}?chat_id=c`, { chat_id: "c", ...members }]);
    assert.equal(asked.headers["content-type"], "application/json");
  }
});

test("files go as base64, from whatever holds bytes", async () => {
  const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index % 256);
  const data = Buffer.from(bytes).toString("base64");
  const files = [
    { name: "a.bin", data: bytes },
    { name: "b.bin", mimeType: "image/png", data },
    new Blob([bytes], { type: "text/plain" }),
    { name: "d.bin", data: bytes.buffer },
  ];
  const { asked } = await ask(accepted, (client) => client.send("c", "look", { files }));
  assert.deepEqual(asked.body.files, [
    { name: "a.bin", mime_type: "application/octet-stream", data },
    { name: "b.bin", mime_type: "image/png", data },
    { name: "file", mime_type: "text/plain", data },
    { name: "d.bin", mime_type: "application/octet-stream", data },
  ]);
});

test("stops and answers", async () => {
  const stopped = await ask(json(200, { run_id: "r", seq: 4, persisted: false }), (client) => client.stop("c", { reason: "enough" }));
  assert.deepEqual(stopped.value, { runId: "r", seq: 4, persisted: false });
  assert.deepEqual(stopped.asked.body, { chat_id: "c", reason: "enough" });

  const cases = [
    [{ optionId: "yes" }, { option_id: "yes" }],
    [{ action: "accept", content: { n: 1 } }, { action: "accept", content: { n: 1 } }],
    [{ cancelled: true }, { cancelled: true }],
  ];
  for (const [answer, members] of cases) {
    const act = json(200, { request_id: "q", outcome: "selected", option_id: "yes" });
    const { value, asked } = await ask(act, (client) => client.respond("c", "q", answer));
    assert.deepEqual(value, { requestId: "q", outcome: "selected", optionId: "yes" });
    assert.deepEqual(asked.body, { chat_id: "c", request_id: "q", ...members });
  }
});

test("an answer that came too late carries the one that counted", async () => {
  const error = { code: "already_answered", message: "too late", outcome: "selected", option_id: "no" };
  const outcome = await ask(json(409, { error }), (client) => client.respond("c", "q", { optionId: "yes" }));
  assert.ok(outcome.error instanceof RejoinError);
  assert.deepEqual([outcome.error.code, outcome.error.status, outcome.error.message], ["already_answered", 409, "too late"]);
  assert.deepEqual(outcome.error.details, { outcome: "selected", option_id: "no" });
});

test("a lost acknowledgement is told as such, and the turn is found by attaching", async () => {
  await withScript([hangUp, stream([event("r", 1), end("r", 1)])], async (server) => {
    const client = createClient({ baseUrl: server.url });
    await assert.rejects(client.send("c", "hi"), { code: "unconfirmed" });
    await collect(client.attach("c", { cursor: { runId: "r", afterSeq: 0 } }));
    assert.deepEqual(server.asked.map(({ url }) => url), ["/chat/send?chat_id=c", "/chat/live?chat_id=c"]);
  });
});

test("whatever loses an acknowledgement, nothing is repeated", async () => {
  const halfway = (answer) => {
    answer.writeHead(202, { "Content-Type": "application/json", "Content-Length": "100" });
    answer.write('{"chat_id"', () => answer.destroy());
  };
  const gateway = (answer) => answer.writeHead(502).end("<html>Bad Gateway</html>");
  const page = (answer) => answer.writeHead(200).end("<html>Log in</html>");
  const requests = [
    (client) => client.send("c", "x"),
    (client) => client.steer("c", "x"),
    (client) => client.retry("c"),
    (client) => client.stop("c"),
    (client) => client.respond("c", "q", { cancelled: true }),
    (client) => client.deleteChat("c"),
  ];
  for (const act of [hangUp, halfway, gateway, page]) {
    for (const request of requests) {
      const { error } = await ask(act, request);
      assert.equal(error?.code, "unconfirmed", `${request} with ${act}`);
    }
  }
});

test("a turn that is called off after it was sent is unconfirmed", async () => {
  const controller = new AbortController();
  const { error } = await ask(
    () => controller.abort(),
    (client) => client.send("c", "x", { signal: controller.signal }),
  );
  assert.equal(error.code, "unconfirmed");
});

test("a request that only reads fails in other words", async () => {
  const read = (client) => client.chats();
  assert.equal((await ask(hangUp, read)).error.code, "unreachable");
  assert.equal((await ask((answer) => answer.end("hm"), read)).error.code, "malformed");
  assert.equal((await ask(json(200, {}), read)).error.code, "malformed");
  assert.equal((await ask((answer) => answer.writeHead(418).end(), read)).error.code, "refused");
  const controller = new AbortController();
  const calledOff = await ask(
    () => controller.abort(),
    (client) => client.chats({ signal: controller.signal }),
  );
  assert.equal(calledOff.error.code, "aborted");
});

test("refusals keep their code", async () => {
  const { error } = await ask(json(503, { error: { code: "no_agent", message: "start one" } }), (client) => client.send("c", "x"));
  assert.deepEqual([error.code, error.status, error.message], ["no_agent", 503, "start one"]);
});

test("conversations are listed page by page", async () => {
  const row = { chat_id: "a/b?", revision: 7, turns: 2, created_ms: 1, changed_ms: 9 };
  const first = await ask(json(200, { chats: [row], next: { changed_ms: 9, chat_id: "a/b?" } }), (client) => client.chats());
  assert.deepEqual(first.value, {
    chats: [{ chatId: "a/b?", revision: 7, turns: 2, createdMs: 1, changedMs: 9 }],
    next: { changedMs: 9, chatId: "a/b?" },
  });
  const second = await ask(json(200, { chats: [], next: null }), (client) => client.chats({ after: first.value.next }));
  assert.equal(second.asked.url, "/chats?after_changed_ms=9&after_chat_id=a%2Fb%3F");
  assert.deepEqual(second.value, { chats: [], next: null });
});

const page = (revision, number, next) => {
  const turn = { turn: number, run_id: `r${number}`, trigger: "user", seq: 1, started_ms: 1, ended_ms: 2, persisted: true, superseded: false, closed: null, events: [] };
  return json(200, { chat_id: "c", revision, messages: [{ id: `m${number}`, role: "user" }], turns: [turn], next });
};

test("a whole conversation is one page made of all", async () => {
  await withScript([page(3, 1, 1), page(3, 2, null)], async (server) => {
    const whole = await createClient({ baseUrl: server.url }).wholeChat("c");
    assert.deepEqual(whole.messages.map(({ id }) => id), ["m1", "m2"]);
    assert.deepEqual(whole.turns.map(({ runId }) => runId), ["r1", "r2"]);
    assert.equal(whole.next, null);
    assert.deepEqual(server.asked.map(({ url }) => url), ["/chats/c", "/chats/c?after_turn=1"]);
  });
});

test("pages of different revisions are not mixed", async () => {
  await withScript([page(3, 1, 1), page(4, 2, null), page(4, 5, null)], async (server) => {
    const whole = await createClient({ baseUrl: server.url }).wholeChat("c");
    assert.deepEqual(whole.turns.map(({ runId }) => runId), ["r5"]);
  });
});

test("a conversation that never holds still is given as far as it goes together", async () => {
  const acts = [1, 2, 3, 4, 5].flatMap((read) => [page(read, read, 1), page(read + 100, 50, null)]);
  await withScript(acts, async (server) => {
    const whole = await createClient({ baseUrl: server.url }).wholeChat("c");
    assert.deepEqual([whole.turns.map(({ runId }) => runId), whole.next], [["r5"], 1]);
  });
});

test("an unknown conversation is an empty whole and a refused page", async () => {
  const unknown = json(404, { error: { code: "unknown_chat", message: "no" } });
  assert.deepEqual((await ask(unknown, (client) => client.wholeChat("c"))).value.turns, []);
  assert.equal((await ask(unknown, (client) => client.chat("c"))).error.code, "unknown_chat");
});

test("deleting names the chat in the path", async () => {
  const { value, asked } = await ask(nothing, (client) => client.deleteChat("a b/ü"));
  assert.deepEqual([value, asked.method, asked.url], [undefined, "DELETE", "/chats/a%20b%2F%C3%BC"]);
});

for (const [how, later] of [["at once", (value) => value], ["later", (value) => Promise.resolve(value)]]) test(`headers are sent, and asked for anew, ${how}`, async () => {
  let token = 0;
  const headers = () => later({ Authorization: `Bearer ${(token += 1)}` });
  await withScript([accepted, accepted], async (server) => {
    const client = createClient({ baseUrl: server.url, headers });
    await client.send("c", "a");
    await client.send("c", "b");
    assert.deepEqual(server.asked.map((asked) => asked.headers.authorization), ["Bearer 1", "Bearer 2"]);
  });
});

test("a server may live below a path", async () => {
  await withScript([nothing], async (server) => {
    await createClient({ baseUrl: `${server.url}deep/down` }).deleteChat("c");
    assert.equal(server.asked[0].url, "/deep/down/chats/c");
  });
});
