// The frames of protocol 1, checked. One message at a time: whether a frame may be applied is for follow.js to say.

/** Reads the data of one message; null: it is no frame. */
export function readFrame(data) {
  const frame = parse(data);
  if (!isObject(frame) || typeof frame.run_id !== "string" || frame.run_id === "" || !isSeq(frame.seq)) return null;
  const { run_id: runId, seq, events, event, persisted, superseded } = frame;
  switch (frame.type) {
    case "STREAM_SNAPSHOT":
      return Array.isArray(events) && events.every(isObject) ? { type: "snapshot", runId, seq, events } : null;
    case "STREAM_EVENT":
      return isObject(event) && seq > 0 ? { type: "event", runId, seq, event } : null;
    case "STREAM_END": {
      const told = typeof persisted === "boolean" && typeof superseded === "boolean";
      return told ? { type: "end", runId, seq, persisted, superseded } : null;
    }
    default:
      return null;
  }
}

function parse(data) {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isSeq(value) {
  return Number.isSafeInteger(value) && value >= 0;
}
