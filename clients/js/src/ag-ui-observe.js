// Observing for an AG-UI subscriber: notices in, one valid sequence of events out.

import { Continuation } from "./ag-ui-continuation.js";
import { OpenEntities } from "./ag-ui-open.js";
import { RejoinError } from "./errors.js";

/** Gives the subscriber what the notices tell, up to the end of the run. `onNotice` sees each. */
export async function relay(notices, subscriber, onNotice) {
  const relayed = new Relay(subscriber);
  for await (const notice of notices) {
    onNotice?.(notice);
    relayed.take(notice);
  }
}

class Relay {
  #subscriber;
  #runId = null;
  #continuation = new Continuation();
  #open = new OpenEntities();

  constructor(subscriber) {
    this.#subscriber = subscriber;
  }

  take(notice) {
    switch (notice.type) {
      case "snapshot":
        this.#enter(notice.runId);
        this.#continuation.rest(notice.events).forEach((event) => this.#emit(event));
        break;
      case "event":
        this.#enter(notice.runId);
        this.#continuation.note(notice.event);
        this.#emit(notice.event);
        break;
      case "end":
        if (!notice.superseded) this.#subscriber.complete();
        break;
      case "idle":
        this.#subscriber.error(forgotten());
        break;
      case "lost":
        this.#subscriber.error(notice.error);
        break;
      default:
    }
  }

  /** A newer run has taken the place of the one that was shown: that is closed first. */
  #enter(runId) {
    if (runId === this.#runId) return;
    this.#open.close().forEach((event) => this.#emit(event));
    this.#runId = runId;
    this.#continuation = new Continuation();
  }

  #emit(event) {
    this.#open.note(event);
    this.#subscriber.next(event);
  }
}

function forgotten() {
  return new RejoinError("lost", "the server does not know the run any more; the history has what was saved", {
    details: { reason: "forgotten" },
  });
}
