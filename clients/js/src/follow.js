// Following: the rules by which an observer applies frames and comes back after a loss. Pure: a step is told what
// happened and says what to tell and what to do next; it opens no connection, reads no clock and draws no lots. It asks
// for frames only, and never for anything that starts a turn.
//
// An action holds until the next input: `ask` the server after a delay, `read` the next frame, `await-online`, `stop`.

import { BACKOFF, delayMs } from "./backoff.js";
import { RejoinError } from "./errors.js";

/** How long the server waits for a run at most, in milliseconds. */
const WAIT_MS_MAX = 25_000;

/** The first step of an observer that has nothing, or comes back with a cursor. */
export function startFollowing({ cursor = null, waitMs = 0, follow: follows = true, backoff = {} } = {}) {
  const state = {
    backoff: { ...BACKOFF, ...backoff },
    waitMs,
    follows,
    cursor,
    /** Attempts since the last progress. */
    attempts: 0,
    /** Whether a run was followed, now or before. */
    attached: cursor !== null,
    /** The run that a newer one has replaced, while the newer one is looked for. */
    replaced: null,
  };
  return step(state, [connection("connecting")], ask(state, 0));
}

/** What follows from an input. `random`, from 0 to 1, says how much a delay is shortened. */
export function follow(state, input, random) {
  switch (input.type) {
    case "opened":
      return step(state, [connection("live")], { type: "read" });
    case "frame":
      return applyFrame(state, input.frame, random);
    case "lost":
      return lose(state, input.reason, input.online, random, input.earliestMs);
    case "nothing":
      return step(state, [{ type: "idle", attached: state.attached }], { type: "stop" });
    case "refused":
      return step(state, [{ type: "lost", error: input.error }], { type: "stop" });
    case "online": {
      const next = { ...state, attempts: 0 };
      return step(next, [connection("connecting")], ask(next, 0));
    }
    default:
      throw new TypeError(`there is no input ${input.type}`);
  }
}

function applyFrame(state, frame, random) {
  switch (frame.type) {
    case "snapshot":
      return applySnapshot(state, frame);
    case "event":
      return applyEvent(state, frame, random);
    default:
      return applyEnd(state, frame, random);
  }
}

function applySnapshot(state, frame) {
  const { runId, seq } = frame;
  const known = state.cursor;
  // A server that only ever repeats what is known makes no progress, however often it answers.
  const news = known === null || known.runId !== runId || known.afterSeq < seq;
  const attempts = news ? 0 : state.attempts;
  return step({ ...state, cursor: { runId, afterSeq: seq }, attached: true, attempts }, [frame], { type: "read" });
}

function applyEvent(state, frame, random) {
  const { cursor } = state;
  if (cursor === null || cursor.runId !== frame.runId || frame.seq > cursor.afterSeq + 1) {
    return lose(state, "gap", true, random);
  }
  if (frame.seq <= cursor.afterSeq) return step(state, [], { type: "read" });
  const next = { ...state, cursor: { runId: cursor.runId, afterSeq: frame.seq }, attached: true, attempts: 0 };
  return step(next, [frame], { type: "read" });
}

function applyEnd(state, frame, random) {
  const { cursor } = state;
  // An end behind missing events would make a part of an answer look like all of it.
  if (cursor?.runId !== frame.runId || cursor.afterSeq !== frame.seq) return lose(state, "gap", true, random);
  const ended = { ...state, attached: true };
  if (!frame.superseded || !state.follows) return step(ended, [frame], { type: "stop" });
  // The cursor is kept: one of a replaced run is answered with the newer run even if that is over and saved already. A
  // server that knows it still would tell the same end for ever: then it is dropped.
  const again = state.replaced === frame.runId;
  const next = { ...ended, replaced: frame.runId, cursor: again ? null : cursor };
  return step(next, again ? [] : [frame, connection("connecting")], ask(next, 0));
}

/** `earliestMs`: the server asks not to be asked before. The delay comes on top, lest all who were told the same come at once. */
function lose(state, reason, online, random, earliestMs = 0) {
  const attempt = state.attempts + 1;
  const { attemptsMax } = state.backoff;
  const next = { ...state, attempts: attempt };
  if (attempt <= attemptsMax) {
    const delay = earliestMs + delayMs(state.backoff, attempt, random);
    const notice = { type: "connection", state: "retrying", attempt, attemptsMax, delayMs: delay, reason };
    return step(next, [notice], ask(next, delay));
  }
  // Without a network five attempts prove nothing: who opens a laptop an hour later wants the answer to go on.
  if (!online) return step(next, [connection("offline")], { type: "await-online" });
  const message = `the connection to the server is lost (${REASONS[reason]}), and ${attemptsMax} attempts did not bring it back`;
  const error = new RejoinError("lost", message, { details: { reason } });
  return step(next, [{ type: "lost", error, reason }], { type: "stop" });
}

const REASONS = {
  network: "the server can't be reached",
  eof: "the stream was cut",
  silent: "the stream is silent",
  status: "the server has no time",
  malformed: "what came is not rejoin's protocol",
  gap: "an event is missing",
  cut: "it was cut here",
};

function ask(state, delay) {
  return { type: "ask", delayMs: delay, cursor: state.cursor, waitMs: waitMs(state) };
}

function waitMs({ replaced, attached, attempts, waitMs: wanted }) {
  if (replaced !== null) return WAIT_MS_MAX;
  // Who comes back after a loss wants its run, not the next one.
  return attached && attempts > 0 ? 0 : wanted;
}

function connection(state) {
  return { type: "connection", state };
}

function step(state, notices, action) {
  return { state, notices, action };
}
