// Random runs that AG-UI's verifier accepts, from a seed.

/** Numbers from 0 to below `count`, always the same for the same seed (mulberry32's constants are public arithmetic). */
export function dice(seed) {
  let state = seed >>> 0;
  return (count) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % count;
  };
}

const WORDS = ["a", "bc", "日", "👩‍🚀", " ", "\n", "…", "é"];

/** A run of about `length` events; `finish` closes it. */
export function randomRun(seed, length = 40) {
  const roll = dice(seed);
  const events = [{ type: "RUN_STARTED", threadId: "c", runId: "a" }];
  const open = new Map();
  let next = 0;
  const word = () => WORDS[roll(WORDS.length)];
  const openIds = (kind) => [...open].filter(([, value]) => value === kind).map(([id]) => id);
  const acts = [
    () => start("text", "TEXT_MESSAGE_START", { messageId: `m${next}`, role: "assistant" }, `m${next}`),
    () => start("reasoning", "REASONING_MESSAGE_START", { messageId: `r${next}`, role: "reasoning" }, `r${next}`),
    () => start("tool", "TOOL_CALL_START", { toolCallId: `t${next}`, toolCallName: "look" }, `t${next}`),
    () => grow("text", "TEXT_MESSAGE_CONTENT", "messageId"),
    () => grow("text", "TEXT_MESSAGE_CONTENT", "messageId"),
    () => grow("reasoning", "REASONING_MESSAGE_CONTENT", "messageId"),
    () => grow("tool", "TOOL_CALL_ARGS", "toolCallId"),
    () => grow("tool", "TOOL_CALL_ARGS", "toolCallId"),
    () => end("text", "TEXT_MESSAGE_END", "messageId"),
    () => end("reasoning", "REASONING_MESSAGE_END", "messageId"),
    () => end("tool", "TOOL_CALL_END", "toolCallId"),
    () => events.push({ type: "CUSTOM", name: "note", value: next }),
    () => events.push({ type: "STATE_SNAPSHOT", snapshot: { n: next } }),
    () => chunks("TEXT_MESSAGE_CHUNK", "messageId", { role: "assistant" }),
    () => chunks("TOOL_CALL_CHUNK", "toolCallId", { toolCallName: "look" }),
  ];
  function start(kind, type, members, id) {
    open.set(id, kind);
    next += 1;
    events.push({ type, ...members });
  }
  function grow(kind, type, member) {
    const ids = openIds(kind);
    if (ids.length > 0) events.push({ type, [member]: ids[roll(ids.length)], delta: word() });
  }
  function end(kind, type, member) {
    const [id] = openIds(kind);
    if (id === undefined) return;
    open.delete(id);
    events.push({ type, [member]: id });
  }
  function chunks(type, member, members) {
    // Many agents name a message or a call first, and say nothing yet.
    events.push({ type, [member]: `k${next}`, ...members, delta: roll(3) ? word() : "" });
    for (let count = roll(4); count > 0; count -= 1) {
      events.push(roll(2) ? { type, delta: word() } : { type, [member]: `k${next}`, delta: word() });
    }
    next += 1;
  }
  while (events.length < length) acts[roll(acts.length)]();
  for (const kind of ["text", "reasoning", "tool"]) {
    const [type, member] = { text: ["TEXT_MESSAGE_END", "messageId"], reasoning: ["REASONING_MESSAGE_END", "messageId"], tool: ["TOOL_CALL_END", "toolCallId"] }[kind];
    while (openIds(kind).length > 0) end(kind, type, member);
  }
  events.push({ type: "RUN_FINISHED", threadId: "c", runId: "a" });
  return events;
}
