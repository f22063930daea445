// State, messages and activities: values that are replaced, or patched.

import { patched } from "./json-patch.js";

export const OTHER_EVENTS = {
  STATE_SNAPSHOT: (draft, event) => {
    draft.closeChunk(event);
    draft.set("state", event.snapshot ?? null);
  },
  STATE_DELTA: (draft, event) => {
    draft.closeChunk(event);
    draft.set("state", patched(draft.get("state") ?? {}, event.delta));
  },
  MESSAGES_SNAPSHOT: (draft, event) => {
    draft.closeAllChunks();
    draft.set("messages", Array.isArray(event.messages) ? event.messages : null);
  },
  ACTIVITY_SNAPSHOT: (draft, event) => {
    const part = draft.find(isActivity(event));
    if (part === undefined) {
      const { messageId, activityType, content } = event;
      draft.add("activity", messageId, { messageId, activityType: String(activityType), content }, event);
    } else if (event.replace !== false) {
      Object.assign(part, { activityType: String(event.activityType), content: event.content });
    }
  },
  ACTIVITY_DELTA: (draft, event) => {
    const part = draft.find(isActivity(event));
    if (part !== undefined) part.content = patched(part.content, event.patch);
  },
};

function isActivity({ messageId }) {
  return (part) => part.kind === "activity" && part.messageId === messageId;
}
