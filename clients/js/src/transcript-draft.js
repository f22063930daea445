// A draft: a transcript while events are applied to it. It copies what it changes, once, so that a snapshot of many
// events costs no more than its parts.

export class Draft {
  #before;
  #changed = {};
  /** The parts that this draft made or copied: they may be written to. */
  #own = new Set();

  constructor(transcript) {
    this.#before = transcript;
  }

  /** A top-level member. */
  get(name) {
    return Object.hasOwn(this.#changed, name) ? this.#changed[name] : this.#before[name];
  }

  set(name, value) {
    this.#changed[name] = value;
  }

  finish() {
    return Object.keys(this.#changed).length === 0 ? this.#before : { ...this.#before, ...this.#changed };
  }

  /** Appends a part. Its key has its name and how many parts had that name before. */
  add(kind, id, members, event) {
    const name = `${kind}:${id ?? ""}`;
    const { counts } = this.#internal();
    counts[name] = (counts[name] ?? 0) + 1;
    const part = { key: `${kind}:${counts[name]}:${id ?? ""}`, kind, ...members };
    if (typeof event.subagentRunId === "string") part.subagentRunId = event.subagentRunId;
    this.#own.add(part);
    this.#parts().push(part);
    return part;
  }

  /** The last part that fits, ready to be written to; the last ones are the likely ones. */
  find(fits) {
    const index = this.get("parts").findLastIndex(fits);
    return index < 0 ? undefined : this.#writable(index);
  }

  /** Changes all parts that fit. */
  each(fits, change) {
    this.get("parts").forEach((part, index) => {
      if (fits(part)) change(this.#writable(index));
    });
  }

  /** The part that chunks of this subagent continue. */
  chunk(event) {
    const key = this.get("internal").chunks[scope(event)];
    return key === undefined ? undefined : this.find((part) => part.key === key);
  }

  setChunk(event, part) {
    this.#internal().chunks[scope(event)] = part.key;
  }

  /** Chunks close themselves when something else is said. */
  closeChunk(event) {
    const part = this.chunk(event);
    if (part === undefined) return;
    part.done = true;
    delete this.#internal().chunks[scope(event)];
  }

  closeAllChunks() {
    const keys = Object.values(this.get("internal").chunks);
    if (keys.length === 0) return;
    this.each((part) => keys.includes(part.key), markDone);
    this.#internal().chunks = {};
  }

  markDone(fits) {
    const part = this.find(fits);
    if (part !== undefined) markDone(part);
  }

  #internal() {
    if (!Object.hasOwn(this.#changed, "internal")) {
      const { counts, chunks } = this.#before.internal;
      this.#changed.internal = { counts: { ...counts }, chunks: { ...chunks } };
    }
    return this.#changed.internal;
  }

  #parts() {
    if (!Object.hasOwn(this.#changed, "parts")) this.#changed.parts = [...this.#before.parts];
    return this.#changed.parts;
  }

  #writable(index) {
    const parts = this.#parts();
    if (!this.#own.has(parts[index])) {
      parts[index] = { ...parts[index] };
      this.#own.add(parts[index]);
    }
    return parts[index];
  }
}

function markDone(part) {
  part.done = true;
}

/** AG-UI keeps a current message for the agent and one for each subagent. */
function scope(event) {
  return typeof event.subagentRunId === "string" ? `sub:${event.subagentRunId}` : "own";
}
