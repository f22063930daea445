// Compaction as docs/protocol.md describes it, in its plainest form: for sequences without unusual members.

const DELTAS = { TEXT_MESSAGE_CONTENT: "messageId", REASONING_MESSAGE_CONTENT: "messageId", THINKING_TEXT_MESSAGE_CONTENT: null, TOOL_CALL_ARGS: "toolCallId" };
const CHUNKS = { TEXT_MESSAGE_CHUNK: "messageId", REASONING_MESSAGE_CHUNK: "messageId", TOOL_CALL_CHUNK: "toolCallId" };

export function compact(events) {
  const out = [];
  let stretch = new Map();
  for (const event of events) {
    const last = out.at(-1);
    if (event.type in DELTAS) {
      const id = event[DELTAS[event.type]];
      const other = { TEXT_MESSAGE_CONTENT: "REASONING_MESSAGE_CONTENT", REASONING_MESSAGE_CONTENT: "TEXT_MESSAGE_CONTENT" }[event.type];
      if (stretch.has(`${other} ${id}`)) stretch = new Map();
      const target = `${event.type} ${id}`;
      if (stretch.has(target)) {
        stretch.get(target).delta += event.delta;
        continue;
      }
      out.push({ ...event });
      stretch.set(target, out.at(-1));
      continue;
    }
    stretch = new Map();
    if (event.type in CHUNKS && last?.type === event.type && joins(last, event)) last.delta += event.delta;
    else out.push({ ...event });
  }
  return out;
}

function joins(last, event) {
  const idMember = CHUNKS[event.type];
  const plain = Object.keys(event).every((key) => ["type", "delta", idMember].includes(key));
  const id = event[idMember];
  return plain && typeof last.delta === "string" && typeof event.delta === "string" && (id === undefined || id === last[idMember]);
}
