// Attaching: the state machine of follow.js with a connection. It asks POST /chat/live and nothing else.

import { about } from "./endpoint.js";
import { follow, startFollowing } from "./follow.js";
import { readFrame } from "./frame.js";
import { Picture } from "./seed.js";
import { Loss, openStream } from "./stream.js";
import { isOnline, linkedController, pause, untilOnline } from "./wait.js";

/** Follows a chat: see `attach` in index.d.ts. */
export function attach(endpoint, chatId, options = {}) {
  return new Attachment(endpoint, chatId, options);
}

class Attachment {
  #endpoint;
  #chatId;
  #step;
  /** Ends everything: the caller's signal, or the caller leaving the loop. */
  #life;
  /** The current connection. */
  #connection = null;
  #stream = null;
  #notices;

  constructor(endpoint, chatId, options) {
    this.#endpoint = endpoint;
    this.#chatId = chatId;
    this.#life = linkedController(options.signal);
    this.#step = startFollowing({ backoff: endpoint.backoff, ...options });
    const notices = this.#run();
    this.#notices = options.seed ? new Picture(endpoint, chatId).keep(notices) : notices;
  }

  get cursor() {
    return this.#step.state.cursor;
  }

  cut() {
    this.#connection?.controller.abort();
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  next() {
    return this.#notices.next();
  }

  /** A generator would only notice at its next `yield`, and it may be waiting for bytes. */
  return(value) {
    this.#life.controller.abort();
    this.#life.release();
    return this.#notices.return(value);
  }

  async *#run() {
    const { signal } = this.#life.controller;
    try {
      while (!signal.aborted) {
        // Told before it is acted on: whoever shows "retrying" wants to know at the start of the delay.
        for (const notice of this.#step.notices) {
          yield notice;
          if (signal.aborted) return;
        }
        if (this.#step.action.type === "stop") return;
        const input = await this.#act(this.#step.action, signal);
        if (signal.aborted) return;
        this.#step = follow(this.#step.state, input, Math.random());
        if (this.#step.action.type !== "read") this.#disconnect();
      }
    } finally {
      this.#disconnect();
      this.#life.release();
    }
  }

  async #act(action, signal) {
    try {
      if (action.type === "read") return await this.#read();
      if (action.type === "ask") return await this.#ask(action, signal);
      await untilOnline(signal);
      return { type: "online" };
    } catch (error) {
      if (!(error instanceof Loss)) throw error;
      return { type: "lost", reason: error.reason, online: isOnline(), earliestMs: error.earliestMs };
    }
  }

  async #ask({ delayMs, cursor, waitMs }, signal) {
    if (delayMs > 0) await pause(delayMs, signal);
    this.#connection = linkedController(signal);
    const body = { chat_id: this.#chatId, protocol: 1, wait_ms: waitMs };
    if (cursor !== null) Object.assign(body, { run_id: cursor.runId, after_seq: cursor.afterSeq });
    const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    const answer = await openStream(this.#endpoint, about("chat/live", this.#chatId), init, this.#connection.controller.signal);
    if (answer.nothing) return { type: "nothing" };
    if (answer.refused) return { type: "refused", error: answer.refused };
    this.#stream = answer.stream;
    return { type: "opened" };
  }

  async #read() {
    const frame = readFrame(await this.#stream.message(this.#connection.controller.signal));
    if (frame === null) throw new Loss("malformed");
    return { type: "frame", frame };
  }

  #disconnect() {
    this.#stream?.close();
    this.#stream = null;
    this.#connection?.release();
    this.#connection = null;
  }
}
