// The SharedWorker: one connection to each server that any tab wants to hear of.

import { servePort } from "./bus-worker-port.js";

globalThis.onconnect = ({ ports: [port] }) => servePort(port);
