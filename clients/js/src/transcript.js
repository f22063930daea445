// The transcript: what a page shows of a run, reduced from its events. Pure; the shape is in index.d.ts.
//
// Two things must hold for every event that is handled here. The transcript of a compacted sequence is that of the
// original: so a key counts only what compaction keeps (never deltas). And what came before is never changed in place.

import { Draft } from "./transcript-draft.js";
import { MESSAGE_EVENTS } from "./transcript-messages.js";
import { OTHER_EVENTS } from "./transcript-others.js";
import { QUESTION_EVENTS } from "./transcript-questions.js";
import { RUN_EVENTS } from "./transcript-runs.js";
import { TOOL_EVENTS } from "./transcript-tools.js";

const HANDLERS = new Map(
  [RUN_EVENTS, MESSAGE_EVENTS, TOOL_EVENTS, QUESTION_EVENTS, OTHER_EVENTS].flatMap((events) => Object.entries(events)),
);

const EMPTY = Object.freeze({
  status: "empty",
  error: null,
  parts: Object.freeze([]),
  state: null,
  messages: null,
  interrupts: Object.freeze([]),
  result: null,
  internal: Object.freeze({
    /** How many parts there were, by kind and id. */
    counts: Object.freeze({}),
    /** The key of the part that chunks continue, by subagent. */
    chunks: Object.freeze({}),
  }),
});

export function emptyTranscript() {
  return EMPTY;
}

export function applyEvent(transcript, event) {
  return transcriptOf([event], transcript);
}

export function transcriptOf(events, from = EMPTY) {
  const draft = new Draft(from);
  for (const event of events) HANDLERS.get(event.type)?.(draft, event);
  return draft.finish();
}

export function applyNotice(transcript, notice) {
  switch (notice.type) {
    case "seed":
      return notice.transcript;
    case "snapshot":
      return transcriptOf(notice.events);
    case "event":
      return applyEvent(transcript, notice.event);
    default:
      return transcript;
  }
}
