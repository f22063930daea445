// What a run has opened and not closed: a subscriber whose run is replaced has to see it closed before the next begins.

const CLOSERS = {
  TEXT_MESSAGE_START: ["TEXT_MESSAGE_END", "messageId"],
  REASONING_START: ["REASONING_END", "messageId"],
  REASONING_MESSAGE_START: ["REASONING_MESSAGE_END", "messageId"],
  THINKING_START: ["THINKING_END", null],
  THINKING_TEXT_MESSAGE_START: ["THINKING_TEXT_MESSAGE_END", null],
  TOOL_CALL_START: ["TOOL_CALL_END", "toolCallId"],
  STEP_STARTED: ["STEP_FINISHED", "stepName"],
  SUBAGENT_STARTED: ["SUBAGENT_FINISHED", "subagentRunId"],
};

const ENDS = new Set([...Object.values(CLOSERS).map(([type]) => type), "SUBAGENT_ERROR"]);

export class OpenEntities {
  /** The RUN_STARTED of the run that goes on. */
  #run = null;
  /** The events that will close what is open, by what they close. Things close in reverse order. */
  #closers = new Map();

  note(event) {
    if (event.type === "RUN_STARTED") this.#run = event;
    if (event.type === "RUN_FINISHED" || event.type === "RUN_ERROR") {
      this.#run = null;
      this.#closers.clear();
    }
    const opener = Object.hasOwn(CLOSERS, event.type) ? CLOSERS[event.type] : undefined;
    if (opener !== undefined) {
      const closer = closerOf(event, opener);
      this.#closers.set(keyOf(closer), closer);
    }
    if (ENDS.has(event.type)) this.#closers.delete(keyOf(event));
  }

  /** The events that end the run, as one that was called off. */
  close() {
    if (this.#run === null) return [];
    const { threadId, runId } = this.#run;
    const closers = [...this.#closers.values()].reverse();
    return [...closers, { type: "RUN_FINISHED", threadId, runId, outcome: { type: "cancelled" } }];
  }
}

function closerOf(event, [type, idMember]) {
  const closer = { type };
  if (idMember !== null) closer[idMember] = event[idMember];
  if (event.subagentRunId !== undefined) closer.subagentRunId = event.subagentRunId;
  return closer;
}

function keyOf(event) {
  const type = event.type === "SUBAGENT_ERROR" ? "SUBAGENT_FINISHED" : event.type;
  const id = type === "SUBAGENT_FINISHED" ? event.subagentRunId : (event.messageId ?? event.toolCallId ?? event.stepName);
  return JSON.stringify([type, id, event.subagentRunId]);
}
