// A tab that never gets the lock, in a thread of its own.

import { parentPort, workerData } from "node:worker_threads";

import { createClient } from "../../src/index.js";
import { fakeLocks } from "./locks.mjs";

Object.defineProperty(globalThis, "navigator", { value: { locks: fakeLocks({ held: true }), onLine: true }, configurable: true });

for await (const notice of createClient({ baseUrl: workerData }).bus({ share: "leader" })) {
  if (notice.type !== "snapshot") continue;
  parentPort.postMessage(notice.streams.map(({ runId }) => runId).sort());
  break;
}
