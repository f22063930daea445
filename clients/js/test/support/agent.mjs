// An AG-UI agent under a test's control: it is asked, and says what the test tells it to.

import http from "node:http";

/** Starts the agent. `turn()` waits for the next request: `{input, say(...events), end(), gone}`. */
export async function startAgent() {
  const turns = [];
  const waiting = [];
  const server = http.createServer(async (request, answer) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const input = JSON.parse(Buffer.concat(pieces).toString());
    answer.writeHead(200, { "Content-Type": "text/event-stream" });
    answer.flushHeaders();
    const turn = {
      input,
      say: (...events) => events.forEach((event) => answer.write(`data: ${JSON.stringify(event)}\n\n`)),
      end: () => answer.end(),
      gone: new Promise((resolve) => answer.on("close", resolve)),
    };
    const next = waiting.shift();
    if (next) next(turn);
    else turns.push(turn);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    turn: () => new Promise((resolve) => (turns.length > 0 ? resolve(turns.shift()) : waiting.push(resolve))),
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The beginning of a run with a text that is not over. */
export function begin(input, delta, id = "m1") {
  return [
    { type: "RUN_STARTED", threadId: input.threadId, runId: input.runId },
    { type: "TEXT_MESSAGE_START", messageId: id, role: "assistant" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: id, delta },
  ];
}

export function more(delta, id = "m1") {
  return { type: "TEXT_MESSAGE_CONTENT", messageId: id, delta };
}

/** The end of what `begin` began. */
export function finish(input, id = "m1") {
  return [
    { type: "TEXT_MESSAGE_END", messageId: id },
    { type: "RUN_FINISHED", threadId: input.threadId, runId: input.runId },
  ];
}
