// One connection for all tabs in a SharedWorker: this is a tab's end of it.

import { leaderSource } from "./bus-leader.js";
import { upstream } from "./bus-upstream.js";

/** A worker says something at once. One that says nothing for this long, in milliseconds, could not be loaded. */
const PATIENCE_MS = 5_000;

export function workerSource(endpoint, emit) {
  const port = new Link(endpoint, emit);
  return () => port.close();
}

class Link {
  #endpoint;
  #emit;
  #port;
  #timer;
  /** Ends the other way, if the worker could not be had. */
  #stopOther = null;

  constructor(endpoint, emit) {
    this.#endpoint = endpoint;
    this.#emit = emit;
    try {
      const worker = new SharedWorker(new URL("./bus-worker.js", import.meta.url), { type: "module", name: "rejoin-bus" });
      worker.onerror = () => this.#giveUp();
      this.#port = worker.port;
    } catch {
      this.#giveUp();
      return;
    }
    this.#port.onmessage = ({ data }) => this.#heard(data);
    this.#timer = setTimeout(() => this.#giveUp(), PATIENCE_MS);
    this.#join();
    globalThis.addEventListener?.("pagehide", this.#leave);
    globalThis.addEventListener?.("pageshow", this.#comeBack);
  }

  close() {
    clearTimeout(this.#timer);
    globalThis.removeEventListener?.("pagehide", this.#leave);
    globalThis.removeEventListener?.("pageshow", this.#comeBack);
    this.#stopOther?.();
    this.#leave();
    this.#port?.close();
  }

  #heard(notice) {
    clearTimeout(this.#timer);
    this.#emit(notice);
  }

  #join() {
    this.#port.postMessage({ type: "join", baseUrl: this.#endpoint.url(""), headers: this.#endpoint.headers });
  }

  /** A port does not tell the worker that its tab is gone. */
  #leave = () => this.#port?.postMessage({ type: "leave" });

  #comeBack = (event) => {
    if (event.persisted && this.#stopOther === null) this.#join();
  };

  #giveUp() {
    clearTimeout(this.#timer);
    if (this.#stopOther !== null) return;
    this.#leave();
    const other = globalThis.navigator?.locks && typeof BroadcastChannel === "function" ? leaderSource : upstream;
    this.#stopOther = other(this.#endpoint, this.#emit);
  }
}
