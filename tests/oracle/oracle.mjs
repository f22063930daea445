// The oracle: AG-UI's own pipeline, asked by the tests over pipes. It reads one JSON request per line and answers
// each with one JSON line, in order. It judges; it may hold no opinion of its own on what an event means.
//
//   {"op":"compare","before":[…],"after":[…],"tail":[…]?}  do both sequences (each followed by the tail) give the same?
//   {"op":"verify","events":[…]}                           does the client accept the sequence, and what is open at its end?
//   {"op":"reduce","events":[…]}                           what does the client show?
//
// A request that can't be answered gets {"failed":"…"}; the process goes on.

import readline from "node:readline";
import { isDeepStrictEqual } from "node:util";

// Both are read by the client when it is loaded: no warnings on stderr, no freezing of every subscriber's input.
process.env.SUPPRESS_TRANSFORMATION_WARNINGS = "true";
process.env.NODE_ENV = "production";
console.warn = () => {};

const { CompatibilityBoundary, defaultApplyEvents, enforceEvents, transformChunks, verifyEvents } = await import(
  "@ag-ui/client"
);
const { catchError, from, map, Subject, throwError } = await import("rxjs");

const operations = { compare, verify, reduce };

async function answer(line) {
  try {
    const { op, ...request } = JSON.parse(line);
    if (!Object.hasOwn(operations, op)) throw new Error(`unknown op ${JSON.stringify(op)}`);
    return JSON.stringify(await operations[op](request));
  } catch (error) {
    return JSON.stringify({ failed: describe(error) });
  }
}

// Equal means: as far as the bare reducer gets, without any check, and, if both sequences are accepted, for the checked
// pipeline too. The bare pass also sees events of unknown types and unknown members, which the checked one strips.
async function compare({ before, after, tail = [] }) {
  const sides = { before: [...before, ...tail], after: [...after, ...tail] };
  const checked = { before: expand(sides.before, true), after: expand(sides.after, true) };
  let diff = await differs(expand(sides.before, false), expand(sides.after, false), "unchecked");
  if (diff === undefined && !checked.before.refusal && !checked.after.refusal) {
    diff = await differs(checked.before, checked.after, "checked");
  }
  return { equal: diff === undefined, before: verdict(checked.before), after: verdict(checked.after), diff };
}

// A closing RUN_ERROR is tried behind the events, which makes the client close what chunks opened: those close
// themselves and do not count as open.
async function verify({ events }) {
  const { expanded, refusal } = expand([...events, { type: "RUN_ERROR", message: "probe" }], true);
  if (refusal === undefined) return { accepted: true, open: openEntities(expanded.slice(0, -1)) };
  const probed = refusal.index === events.length;
  return { ...verdict({ refusal: probed ? undefined : refusal }), open: openEntities(expanded) };
}

// What a client shows: from the checked pipeline, or from the bare reducer when the checks refuse the sequence.
async function reduce({ events }) {
  const checked = expand(events, true);
  const shown = await apply(checked.refusal ? expand(events, false) : checked);
  return { ...verdict(checked), messages: shown.messages, state: shown.state, interrupts: shown.interrupts };
}

function verdict({ refusal }) {
  return refusal === undefined ? { accepted: true } : { accepted: false, error: refusal };
}

// Runs everything in front of the reducer, one event at a time, so that a refusal names its event and leaves what came
// before it intact. The stages and their order are those of the client's own run pipeline.
function expand(events, checked) {
  const source = new Subject();
  const thinking = new Map();
  let index = 0;
  let refusal;
  const expanded = [];
  const fromDeltas = new Set();
  const boundary = new CompatibilityBoundary().run({ messages: [] }, { run: () => source });
  let stream = boundary.pipe(
    staged("compatibility"),
    map((event) => nameThinking(event, events[index].type, thinking)),
  );
  if (checked) stream = stream.pipe(enforceEvents(), staged("enforcement"));
  stream = stream.pipe(transformChunks(), staged("chunks"));
  if (checked) stream = stream.pipe(verifyEvents(), staged("verifier"));
  stream.subscribe({
    next: (event) => {
      expanded.push(event);
      if (DELTAS.has(events[index].type)) fromDeltas.add(event);
    },
    error: ({ stage, error }) => (refusal = { index, stage, message: describe(error) }),
  });
  for (; index < events.length && refusal === undefined; index += 1) {
    // A copy: the reducer writes into what it is given, and a sequence is run more than once.
    source.next(structuredClone(events[index]));
    if (refusal !== undefined) break;
  }
  return { expanded, fromDeltas, refusal };
}

const staged = (stage) =>
  catchError((error) => throwError(() => (error?.stage === undefined ? { stage, error } : error)));

// The client gives THINKING_ events, which have no id, a random one. Here the n-th opener names the n-th, and what
// continues nothing is an orphan, so that two passes agree.
function nameThinking(event, type, names) {
  if (typeof type !== "string" || !type.startsWith("THINKING_")) return event;
  if (type === "THINKING_START" || type === "THINKING_TEXT_MESSAGE_START") {
    names.set(event.messageId, `(thinking ${names.size + 1})`);
  }
  return { ...event, messageId: names.get(event.messageId) ?? "(orphan of thinking)" };
}

const DELTAS = new Set([
  "TEXT_MESSAGE_CONTENT",
  "REASONING_MESSAGE_CONTENT",
  "THINKING_TEXT_MESSAGE_CONTENT",
  "TOOL_CALL_ARGS",
]);

// Reduces from an empty state. `seen` is every event but the deltas, as a subscriber gets it, each with the outline of
// the messages at that moment, so that text that arrives on the wrong side of a boundary shows. Where a delta makes the
// client close a stream of chunks there is no boundary: deltas may change places there.
async function apply({ expanded, fromDeltas, refusal }) {
  const agent = { messages: [], state: {}, pendingInterrupts: [] };
  const shown = { messages: [], state: {}, interrupts: [], seen: [], broke: refusal !== undefined };
  const subscriber = {
    onEvent: ({ event, messages }) => {
      if (DELTAS.has(event.type)) return;
      shown.seen.push(structuredClone(event));
      if (!fromDeltas.has(event)) shown.seen.push(messages.map(outline));
    },
    onRunFinishedEvent: ({ outcome, pendingToolCallIds }) => {
      shown.seen.push({ outcome, pendingToolCallIds });
    },
  };
  const input = { threadId: "t", runId: "r", messages: [], state: {}, tools: [], context: [], forwardedProps: {} };
  await new Promise((done) => {
    defaultApplyEvents(input, from(expanded), agent, [subscriber]).subscribe({
      next: (mutation) => {
        if (mutation.messages !== undefined) shown.messages = mutation.messages;
        if (mutation.state !== undefined) shown.state = mutation.state;
      },
      error: () => {
        shown.broke = true;
        done();
      },
      complete: done,
    });
  });
  shown.interrupts = agent.pendingInterrupts;
  return shown;
}

function outline(message) {
  const calls = Array.isArray(message?.toolCalls) ? message.toolCalls : [];
  return [message?.id, message?.content?.length, ...calls.map((call) => call?.function?.arguments?.length)];
}

async function differs(before, after, pass) {
  const difference = firstDifference(await apply(before), await apply(after), pass);
  return difference?.toWellFormed();
}

// The path to the first place where two values differ, with what stands there; undefined if they are equal.
function firstDifference(before, after, path) {
  if (isDeepStrictEqual(before, after)) return undefined;
  const nested = [before, after].every((value) => typeof value === "object" && value !== null);
  if (!nested || Array.isArray(before) !== Array.isArray(after)) {
    return `${path}: ${abridged(before)} became ${abridged(after)}`;
  }
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const difference = firstDifference(before[key], after[key], `${path}.${key}`);
    if (difference !== undefined) return difference;
  }
  return `${path}: a member is missing on one side`;
}

function abridged(value) {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= 300 ? text : `${text.slice(0, 150)} … ${text.slice(-100)} (${text.length} characters)`;
}

const OPENERS = {
  TEXT_MESSAGE_START: ["texts", "messageId"],
  REASONING_MESSAGE_START: ["reasonings", "messageId"],
  REASONING_START: ["spans", "messageId"],
  TOOL_CALL_START: ["tool_calls", "toolCallId"],
  STEP_STARTED: ["steps", "stepName"],
  SUBAGENT_STARTED: ["subagents", "subagentRunId"],
};
const CLOSERS = {
  TEXT_MESSAGE_END: OPENERS.TEXT_MESSAGE_START,
  REASONING_MESSAGE_END: OPENERS.REASONING_MESSAGE_START,
  REASONING_END: OPENERS.REASONING_START,
  TOOL_CALL_END: OPENERS.TOOL_CALL_START,
  STEP_FINISHED: OPENERS.STEP_STARTED,
  SUBAGENT_FINISHED: OPENERS.SUBAGENT_STARTED,
  SUBAGENT_ERROR: OPENERS.SUBAGENT_STARTED,
};

// What accepted events leave open.
function openEntities(accepted) {
  const open = { run: false, texts: [], reasonings: [], spans: [], tool_calls: [], steps: [], subagents: [] };
  for (const event of accepted) {
    if (event.type === "RUN_STARTED") {
      for (const kind of Object.keys(open)) open[kind] = kind === "run" || [];
    }
    if (event.type === "RUN_FINISHED" || event.type === "RUN_ERROR") open.run = false;
    const [opened, openedKey] = OPENERS[event.type] ?? [];
    if (opened) open[opened].push(event[openedKey]);
    const [closed, closedKey] = CLOSERS[event.type] ?? [];
    if (closed) open[closed] = open[closed].filter((id) => id !== event[closedKey]);
  }
  // Half a surrogate pair in an id is legal, but the reader of the answer need not know.
  const readable = ([kind, ids]) => [kind, kind === "run" ? ids : ids.map((id) => id.toWellFormed())];
  return Object.fromEntries(Object.entries(open).map(readable));
}

function describe(error) {
  const text = error instanceof Error ? error.message : String(error);
  return text.toWellFormed();
}

for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(`${await answer(line)}\n`);
}
