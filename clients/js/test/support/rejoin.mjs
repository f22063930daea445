// The real server on a port of the system's choice, a producer for it, and a proxy that cuts connections.

import { spawn } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import os from "node:os";
import readline from "node:readline";

const BINARY = process.env.REJOIN_BIN;

/** Starts `rejoin serve`; `stop` ends it. */
export async function serve(args = [], { listen = "127.0.0.1:0", db = ":memory:" } = {}) {
  if (!BINARY) throw new Error("set REJOIN_BIN to the rejoin binary: cargo build --locked --bin rejoin, then target/debug/rejoin");
  const child = spawn(BINARY, ["serve", "--listen", listen, "--db", db, ...args], { cwd: os.tmpdir(), stdio: ["ignore", "pipe", "ignore"] });
  const exited = once(child, "exit");
  const lines = readline.createInterface({ input: child.stdout });
  const first = await Promise.race([once(lines, "line"), exited.then(() => [""])]);
  const url = /^rejoin listens on (http:\/\/.+)$/.exec(first[0])?.[1];
  if (url === undefined) throw new Error(`rejoin did not start: ${first[0]}`);
  const stop = async (signal = "SIGTERM") => {
    child.kill(signal);
    await exited;
  };
  return { url: `${url}/`, port: Number(new URL(url).port), stop };
}

/** Runs a test against a server of its own. */
export async function withServer(args, test, options) {
  const server = await serve(args, options);
  try {
    await test(server);
  } finally {
    await server.stop();
  }
}

async function post(url, body, type = "application/json") {
  const response = await fetch(url, { method: "POST", headers: { "Content-Type": type }, body });
  const answer = await response.json();
  if (!response.ok) throw new Error(JSON.stringify(answer));
  return answer;
}

/** A push producer. */
export async function produce(server, chatId, start = {}) {
  const { run_id: runId } = await post(`${server.url}chats/${encodeURIComponent(chatId)}/runs`, JSON.stringify(start));
  return {
    runId,
    append: (events) => post(`${server.url}runs/${runId}/events`, events.map((event) => JSON.stringify(event)).join("\n"), "application/x-ndjson"),
    finish: () => post(`${server.url}runs/${runId}/finish`, "{}"),
  };
}

/** A proxy to a port; `bytes()` says after how many bytes of an answer a connection is cut, Infinity: not at all. */
export async function cuttingProxy(port, bytes) {
  const sockets = new Set();
  let cuts = 0;
  const proxy = net.createServer((client) => {
    const server = net.connect(port, "127.0.0.1");
    let left = bytes();
    for (const [here, there] of [[client, server], [server, client]]) {
      sockets.add(here);
      here.on("error", () => {});
      here.on("close", () => {
        sockets.delete(here);
        there.destroy();
      });
    }
    client.pipe(server);
    server.on("data", (piece) => {
      client.write(piece.subarray(0, left));
      left -= piece.length;
      if (left > 0) return;
      cuts += 1;
      client.destroySoon();
      server.destroy();
    });
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${proxy.address().port}/`,
    cuts: () => cuts,
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => proxy.close(resolve));
    },
  };
}
