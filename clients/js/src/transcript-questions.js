// Questions: what an agent asks a person, and what was decided; and all other CUSTOM events.

export const QUESTION_EVENTS = {
  CUSTOM: (draft, event) => {
    draft.closeChunk(event);
    const value = Object(event.value);
    switch (event.name) {
      case "acp.permission_request":
        return askPermission(draft, event, value);
      case "acp.elicitation_request":
        return askForm(draft, event, value);
      case "acp.permission_resolved":
        return resolve(draft, "permission", value);
      case "acp.elicitation_resolved":
        return resolve(draft, "form", value);
      default:
        draft.add("custom", null, { name: String(event.name), value: event.value ?? null }, event);
    }
  },
};

function askPermission(draft, event, value) {
  const { request_id: id, tool_call: toolCall, options } = value;
  const members = {
    requestId: String(id),
    toolCall: Object(toolCall),
    options: Array.isArray(options) ? options : [],
    resolved: null,
  };
  draft.add("permission", members.requestId, members, event);
}

function askForm(draft, event, value) {
  const { request_id: id, message, requestedSchema: schema } = value;
  const members = { requestId: String(id), message: String(message ?? ""), schema: Object(schema), resolved: null };
  draft.add("form", members.requestId, members, event);
}

/** The first answer counts, here as at the server. */
function resolve(draft, kind, { request_id: id, outcome, option_id: optionId, content }) {
  const part = draft.find((candidate) => candidate.kind === kind && candidate.requestId === String(id));
  if (part === undefined || part.resolved !== null) return;
  part.resolved = { outcome: String(outcome) };
  if (optionId !== undefined) part.resolved.optionId = optionId;
  if (content !== undefined) part.resolved.content = content;
}
