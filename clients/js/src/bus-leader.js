// One connection for all tabs without a worker: a lock elects the leader, which has the connection and tells the others
// over a channel. A leader that goes takes its lock with it, and the next tab gets it. (Browsers don't freeze a tab that
// holds a lock.)

import { BusHub } from "./bus-hub.js";
import { upstream } from "./bus-upstream.js";

export function leaderSource(endpoint, emit) {
  const name = `rejoin-bus:${endpoint.url("")}`;
  const channel = new BroadcastChannel(name);
  const hub = new BusHub((hubEmit) => upstream(endpoint, hubEmit));
  const election = new AbortController();
  let abdicate = null;

  channel.onmessage = ({ data }) => {
    if (data.type !== "hello") emit(data);
    else if (abdicate !== null) for (const notice of hub.current()) channel.postMessage(notice);
  };
  const lead = () =>
    new Promise((resolve) => {
      if (election.signal.aborted) return resolve();
      const leave = hub.join((notice) => {
        emit(notice);
        channel.postMessage(notice);
      });
      abdicate = () => {
        leave();
        resolve();
      };
    });
  globalThis.navigator.locks.request(name, { signal: election.signal }, lead).catch(ignoreAbort);
  channel.postMessage({ type: "hello" });

  return () => {
    election.abort();
    abdicate?.();
    channel.onmessage = null;
    channel.close();
  };
}

/** A tab that is closed before it ever led. */
function ignoreAbort(error) {
  if (error?.name !== "AbortError") throw error;
}
