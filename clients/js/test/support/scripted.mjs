// A server that answers each request with the next act of a script, and remembers what it was asked.

import http from "node:http";

/**
 * Serves on a free port. `acts` are functions of (answer, request), where request is `{method, url, headers, body}` and answer
 * is node's response; a request beyond the last act gets a 500, and so does the test, from `check`.
 */
export async function scripted(acts) {
  const asked = [];
  const faults = [];
  const server = http.createServer(async (request, answer) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const text = Buffer.concat(pieces).toString();
    const seen = { method: request.method, url: request.url, headers: request.headers, body: text && JSON.parse(text) };
    asked.push(seen);
    const act = acts[asked.length - 1];
    if (act === undefined) {
      faults.push(`unexpected ${request.method} ${request.url}`);
      return answer.writeHead(500).end();
    }
    await act(answer, seen);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}/`;
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url, asked, faults, close };
}

/** Runs a test against a script; every act must be asked for, and no more. */
export async function withScript(acts, test) {
  const server = await scripted(acts);
  try {
    await test(server);
    if (server.faults.length > 0) throw new Error(server.faults.join("; "));
    if (server.asked.length !== acts.length) throw new Error(`${server.asked.length} of ${acts.length} acts were asked for`);
  } finally {
    await server.close();
  }
}

export const snapshot = (run, seq, events = []) => ({ type: "STREAM_SNAPSHOT", run_id: run, seq, events });
export const event = (run, seq, body = { type: "X" }) => ({ type: "STREAM_EVENT", run_id: run, seq, event: body });
export const end = (run, seq, persisted = true, superseded = false) => ({ type: "STREAM_END", run_id: run, seq, persisted, superseded });
export const text = (delta, messageId = "m") => ({ type: "TEXT_MESSAGE_CONTENT", messageId, delta });

/** Answers with these messages and ends; `then`: "end" (default), "cut" (the connection breaks) or "hang". */
export function stream(messages, then = "end") {
  return (answer) => {
    answer.writeHead(200, { "Content-Type": "text/event-stream" });
    answer.flushHeaders();
    const bytes = messages.map((message) => (typeof message === "string" ? message : `data: ${JSON.stringify(message)}\n\n`)).join("");
    if (then === "hang") return answer.write(bytes || ":\n");
    if (then === "end") return answer.end(bytes);
    answer.write(bytes || ":\n", () => answer.destroy());
  };
}

export function json(status, body) {
  return (answer) => answer.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}

export const nothing = (answer) => answer.writeHead(204).end();

export const hangUp = (answer) => answer.destroy();

/** Delays that a test can wait for. */
export const FAST = { firstMs: 1, lastMs: 4, attemptsMax: 5 };

export async function collect(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}

/** A notice in a few words. */
export function brief(notice) {
  switch (notice.type) {
    case "snapshot":
      return `snapshot ${notice.runId} ${notice.seq}`;
    case "event":
      return `event ${notice.runId} ${notice.seq}`;
    case "end":
      return `end ${notice.runId} ${notice.persisted ? "saved" : "unsaved"}${notice.superseded ? " superseded" : ""}`;
    case "idle":
      return `idle ${notice.attached}`;
    case "lost":
      return `lost ${notice.error.code} ${notice.reason ?? notice.error.status}`;
    case "connection":
      return notice.state === "retrying" ? `retrying ${notice.attempt} ${notice.reason}` : notice.state;
    default:
      return notice.type;
  }
}
