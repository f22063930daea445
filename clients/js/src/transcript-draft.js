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

  /** Appends a part. Its key is `name`, with a number behind it if an earlier part has that name. */
  add(kind, id, members, event) {
    const name = `${kind}:${id ?? `~${this.#count(kind)}`}`;
    const earlier = this.get("parts").reduce((count, part) => count + (part.key === name || part.key.startsWith(`${name}#`)), 0);
    const part = { key: earlier === 0 ? name : `${name}#${earlier + 1}`, kind, ...members };
    if (typeof event?.subagentRunId === "string") part.subagentRunId = event.subagentRunId;
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
    return this.get("internal").chunks[scope(event)];
  }

  setChunk(event, chunk) {
    const internal = this.get("internal");
    this.set("internal", { ...internal, chunks: { ...internal.chunks, [scope(event)]: chunk } });
  }

  /** Chunks close themselves when something else is said. */
  closeChunk(event) {
    const chunk = this.chunk(event);
    if (chunk === undefined) return;
    this.markDone((part) => part.key === chunk.key);
    const internal = this.get("internal");
    const { [scope(event)]: _, ...others } = internal.chunks;
    this.set("internal", { ...internal, chunks: others });
  }

  closeAllChunks() {
    if (Object.keys(this.get("internal").chunks).length === 0) return;
    const keys = Object.values(this.get("internal").chunks).map(({ key }) => key);
    this.each((part) => keys.includes(part.key), markDone);
    this.set("internal", { ...this.get("internal"), chunks: {} });
  }

  markDone(fits) {
    const part = this.find(fits);
    if (part !== undefined) markDone(part);
  }

  #count(kind) {
    const internal = this.get("internal");
    const count = (internal.counts[kind] ?? 0) + 1;
    this.set("internal", { ...internal, counts: { ...internal.counts, [kind]: count } });
    return count;
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
