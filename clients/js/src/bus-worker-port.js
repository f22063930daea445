// The worker's end of a tab's port.

import { BusHub } from "./bus-hub.js";
import { upstream } from "./bus-upstream.js";
import { Endpoint } from "./endpoint.js";

const hubs = new Map();

/** Tells a tab what it joins, until it leaves. */
export function servePort(port) {
  let leave = null;
  port.onmessage = ({ data }) => {
    leave?.();
    leave = data.type === "join" ? hubOf(data).join((notice) => port.postMessage(notice)) : null;
  };
}

/** Tabs that send different headers may be different people. */
function hubOf({ baseUrl, headers }) {
  const key = JSON.stringify([baseUrl, headers]);
  if (!hubs.has(key)) {
    const endpoint = new Endpoint({ baseUrl, headers, storage: null });
    hubs.set(key, new BusHub((emit) => upstream(endpoint, emit)));
  }
  return hubs.get(key);
}
