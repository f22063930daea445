// The continuation: what a snapshot adds to what a subscriber was given already. An AG-UI subscriber has no way to start
// over, so after a mid-stream snapshot it must get the rest only: nothing twice, nothing missed.
//
// The method counts; it keeps no text. A snapshot is the run's own events, in order, but deltas are joined: those of the
// same target within a stretch of nothing but deltas, and CHUNKs with the CHUNK directly before them. So both, the events as
// they were emitted and the snapshot, are read as the same series of groups: an event that is never joined, a stretch of
// deltas, or a row of CHUNKs of one message. How many groups there were, and how many characters of each target the last
// group has, is a place that means the same in both, however the deltas were cut. Everything before that place was
// emitted; the delta that contains it is cut there.

const DELTAS = {
  TEXT_MESSAGE_CONTENT: "messageId",
  REASONING_MESSAGE_CONTENT: "messageId",
  THINKING_TEXT_MESSAGE_CONTENT: null,
  TOOL_CALL_ARGS: "toolCallId",
};

const CHUNKS = { TEXT_MESSAGE_CHUNK: "messageId", REASONING_MESSAGE_CHUNK: "messageId", TOOL_CALL_CHUNK: "toolCallId" };

/** What was emitted of one run. */
export class Continuation {
  #emitted = new Place();

  /** This event was emitted. */
  note(event) {
    this.#emitted.step(event);
  }

  /** The events that a snapshot has beyond what was emitted; they count as emitted from here on. */
  rest(events) {
    const place = new Place();
    const rest = events.flatMap((event) => this.#rest(event, place.step(event)));
    this.#emitted = place;
    return rest;
  }

  #rest(event, { group, target, from, to }) {
    if (group > this.#emitted.group) return [event];
    if (group < this.#emitted.group || target === null) return [];
    const length = this.#emitted.length(target);
    if (to <= length) return [];
    return [from >= length ? event : { ...event, delta: event.delta.slice(length - from) }];
  }
}

/** A place in a run's events. */
class Place {
  /** Number of the group, from 0. */
  group = -1;
  #kind = "none";
  /** Characters by target, in the current group. */
  #lengths = new Map();
  /** The type and id of the row of chunks. */
  #row = null;

  length(target) {
    return this.#lengths.get(target) ?? 0;
  }

  /** Goes past an event. Says which group it is in and, if it can be joined, which characters of which target it has. */
  step(event) {
    const target = deltaTarget(event);
    if (target !== null) {
      if (this.#kind !== "deltas") this.#begin("deltas");
      return this.#extend(target, event.delta.length);
    }
    if (Object.hasOwn(CHUNKS, event.type) && typeof event.delta === "string") {
      if (!this.#goesOn(event)) {
        this.#begin("chunks");
        this.#row = { type: event.type, id: event[CHUNKS[event.type]] };
      }
      return this.#extend("row", event.delta.length);
    }
    this.#begin("whole");
    return { group: this.group, target: null, from: 0, to: 0 };
  }

  #goesOn(event) {
    const id = event[CHUNKS[event.type]];
    return this.#kind === "chunks" && this.#row.type === event.type && (id == null || id === this.#row.id);
  }

  #begin(kind) {
    this.group += 1;
    this.#kind = kind;
    this.#lengths.clear();
  }

  #extend(target, count) {
    const from = this.length(target);
    this.#lengths.set(target, from + count);
    return { group: this.group, target, from, to: from + count };
  }
}

/** What a delta is joined by; null: it is none, or one that is never joined. */
function deltaTarget(event) {
  if (!Object.hasOwn(DELTAS, event.type) || typeof event.delta !== "string") return null;
  const idMember = DELTAS[event.type];
  if (idMember === null) return event.type;
  return typeof event[idMember] === "string" ? `${event.type} ${event[idMember]}` : null;
}
