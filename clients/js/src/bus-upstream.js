// The bus's own connection: GET /events/stream, again and again. It never gives up, for it costs next to nothing and a
// page without it would never learn of new runs.

import { delayMs } from "./backoff.js";
import { readBusNotice } from "./bus-notice.js";
import { Loss, openStream } from "./stream.js";
import { pause } from "./wait.js";

/** Emits the server's notices until it is stopped: returns what stops it. */
export function upstream(endpoint, emit) {
  const controller = new AbortController();
  run(endpoint, emit, controller.signal);
  return () => controller.abort();
}

async function run(endpoint, emit, signal) {
  emit({ type: "connection", state: "connecting" });
  let attempt = 0;
  for (;;) {
    const { news, earliestMs } = await readOn(endpoint, emit, signal);
    if (signal.aborted) return;
    attempt = news ? 1 : attempt + 1;
    const delay = earliestMs + delayMs(endpoint.backoff, attempt, Math.random());
    emit({ type: "connection", state: "retrying", attempt, delayMs: delay });
    await pause(delay, signal);
  }
}

/** One connection, to its end: whether anything came, and how long the server wants to be left alone. */
async function readOn(endpoint, emit, signal) {
  let news = false;
  let stream;
  try {
    ({ stream } = await openStream(endpoint, "events/stream", { method: "GET" }, signal));
    if (stream === undefined) return { news, earliestMs: 0 };
    emit({ type: "connection", state: "live" });
    for (;;) {
      const notice = readBusNotice(await stream.message(signal));
      if (signal.aborted) return { news, earliestMs: 0 };
      if (notice !== null) emit(notice);
      news = true;
    }
  } catch (error) {
    if (!(error instanceof Loss)) throw error;
    return { news, earliestMs: error.earliestMs };
  } finally {
    stream?.close();
  }
}
