// Pictures: what was last seen of a run, kept in the tab's storage so that a reload paints at once. A picture is never
// trusted: nothing is asked for because of it, no cursor is taken from it, and the first snapshot replaces it.

import { applyNotice, emptyTranscript } from "./transcript.js";

/** A picture is written this often at most, in milliseconds: storage is slow and tokens are many. */
const INTERVAL_MS = 500;

/** Longest picture, in characters of JSON: storage holds about five million for the whole origin. */
const CHARS_MAX = 1_000_000;

export class Picture {
  #storage;
  #key;
  #picture = { runId: "", seq: 0, transcript: emptyTranscript() };
  #writtenAt = 0;
  #timer = null;

  constructor(endpoint, chatId) {
    this.#storage = endpoint.storage;
    this.#key = `rejoin:picture:${endpoint.url("")}:${chatId}`;
  }

  /** The notices, with the kept picture in front; what they show becomes the next picture. */
  async *keep(notices) {
    const flush = () => this.#write();
    globalThis.addEventListener?.("pagehide", flush);
    try {
      const seed = this.#read();
      if (seed !== null) yield seed;
      for await (const notice of notices) {
        this.#see(notice);
        yield notice;
      }
    } finally {
      globalThis.removeEventListener?.("pagehide", flush);
      if (this.#timer !== null) this.#write();
    }
  }

  #see(notice) {
    if (notice.type === "snapshot" || notice.type === "event") {
      const { runId, seq } = notice;
      // Without a snapshot an event of another run has nothing to be applied to.
      const before = runId === this.#picture.runId ? this.#picture.transcript : emptyTranscript();
      this.#picture = { runId, seq, transcript: applyNotice(before, notice) };
      this.#writeSoon();
    } else if (notice.type === "end" || notice.type === "idle") {
      // From here on the history, or the server's own snapshot of an answer that could not be saved, says it better.
      this.#forget();
    }
  }

  #writeSoon() {
    if (this.#timer !== null) return;
    const wait = Math.max(0, this.#writtenAt + INTERVAL_MS - Date.now());
    this.#timer = setTimeout(() => this.#write(), wait);
    this.#timer.unref?.();
  }

  #write() {
    this.#stopTimer();
    if (this.#picture.runId === "") return;
    this.#writtenAt = Date.now();
    const text = JSON.stringify(this.#picture);
    try {
      if (text.length <= CHARS_MAX) this.#storage?.setItem(this.#key, text);
      else this.#storage?.removeItem(this.#key);
    } catch {
      // A full or forbidden storage costs a picture, nothing else.
    }
  }

  #forget() {
    this.#stopTimer();
    this.#picture = { runId: "", seq: 0, transcript: emptyTranscript() };
    try {
      this.#storage?.removeItem(this.#key);
    } catch {
      // As above.
    }
  }

  #stopTimer() {
    clearTimeout(this.#timer);
    this.#timer = null;
  }

  #read() {
    try {
      const { runId, seq, transcript } = JSON.parse(this.#storage?.getItem(this.#key) ?? "null");
      const whole = typeof runId === "string" && Number.isSafeInteger(seq) && Array.isArray(transcript.parts);
      return whole ? { type: "seed", runId, seq, transcript } : null;
    } catch {
      return null;
    }
  }
}
