// The event bus as a program sees it: one hub per server in a tab, fed in whatever way shares the connection best.

import { BusHub } from "./bus-hub.js";
import { leaderSource } from "./bus-leader.js";
import { upstream } from "./bus-upstream.js";
import { workerSource } from "./bus-worker-source.js";
import { Queue } from "./queue.js";

const SOURCES = { worker: workerSource, leader: leaderSource, none: upstream };

/** By endpoint and way, so that all subscriptions of a client share what they can. */
const hubs = new WeakMap();

/** See `bus` in index.d.ts. */
export function subscribe(endpoint, { signal, share = "auto" } = {}) {
  const queue = new Queue();
  let leave = null;
  const end = () => {
    queue.close();
    signal?.removeEventListener("abort", end);
    leave?.();
    leave = null;
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next() {
      if (signal?.aborted) end();
      else if (leave === null) {
        signal?.addEventListener("abort", end, { once: true });
        leave = hubOf(endpoint, share).join((notice) => queue.push(notice));
      }
      return queue.next();
    },
    async return(value) {
      end();
      return { done: true, value };
    },
  };
}

function hubOf(endpoint, share) {
  const way = share === "auto" ? bestWay(endpoint) : share;
  const ways = hubs.get(endpoint) ?? new Map();
  hubs.set(endpoint, ways);
  if (!ways.has(way)) ways.set(way, new BusHub((emit) => SOURCES[way](endpoint, emit)));
  return ways.get(way);
}

/** A browser gives a page six connections to a server over HTTP/1.1: ten tabs would use them up. */
function bestWay(endpoint) {
  if (typeof globalThis.SharedWorker === "function" && !endpoint.isPrivate) return "worker";
  const canElect = typeof globalThis.BroadcastChannel === "function" && globalThis.navigator?.locks !== undefined;
  return canElect ? "leader" : "none";
}
