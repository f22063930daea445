// Tool calls: a name, arguments that grow by deltas, and a result.

export const TOOL_EVENTS = {
  TOOL_CALL_START: (draft, event) => {
    draft.closeChunk(event);
    start(draft, event);
  },
  TOOL_CALL_ARGS: (draft, event) => {
    draft.closeChunk(event);
    if (typeof event.delta === "string") call(draft, event).args += event.delta;
  },
  TOOL_CALL_END: (draft, event) => {
    draft.closeChunk(event);
    draft.markDone(isCall(event.toolCallId));
  },
  TOOL_CALL_CHUNK: chunk,
  TOOL_CALL_RESULT: (draft, event) => {
    draft.closeChunk(event);
    Object.assign(call(draft, event), { result: event.content, hasResult: true, done: true });
  },
};

function start(draft, event) {
  const toolCallId = String(event.toolCallId ?? "");
  const members = {
    toolCallId,
    name: String(event.toolCallName ?? ""),
    parentMessageId: event.parentMessageId ?? null,
    args: "",
    done: false,
    result: null,
    hasResult: false,
  };
  return draft.add("tool", toolCallId, members, event);
}

function call(draft, event) {
  return draft.find(isCall(event.toolCallId)) ?? start(draft, event);
}

function chunk(draft, event) {
  const current = draft.chunk(event);
  const continues = current?.kind === "tool" && (event.toolCallId == null || event.toolCallId === current.toolCallId);
  if (!continues) draft.closeChunk(event);
  const part = continues ? current : start(draft, event);
  if (!continues) draft.setChunk(event, part);
  if (typeof event.delta === "string") part.args += event.delta;
}

function isCall(toolCallId) {
  return (part) => part.kind === "tool" && part.toolCallId === toolCallId;
}
