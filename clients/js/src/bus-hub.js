// A hub: one source of bus notices, many listeners. Who comes later is told where things stand.

export class BusHub {
  #start;
  #stop = null;
  #listeners = new Set();
  #connection = null;
  /** By run id; null while it is not known what goes on. */
  #streams = null;

  /** `start(emit)` begins to emit notices and returns what ends it. It runs while there are listeners. */
  constructor(start) {
    this.#start = start;
  }

  /** Listens; returns what ends that. */
  join(listener) {
    for (const notice of this.current()) listener(notice);
    this.#listeners.add(listener);
    this.#stop ??= this.#start((notice) => this.#take(notice));
    return () => this.#leave(listener);
  }

  /** Where things stand, as notices. */
  current() {
    const notices = this.#connection === null ? [] : [this.#connection];
    if (this.#streams !== null) notices.push({ type: "snapshot", streams: [...this.#streams.values()] });
    return notices;
  }

  #leave(listener) {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return;
    this.#stop?.();
    this.#stop = null;
    this.#connection = null;
    this.#streams = null;
  }

  #take(notice) {
    if (this.#listeners.size === 0) return;
    this.#note(notice);
    for (const listener of [...this.#listeners]) listener(notice);
  }

  #note(notice) {
    switch (notice.type) {
      case "connection":
        this.#connection = notice;
        // What was known is stale as soon as the connection is gone.
        if (notice.state !== "live") this.#streams = null;
        break;
      case "snapshot":
        this.#streams = new Map(notice.streams.map((stream) => [stream.runId, stream]));
        break;
      case "started": {
        const { chatId, runId, trigger, queued } = notice;
        this.#streams?.set(runId, { chatId, runId, trigger, state: "registered", queued });
        break;
      }
      default:
        this.#streams?.delete(notice.runId);
    }
  }
}
