// Text and reasoning: messages that grow by deltas.

const text = { kind: "text", empty: (event) => ({ role: string(event.role) ?? "assistant" }) };
const reasoning = { kind: "reasoning", empty: () => ({}) };

export const MESSAGE_EVENTS = {
  TEXT_MESSAGE_START: (draft, event) => start(draft, event, text),
  TEXT_MESSAGE_CONTENT: (draft, event) => append(draft, event, text),
  TEXT_MESSAGE_END: (draft, event) => end(draft, event, text),
  TEXT_MESSAGE_CHUNK: (draft, event) => chunk(draft, event, text),
  REASONING_MESSAGE_START: (draft, event) => start(draft, event, reasoning),
  REASONING_MESSAGE_CONTENT: (draft, event) => append(draft, event, reasoning),
  REASONING_MESSAGE_END: (draft, event) => end(draft, event, reasoning),
  REASONING_MESSAGE_CHUNK: (draft, event) => chunk(draft, event, reasoning),
  // The old names, which have no id.
  THINKING_TEXT_MESSAGE_START: (draft, event) => start(draft, event, reasoning),
  THINKING_TEXT_MESSAGE_CONTENT: (draft, event) => append(draft, event, reasoning),
  THINKING_TEXT_MESSAGE_END: (draft, event) => end(draft, event, reasoning),
};

/** A message that goes on behind something else is a part of its own, so that the order stays what it was. */
function start(draft, event, { kind, empty }) {
  draft.closeChunk(event);
  const messageId = string(event.messageId);
  return draft.add(kind, messageId, { messageId, ...empty(event), text: "", done: false }, event);
}

function append(draft, event, form) {
  draft.closeChunk(event);
  if (typeof event.delta !== "string") return;
  const part = draft.find(isOf(form.kind, string(event.messageId))) ?? start(draft, event, form);
  part.text += event.delta;
}

function end(draft, event, { kind }) {
  draft.closeChunk(event);
  draft.markDone(isOf(kind, string(event.messageId)));
}

function chunk(draft, event, form) {
  const current = draft.chunk(event);
  const messageId = string(event.messageId);
  const continues = current?.kind === form.kind && (messageId === null || messageId === current.messageId);
  const part = continues ? current : start(draft, event, form);
  if (!continues) draft.setChunk(event, part);
  if (typeof event.delta === "string") part.text += event.delta;
}

function isOf(kind, messageId) {
  return (part) => part.kind === kind && part.messageId === messageId;
}

function string(value) {
  return typeof value === "string" ? value : null;
}
