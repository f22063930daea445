// What the page shows: exchanges, each a message of the person with the answer. They come from the history, and from the
// run that goes on. Pure.

import { emptyTranscript, transcriptOf } from "../client/index.js";

/** The exchanges of a conversation's pages, oldest first. `index`: the place of the person's message, for a retry. */
export function exchangesOf({ messages, turns }) {
  let place = 0;
  return turns.map((turn) => {
    const own = messages.slice(place, place + turn.messages);
    const users = own.filter(({ role }) => role === "user");
    const exchange = {
      key: turn.runId,
      runId: turn.runId,
      user: users.length > 0 ? users.map(textOf).join("\n\n") : null,
      index: own[0]?.role === "user" ? place : null,
      trigger: turn.trigger,
      transcript: transcriptOf(turn.events),
      state: stateOf(turn),
      closed: turn.closed,
    };
    place += turn.messages;
    return exchange;
  });
}

function stateOf({ persisted, superseded }) {
  if (!persisted) return "unsaved";
  return superseded ? "replaced" : "saved";
}

/** The text of a message; other parts by their kind. */
export function textOf({ content }) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (part.type === "text" ? part.text : `[${part.filename ?? part.type}]`)).join("\n");
}

/**
 * The history with the run that is followed, and with a message that is on its way. What a retry takes back (`from`) is
 * gone at once, not only when the history says so.
 */
export function allExchanges(history, live, pending) {
  const shown = live === null ? history : withLive(history, live);
  return pending === null ? shown : [...before(shown, pending.from), ofPending(pending)];
}

function withLive(history, live) {
  const known = history.find(({ runId }) => runId === live.runId);
  // Once it is in the history, that is what counts.
  if (known?.state === "saved" || known?.state === "replaced") return history;
  const exchange = {
    key: live.runId,
    runId: live.runId,
    user: known?.user ?? live.user,
    index: known?.index ?? null,
    trigger: known?.trigger ?? "user",
    transcript: live.transcript,
    state: liveState(live),
    closed: null,
  };
  if (known === undefined) return [...before(history, live.from), exchange];
  return history.map((other) => (other === known ? exchange : other));
}

function before(exchanges, from) {
  return from === null ? exchanges : exchanges.filter(({ index }) => index === null || index < from);
}

function liveState({ end }) {
  if (end === null) return "live";
  if (end.superseded) return "replaced";
  return end.persisted ? "saved" : "not-saved";
}

function ofPending({ user }) {
  return { key: "pending", runId: null, user, index: null, trigger: "user", transcript: emptyTranscript(), state: "sending", closed: null };
}

/** Whether an answer is being written. */
export function isRunning(live) {
  return live !== null && live.end === null && !live.seeded;
}
