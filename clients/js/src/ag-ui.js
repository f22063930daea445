// rejoin as an AG-UI agent: for front ends that are built on @ag-ui/client.
//
// A turn starts with POST /chat/send and is observed over /chat/live, so that a lost connection, a reload or a closed tab
// does not stop it. Only what a send can't carry (results of a front end's own tools, messages that point to files)
// goes to POST /agui, whose sender has to stay: that turn stops if the connection is lost, and is observed in the same way.

import { AbstractAgent } from "@ag-ui/client";
import { Observable } from "rxjs";

import { turnOf } from "./ag-ui-input.js";
import { relay } from "./ag-ui-observe.js";
import { createClient } from "./client.js";

/** How long a turn is looked for, in milliseconds, whose acknowledgement was lost. */
const SEARCH_MS = 5_000;

export class RejoinAgent extends AbstractAgent {
  constructor({ client, clientOptions, runtime, onNotice, ...config } = {}) {
    super(config);
    this.client = client ?? createClient(clientOptions);
    this.runtime = runtime;
    this.onNotice = onNotice;
    /** The request that starts the current turn: a stop must not overtake it. */
    this.starting = Promise.resolve();
  }

  run(input) {
    return observable(async (subscriber, signal) => {
      const start = this.start(input);
      this.starting = start.catch(() => undefined);
      const cursor = await start;
      const options = cursor === null ? { waitMs: SEARCH_MS } : { cursor };
      await this.relay(this.client.attach(input.threadId, { ...options, signal }), subscriber);
    });
  }

  connect(input) {
    return observable(async (subscriber, signal) => {
      const notices = this.client.attach(input.threadId, { signal });
      // Whether there is a run is asked before the history is read: a run that ends in between is in the history.
      const first = await firstFrame(notices, this.onNotice);
      if (first === undefined) return;
      if (first.type === "lost") return subscriber.error(first.error);
      const history = await this.client.wholeChat(input.threadId, { signal });
      for (const event of historyEvents(input, history)) subscriber.next(event);
      const isSaved = history.turns.some((turn) => turn.runId === first.runId && turn.persisted);
      if (first.type === "idle" || isSaved) {
        await notices.return();
        return subscriber.complete();
      }
      await this.relay(prepended(first, notices), subscriber);
    });
  }

  abortRun() {
    const { threadId } = this;
    this.starting
      .then(() => this.client.stop(threadId))
      .catch((error) => this.debugLogger?.lifecycle("LIFECYCLE", "Stop failed:", { error: error.message }));
  }

  clone() {
    const { client, runtime, onNotice, starting } = this;
    return Object.assign(super.clone(), { client, runtime, onNotice, starting });
  }

  /** Starts the turn, with one request. Where to observe it from; null: the acknowledgement was lost, so it is looked for. */
  async start(input) {
    const turn = turnOf(input);
    if (turn === null) return this.client.startAgUi(input);
    try {
      const options = { ...turn.options, runtime: this.runtime };
      const { runId } = await this.client.send(input.threadId, turn.message, options);
      return { runId, afterSeq: 0 };
    } catch (error) {
      if (error.code !== "unconfirmed") throw error;
      return null;
    }
  }

  relay(notices, subscriber) {
    return relay(notices, subscriber, this.onNotice);
  }
}

/** Unsubscribing ends the work, not the turn. */
function observable(work) {
  return new Observable((subscriber) => {
    const controller = new AbortController();
    work(subscriber, controller.signal).catch((error) => subscriber.error(error));
    return () => controller.abort();
  });
}

async function firstFrame(notices, onNotice) {
  for (;;) {
    const { done, value } = await notices.next();
    if (done) return undefined;
    if (value.type !== "connection") return value;
    onNotice?.(value);
  }
}

async function* prepended(first, notices) {
  yield first;
  yield* notices;
}

/** The conversation as a run of its own, in which nothing happens but a MESSAGES_SNAPSHOT. */
function historyEvents({ threadId, runId }, { messages }) {
  return [
    { type: "RUN_STARTED", threadId, runId },
    ...(messages.length > 0 ? [{ type: "MESSAGES_SNAPSHOT", messages }] : []),
    { type: "RUN_FINISHED", threadId, runId },
  ];
}
