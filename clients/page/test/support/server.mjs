// A server of the real binary, and a producer for it.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const BINARY = process.env.REJOIN_BIN ?? fileURLToPath(new URL("../../../../target/debug/rejoin", import.meta.url));

export class TestServer {
  #options;
  #child = null;

  /** Starts one in a folder of its own. `agent`: whether the demo's agent answers. */
  static async start({ agent = true, options = [] } = {}) {
    const server = new TestServer();
    server.folder = await mkdtemp(join(tmpdir(), "rejoin-page-"));
    const agents = agent ? ["--agent", `acp:'${BINARY}' demo-agent --word-ms 25`] : [];
    server.#options = ["--db", join(server.folder, "rejoin.db"), ...agents, ...options];
    await server.#spawn("127.0.0.1:0");
    return server;
  }

  async #spawn(listen) {
    this.#child = spawn(BINARY, ["serve", "--listen", listen, ...this.#options], { stdio: ["ignore", "pipe", "ignore"] });
    const line = await new Promise((resolve, reject) => {
      this.#child.stdout.once("data", (data) => resolve(String(data)));
      this.#child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    });
    this.base = /http:\S+/.exec(line)[0];
  }

  async kill(signal) {
    const gone = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill(signal);
    await gone;
  }

  /** Comes back where it was, with the history that it had. */
  async restart() {
    await this.#spawn(new URL(this.base).host);
  }

  async stop() {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.kill("SIGKILL");
    await rm(this.folder, { recursive: true });
  }

  async post(path, body, type = "application/json") {
    const answer = await fetch(new URL(path, this.base), { method: "POST", headers: { "Content-Type": type }, body });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  /** A run that this test writes itself. */
  async produce(chat, options = {}) {
    const { run_id: runId } = await this.post(`/chats/${chat}/runs`, JSON.stringify(options));
    const push = (...events) => this.post(`/runs/${runId}/events`, events.map((event) => JSON.stringify(event)).join("\n"), "application/x-ndjson");
    await push({ type: "RUN_STARTED", threadId: chat, runId: "r" }, { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" });
    return {
      runId,
      push,
      say: (text) => push({ type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: text }),
      finish: async () => {
        await push({ type: "TEXT_MESSAGE_END", messageId: "m" }, { type: "RUN_FINISHED", threadId: chat, runId: "r" });
        return this.post(`/runs/${runId}/finish`, "{}");
      },
    };
  }
}
