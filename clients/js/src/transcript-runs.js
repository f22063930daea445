// Runs as AG-UI means them, their steps and subagents: what frames the parts. A rejoin run may hold several.

export const RUN_EVENTS = {
  RUN_STARTED: (draft) => {
    draft.closeAllChunks();
    draft.set("status", "running");
    draft.set("error", null);
    draft.set("interrupts", []);
  },
  RUN_FINISHED: (draft, event) => {
    closeAll(draft);
    const interrupts = event.outcome?.type === "interrupt" ? event.outcome.interrupts : null;
    draft.set("status", interrupts ? "interrupted" : "finished");
    draft.set("interrupts", Array.isArray(interrupts) ? interrupts : []);
    draft.set("result", event.result ?? null);
  },
  RUN_ERROR: (draft, event) => {
    closeAll(draft);
    draft.set("status", "error");
    draft.set("error", { message: String(event.message ?? ""), code: event.code ?? null });
  },
  STEP_STARTED: (draft, event) => {
    draft.closeChunk(event);
    draft.add("step", String(event.stepName), { name: String(event.stepName), done: false }, event);
  },
  STEP_FINISHED: (draft, event) => {
    draft.closeChunk(event);
    draft.markDone((part) => part.kind === "step" && part.name === event.stepName);
  },
  SUBAGENT_STARTED: (draft, event) => {
    draft.add("subagent", event.subagentRunId, { name: String(event.name ?? ""), done: false, error: null }, event);
  },
  SUBAGENT_FINISHED: (draft, event) => {
    draft.closeChunk(event);
    draft.markDone(isSubagent(event));
  },
  SUBAGENT_ERROR: (draft, event) => {
    draft.closeChunk(event);
    const part = draft.find(isSubagent(event));
    if (part !== undefined) Object.assign(part, { done: true, error: String(event.message ?? "") });
  },
};

/** What a run leaves open will not go on. */
function closeAll(draft) {
  draft.closeAllChunks();
  draft.each(
    (part) => part.done === false,
    (part) => {
      part.done = true;
    },
  );
}

function isSubagent({ subagentRunId }) {
  return (part) => part.kind === "subagent" && part.subagentRunId === subagentRunId;
}
