// An answer that is an event stream: opened, read item by item, watched for silence. Whatever goes wrong is a `Loss`, for
// the follower to judge.

import { retryAfterMs } from "./backoff.js";
import { refusal } from "./errors.js";
import { SseParser } from "./sse.js";
import { linkedController } from "./wait.js";

/** Why a connection doesn't count any more. `reason` is one of LossReason; before `earliestMs` it is of no use to try again. */
export class Loss extends Error {
  constructor(reason, earliestMs = 0) {
    super(reason);
    this.reason = reason;
    this.earliestMs = earliestMs;
  }
}

/**
 * Asks for a stream: `{stream}`, `{nothing: true}` (204) or `{refused}`, an error that would come again. Throws a Loss.
 * `signal` cuts it, at any time.
 */
export async function openStream(endpoint, path, init, signal) {
  const { controller, release } = linkedController(signal);
  const watch = new Watch(controller, endpoint.silenceMs);
  try {
    const response = await watch.over(() => endpoint.fetch(path, { ...init, signal: controller.signal }));
    if (response.status !== 204 && response.ok && isEventStream(response) && response.body) {
      return { stream: new EventStream(response.body.getReader(), watch, release) };
    }
    const answer = await finalAnswer(response, watch);
    release();
    return answer;
  } catch (error) {
    release();
    controller.abort();
    throw watch.lossOf(error, signal);
  }
}

/** Statuses that may pass by themselves are losses. So is a good answer that is no stream: a proxy's page, for example. */
async function finalAnswer(response, watch) {
  const { ok, status } = response;
  if (status === 204) return { nothing: true };
  if (ok) throw new Loss("malformed");
  if (status === 408 || status === 429 || status >= 500) {
    throw new Loss("status", retryAfterMs(response.headers.get("retry-after")));
  }
  return { refused: refusal(status, await watch.over(() => response.text())) };
}

function isEventStream(response) {
  return /^text\/event-stream\s*(;|$)/i.test(response.headers.get("content-type") ?? "");
}

class EventStream {
  #reader;
  #watch;
  #release;
  #parser = new SseParser();
  #items = [];

  constructor(reader, watch, release) {
    this.#reader = reader;
    this.#watch = watch;
    this.#release = release;
  }

  /** The data of the next message. Throws a Loss, at the end of the stream too. */
  async message(signal) {
    try {
      for (;;) {
        const item = this.#items.shift();
        if (item?.type === "message") return item.data;
        if (item === undefined) await this.#fill();
      }
    } catch (error) {
      throw this.#watch.lossOf(error, signal);
    }
  }

  async #fill() {
    const { done, value } = await this.#watch.over(() => this.#reader.read());
    if (done) throw new Loss("eof");
    try {
      this.#items = this.#parser.push(value);
    } catch {
      throw new Loss("malformed");
    }
  }

  close() {
    this.#release();
    this.#watch.abort();
  }
}

/** Cuts the connection if it takes too long to say anything. The time that the reader takes doesn't count. */
class Watch {
  #controller;
  #silenceMs;
  #silent = false;

  constructor(controller, silenceMs) {
    this.#controller = controller;
    this.#silenceMs = silenceMs;
  }

  async over(work) {
    const timer = setTimeout(() => {
      this.#silent = true;
      this.#controller.abort();
    }, this.#silenceMs);
    try {
      return await work();
    } finally {
      clearTimeout(timer);
    }
  }

  abort() {
    this.#controller.abort();
  }

  lossOf(error, signal) {
    if (error instanceof Loss) return error;
    if (this.#silent) return new Loss("silent");
    return new Loss(signal.aborted ? "cut" : "network");
  }
}
