// A conversation: its history, the run that is followed, and what a person asks of it. It knows no elements; whoever shows
// it is told of changes.

import { applyNotice, emptyTranscript } from "../client/index.js";
import { allExchanges, exchangesOf, isRunning } from "./history-model.js";

export class Conversation {
  #client;
  #changed;
  #history = [];
  #live = null;
  #pending = null;
  #attachment = null;
  #abort = new AbortController();
  #reading = null;
  /** A run that began while it was being asked whether there is one. */
  #heard = null;

  /** `idle` while nobody writes; else as the notices of the client say, or `lost` with its error. */
  connection = { state: "connecting" };
  /** Whether the history has been read, and whether it is known what goes on. */
  ready = false;
  /** What a request was refused with, if that has not been set right since. */
  error = null;

  constructor(client, chatId, changed) {
    this.#client = client;
    this.chatId = chatId;
    this.#changed = changed;
  }

  get exchanges() {
    return allExchanges(this.#history, this.#live, this.#pending);
  }

  get running() {
    return isRunning(this.#live);
  }

  get sending() {
    return this.#pending !== null;
  }

  open() {
    this.#follow({ seed: true });
    return this.#readHistory();
  }

  close() {
    this.#abort.abort();
    this.#abort = null;
  }

  /** A run began in this chat, perhaps because of another tab. */
  noteStarted(runId) {
    if (runId === this.#live?.runId || this.sending) return;
    if (this.connection.state === "idle" || this.connection.state === "lost") this.#follow({});
    else this.#heard = runId;
    this.#readHistory();
  }

  noteEnded(runId) {
    if (runId !== this.#live?.runId) this.#readHistory();
  }

  /** Sends a message; while an answer is written, it takes its place. Returns whether it was taken. */
  send(text) {
    const ask = this.running ? this.#client.steer : this.#client.send;
    return this.#ask({ user: text, from: null }, () => ask(this.chatId, text));
  }

  /** Asks again from an exchange on; with a text it is an edit. */
  retry({ index, user }, text = null) {
    const options = { messageIndex: index, ...(text !== null && { message: text }) };
    return this.#ask({ user: text ?? user, from: index }, () => this.#client.retry(this.chatId, options));
  }

  stop() {
    return this.#try(() => this.#client.stop(this.chatId));
  }

  respond(requestId, answer) {
    return this.#try(() => this.#client.respond(this.chatId, requestId, answer));
  }

  /** Drops the connection as the network might. */
  cut() {
    this.#attachment?.cut();
  }

  /** Tries once more after the connection was lost. */
  reconnect() {
    this.#follow({ cursor: this.#attachment?.cursor ?? null });
    this.#readHistory();
  }

  /** Something may have changed that nobody told of. */
  refresh() {
    return this.#readHistory();
  }

  async #ask(pending, request) {
    this.#pending = pending;
    const accepted = await this.#try(request);
    this.#pending = null;
    if (accepted !== null) {
      this.#keepLive();
      this.#live = { runId: accepted.runId, ...pending, transcript: emptyTranscript(), end: null, seeded: false };
      this.#follow({ cursor: { runId: accepted.runId, afterSeq: 0 } });
      this.#readHistory();
    }
    this.#changed();
    return accepted !== null;
  }

  /** The request's answer; null if it was refused, which is shown. */
  async #try(request) {
    this.error = null;
    this.#changed();
    try {
      return await request();
    } catch (error) {
      this.error = error;
      this.#changed();
      if (error.code === "unconfirmed") this.reconnect();
      return null;
    }
  }

  async #follow(options) {
    if (this.#abort === null) return;
    this.#abort.abort();
    const abort = new AbortController();
    this.#abort = abort;
    this.#attachment = this.#client.attach(this.chatId, { ...options, signal: abort.signal });
    for await (const notice of this.#attachment) {
      if (abort.signal.aborted) return;
      this.#take(notice);
      this.#changed();
    }
  }

  #take(notice) {
    switch (notice.type) {
      case "seed":
      case "snapshot":
      case "event":
        this.#show(notice);
        break;
      case "end":
        this.#live = { ...this.#live, end: notice };
        // One that replaces it is followed without being told.
        if (!notice.superseded) this.#becomeIdle();
        break;
      case "idle":
        this.#giveUpLive();
        this.#becomeIdle();
        break;
      case "lost":
        this.connection = { state: "lost", error: notice.error, reason: notice.reason };
        this.ready = true;
        break;
      case "connection":
        this.connection = notice;
        break;
    }
  }

  #show(notice) {
    const { runId } = notice;
    if (this.#live?.runId !== runId) {
      this.#keepLive();
      this.#live = { runId, user: null, from: null, transcript: emptyTranscript(), end: null, seeded: false };
      if (notice.type !== "seed") this.#readHistory();
    }
    const transcript = applyNotice(this.#live.transcript, notice);
    this.#live = { ...this.#live, transcript, seeded: notice.type === "seed" };
  }

  /** The server does not know the run any more. What was received stays, and is saved only if the history has it. */
  #giveUpLive() {
    if (this.#live?.seeded) this.#live = null;
    else if (this.#live?.end === null) this.#live = { ...this.#live, end: { persisted: false, superseded: false } };
  }

  /** The history may not have it yet, but it was seen. */
  #keepLive() {
    this.#history = allExchanges(this.#history, this.#live, null);
    this.#live = null;
  }

  #becomeIdle() {
    this.connection = { state: "idle" };
    this.ready = true;
    this.#readHistory();
    if (this.#heard !== null && this.#heard !== this.#live?.runId) this.#follow({});
    this.#heard = null;
  }

  /** Reads the history; if that is going on already, once more afterwards. */
  async #readHistory() {
    if (this.#reading !== null) {
      this.#reading = "again";
      return;
    }
    do {
      this.#reading = "once";
      await this.#readOnce();
    } while (this.#reading === "again" && this.#abort !== null);
    this.#reading = null;
  }

  async #readOnce() {
    try {
      const page = await this.#client.wholeChat(this.chatId);
      this.#history = exchangesOf(page);
    } catch (error) {
      // The connection says it if the server is gone; what was read before stays.
      if (error.code !== "unreachable") this.error = error;
    }
    this.#changed();
  }
}
