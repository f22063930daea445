// The messages of the event bus, checked. Null: one of a kind that is not known here.

export function readBusNotice(data) {
  try {
    const message = JSON.parse(data);
    switch (message.event) {
      case "snapshot":
        return { type: "snapshot", streams: message.streams.map(stream) };
      case "stream_started":
        return { type: "started", ...named(message), trigger: message.trigger, queued: message.queued === true };
      case "stream_ended":
        return { type: "ended", ...named(message), persisted: message.persisted === true, superseded: message.superseded === true };
      default:
        return null;
    }
  } catch {
    return null;
  }
}

function stream(row) {
  return { ...named(row), trigger: row.trigger, state: row.state, queued: row.queued === true };
}

function named({ chat_id: chatId, run_id: runId }) {
  return { chatId, runId };
}
