import assert from "node:assert/strict";
import test from "node:test";

import { applyEvent, applyNotice, emptyTranscript, transcriptOf } from "../src/index.js";
import { compact } from "./support/compact.mjs";
import { randomRun } from "./support/random.mjs";

/** The parts without their keys. */
const partsOf = (events) => transcriptOf(events).parts.map(({ key, ...part }) => part);

test("nothing is an empty transcript", () => {
  const transcript = emptyTranscript();
  assert.deepEqual([transcript.status, transcript.parts, transcript.error], ["empty", [], null]);
  assert.equal(applyEvent(transcript, { type: "SOMETHING_NEW" }), transcript);
});

test("text, reasoning and tools grow in the order in which they began", () => {
  const events = [
    { type: "RUN_STARTED", threadId: "c", runId: "a" },
    { type: "REASONING_MESSAGE_START", messageId: "r", role: "reasoning" },
    { type: "REASONING_MESSAGE_CONTENT", messageId: "r", delta: "hm" },
    { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "Hel" },
    { type: "TOOL_CALL_START", toolCallId: "t", toolCallName: "look", parentMessageId: "m" },
    { type: "TOOL_CALL_ARGS", toolCallId: "t", delta: '{"a"' },
    { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "lo" },
    { type: "TOOL_CALL_ARGS", toolCallId: "t", delta: ":1}" },
    { type: "TOOL_CALL_END", toolCallId: "t" },
    { type: "TOOL_CALL_RESULT", messageId: "x", toolCallId: "t", content: "42", role: "tool" },
    { type: "TEXT_MESSAGE_END", messageId: "m" },
  ];
  const transcript = transcriptOf(events);
  assert.equal(transcript.status, "running");
  assert.deepEqual(partsOf(events), [
    { kind: "reasoning", messageId: "r", text: "hm", done: false },
    { kind: "text", messageId: "m", role: "assistant", text: "Hello", done: true },
    { kind: "tool", toolCallId: "t", name: "look", parentMessageId: "m", args: '{"a":1}', done: true, result: "42", hasResult: true },
  ]);
});

test("a message that goes on behind something else is a part of its own", () => {
  const message = (delta) => [
    { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta },
    { type: "TEXT_MESSAGE_END", messageId: "m" },
  ];
  const transcript = transcriptOf([...message("before"), { type: "TOOL_CALL_START", toolCallId: "m", toolCallName: "n" }, ...message("after")]);
  assert.deepEqual(transcript.parts.map(({ kind, text }) => text ?? kind), ["before", "tool", "after"]);
  assert.equal(new Set(transcript.parts.map(({ key }) => key)).size, 3);
});

test("thinking has no id and is reasoning", () => {
  const thought = (delta) => [
    { type: "THINKING_TEXT_MESSAGE_START" },
    { type: "THINKING_TEXT_MESSAGE_CONTENT", delta },
    { type: "THINKING_TEXT_MESSAGE_END" },
  ];
  const parts = partsOf([{ type: "THINKING_START" }, ...thought("one"), ...thought("two"), { type: "THINKING_END" }]);
  assert.deepEqual(parts.map(({ kind, text, done }) => [kind, text, done]), [["reasoning", "one", true], ["reasoning", "two", true]]);
});

test("chunks open and close by their order, for each subagent", () => {
  const chunk = (delta, members) => ({ type: "TEXT_MESSAGE_CHUNK", delta, ...members });
  const parts = partsOf([
    chunk("a", { messageId: "m", role: "assistant" }),
    chunk("X", { messageId: "s", subagentRunId: "sub" }),
    chunk("b"),
    chunk("Y", { subagentRunId: "sub" }),
    { type: "TOOL_CALL_CHUNK", toolCallId: "t", toolCallName: "look", delta: "{" },
    { type: "TOOL_CALL_CHUNK", delta: "}" },
    chunk("c", { messageId: "n" }),
    { type: "REASONING_MESSAGE_CHUNK", messageId: "r", delta: "hm" },
  ]);
  assert.deepEqual(parts.map(({ kind, text, args, done, subagentRunId }) => [kind, text ?? args, done, subagentRunId]), [
    ["text", "ab", true, undefined],
    ["text", "XY", false, "sub"],
    ["tool", "{}", true, undefined],
    ["text", "c", true, undefined],
    ["reasoning", "hm", false, undefined],
  ]);
});

test("the chunks of a run that is over are not continued by the next", () => {
  const chunk = { type: "TEXT_MESSAGE_CHUNK", delta: "a" };
  for (const between of ["RUN_FINISHED", "RUN_ERROR", "RUN_STARTED", "MESSAGES_SNAPSHOT"]) {
    const parts = partsOf([{ ...chunk, messageId: "m" }, { type: between }, chunk]);
    assert.deepEqual(parts.map(({ text, done }) => [text, done]), [["a", true], ["a", false]], between);
  }
});

const custom = (name, value) => ({ type: "CUSTOM", name, value });

test("a permission is open until it is resolved, and the first answer counts", () => {
  const options = [{ optionId: "yes", name: "Allow", kind: "allow_once" }];
  const request = custom("acp.permission_request", { request_id: "perm-1", session_id: "s", tool_call: { title: "Write" }, options });
  const open = transcriptOf([request]);
  assert.deepEqual(partsOf([request]), [{ kind: "permission", requestId: "perm-1", toolCall: { title: "Write" }, options, resolved: null }]);
  const first = applyEvent(open, custom("acp.permission_resolved", { request_id: "perm-1", outcome: "selected", option_id: "yes" }));
  assert.deepEqual(first.parts[0].resolved, { outcome: "selected", optionId: "yes" });
  assert.equal(first.parts[0].key, open.parts[0].key);
  const second = applyEvent(first, custom("acp.permission_resolved", { request_id: "perm-1", outcome: "cancelled" }));
  assert.deepEqual(second.parts[0].resolved, { outcome: "selected", optionId: "yes" });
});

test("a form is answered with its content", () => {
  const schema = { type: "object", properties: { n: { type: "number" } } };
  const parts = partsOf([
    custom("acp.elicitation_request", { request_id: "form-1", message: "How many?", requestedSchema: schema }),
    custom("acp.elicitation_request", { request_id: "form-2", message: "And?", requestedSchema: schema }),
    custom("acp.elicitation_resolved", { request_id: "form-1", outcome: "accepted", content: { n: 1 } }),
    custom("acp.permission_resolved", { request_id: "form-2", outcome: "cancelled" }),
  ]);
  assert.deepEqual(parts, [
    { kind: "form", requestId: "form-1", message: "How many?", schema, resolved: { outcome: "accepted", content: { n: 1 } } },
    { kind: "form", requestId: "form-2", message: "And?", schema, resolved: null },
  ]);
});

test("runs end well, badly, or with a question", () => {
  const started = { type: "RUN_STARTED", threadId: "c", runId: "a" };
  const error = transcriptOf([started, { type: "TEXT_MESSAGE_START", messageId: "m" }, { type: "RUN_ERROR", message: "no", code: "stopped" }]);
  assert.deepEqual([error.status, error.error, error.parts[0].done], ["error", { message: "no", code: "stopped" }, true]);
  const finished = transcriptOf([started, { type: "RUN_FINISHED", threadId: "c", runId: "a", result: 7 }]);
  assert.deepEqual([finished.status, finished.result, finished.interrupts], ["finished", 7, []]);
  const interrupts = [{ id: "i", reason: "ask" }];
  const asked = transcriptOf([started, { type: "RUN_FINISHED", threadId: "c", runId: "a", outcome: { type: "interrupt", interrupts } }]);
  assert.deepEqual([asked.status, asked.interrupts], ["interrupted", interrupts]);
  const again = applyEvent(asked, started);
  assert.deepEqual([again.status, again.interrupts], ["running", []]);
});

test("state, messages and activities are replaced or patched", () => {
  const transcript = transcriptOf([
    { type: "STATE_SNAPSHOT", snapshot: { list: [1, 2], "a/b": { "~": 0 } } },
    { type: "STATE_DELTA", delta: [{ op: "add", path: "/list/-", value: 3 }, { op: "replace", path: "/a~1b/~0", value: 1 }] },
    { type: "STATE_DELTA", delta: [{ op: "remove", path: "/list/0" }, { op: "remove", path: "/none" }] },
    { type: "STATE_DELTA", delta: [{ op: "move", from: "/list/0", path: "/first" }, { op: "copy", from: "/first", path: "/second" }] },
    { type: "STATE_DELTA", delta: [{ op: "test", path: "/first", value: 9 }, { op: "remove", path: "/first" }] },
    { type: "STATE_DELTA", delta: [{ op: "add", path: "/__proto__", value: { polluted: true } }] },
    { type: "STATE_DELTA", delta: "nonsense" },
    { type: "MESSAGES_SNAPSHOT", messages: [{ id: "u", role: "user" }] },
    { type: "ACTIVITY_SNAPSHOT", messageId: "act", activityType: "plan", content: { done: [] } },
    { type: "ACTIVITY_DELTA", messageId: "act", activityType: "plan", patch: [{ op: "add", path: "/done/0", value: "x" }] },
    { type: "STEP_STARTED", stepName: "one" },
    { type: "STEP_FINISHED", stepName: "one" },
    { type: "SUBAGENT_STARTED", subagentRunId: "s", name: "helper" },
    { type: "SUBAGENT_ERROR", subagentRunId: "s", message: "tired" },
  ]);
  assert.deepEqual(transcript.state.list, [2, 3]);
  assert.deepEqual([transcript.state.first, transcript.state.second, transcript.state["a/b"]], [1, 1, { "~": 1 }]);
  assert.equal({}.polluted, undefined);
  assert.equal(transcript.state.polluted, undefined);
  assert.deepEqual(transcript.messages, [{ id: "u", role: "user" }]);
  assert.deepEqual(transcript.parts[0].content, { done: ["x"] });
  assert.deepEqual(transcript.parts.slice(1).map(({ kind, name, done, error }) => [kind, name, done, error]), [
    ["step", "one", true, undefined],
    ["subagent", "helper", true, "tired"],
  ]);
});

test("events that make no sense harm nothing", () => {
  const odd = ["TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "TOOL_CALL_ARGS", "TOOL_CALL_RESULT", "CUSTOM", "STATE_DELTA", "ACTIVITY_DELTA", "RUN_FINISHED", "RUN_ERROR", "STEP_FINISHED", "TEXT_MESSAGE_CHUNK", "TOOL_CALL_CHUNK", "constructor", undefined];
  const transcript = transcriptOf(odd.flatMap((type) => [{ type }, { type, delta: 7, value: null, outcome: null, messageId: 7, toolCallId: null }]));
  assert.deepEqual(JSON.parse(JSON.stringify(transcript)).status, "error");
});

test("a compacted sequence, and a snapshot anywhere in the middle, give the same transcript", () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const events = randomRun(seed);
    const whole = transcriptOf(events);
    assert.deepEqual(transcriptOf(compact(events)), whole, `seed ${seed}`);
    const cut = seed % events.length;
    const resumed = events.slice(cut).reduce(applyEvent, transcriptOf(compact(events.slice(0, cut))));
    assert.deepEqual(resumed, whole, `seed ${seed} cut at ${cut}`);
    assert.deepEqual(JSON.parse(JSON.stringify(whole)), whole, "it is JSON");
    assert.equal(new Set(whole.parts.map(({ key }) => key)).size, whole.parts.length, "keys are unique");
  }
});

test("nothing that was handed out changes, and what an event does not touch stays the same object", () => {
  let transcript = emptyTranscript();
  for (const event of randomRun(7, 200)) {
    const before = JSON.stringify(transcript);
    const next = applyEvent(transcript, event);
    assert.equal(JSON.stringify(transcript), before);
    if (event.type === "TEXT_MESSAGE_CONTENT") {
      // The delta's own message, and what chunks left open just before.
      const others = next.parts.filter((part) => part.messageId !== event.messageId);
      const changed = others.filter((part) => !transcript.parts.includes(part));
      assert.ok(changed.length <= 1 && changed.every(({ done }) => done), JSON.stringify(changed));
      assert.ok(others.length < 3 || others.some((part) => transcript.parts.includes(part)));
    }
    transcript = next;
  }
});

test("notices are applied as they come", () => {
  const text = { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "a" };
  const seed = transcriptOf([text]);
  let transcript = applyNotice(emptyTranscript(), { type: "seed", runId: "r", seq: 1, transcript: seed });
  assert.equal(transcript, seed);
  transcript = applyNotice(transcript, { type: "snapshot", runId: "r", seq: 1, events: [text] });
  transcript = applyNotice(transcript, { type: "event", runId: "r", seq: 2, event: text });
  assert.equal(transcript.parts[0].text, "aa");
  for (const type of ["end", "lost", "idle", "connection"]) assert.equal(applyNotice(transcript, { type }), transcript);
});
