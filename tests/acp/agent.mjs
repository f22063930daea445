// A small agent on ACP's official SDK. What it does is chosen by the words in its prompt:
//
//   hello       a few chunks of text
//   tools       a thought, a plan, a tool call with its result, text
//   permission  asks before it does something, and tells what was decided
//   slow        a chunk, then nothing until it is cancelled
//   boom        a chunk, then an error
//
// Anything else is repeated. It keeps no conversations, so none can be loaded.

import { Readable, Writable } from "node:stream";
import { PROTOCOL_VERSION, RequestError, agent, methods, ndJsonStream } from "@agentclientprotocol/sdk";

let sessions = 0;

// Each takes a function that sends an update, and the handler's context; it returns why the turn stopped.
const acts = {
  async hello(say) {
    for (const word of ["Hello", ", ", "wörld", " 🎈"]) await say(chunk("agent_message_chunk", word));
    return "end_turn";
  },

  async tools(say) {
    await say(chunk("agent_thought_chunk", "I need the file."));
    await say({ sessionUpdate: "plan", entries: [{ content: "Read it", priority: "high", status: "pending" }] });
    const toolCallId = "read-1";
    const rawInput = { path: "/tmp/a.txt" };
    await say({ sessionUpdate: "tool_call", toolCallId, title: "Read a.txt", kind: "read", status: "pending", rawInput });
    await say({ sessionUpdate: "tool_call_update", toolCallId, status: "in_progress" });
    const content = [{ type: "content", content: { type: "text", text: "42" } }];
    await say({ sessionUpdate: "tool_call_update", toolCallId, status: "completed", content });
    await say(chunk("agent_message_chunk", "It says 42."));
    return "end_turn";
  },

  async permission(say, { client, params }) {
    const { outcome } = await client.request(methods.client.session.requestPermission, {
      sessionId: params.sessionId,
      toolCall: { toolCallId: "write-1", title: "Write a.txt", kind: "edit", status: "pending" },
      options: [
        { optionId: "yes", name: "Allow", kind: "allow_once" },
        { optionId: "no", name: "Reject", kind: "reject_once" },
      ],
    });
    if (outcome.outcome === "cancelled") return "cancelled";
    await say(chunk("agent_message_chunk", `You chose ${outcome.optionId}.`));
    return "end_turn";
  },

  async slow(say, _context, cancelled) {
    await say(chunk("agent_message_chunk", "Wait"));
    await cancelled;
    return "cancelled";
  },

  async boom(say) {
    await say(chunk("agent_message_chunk", "About to fail"));
    throw RequestError.internalError({ details: "the fuse blew" });
  },
};

function chunk(sessionUpdate, text) {
  return { sessionUpdate, content: { type: "text", text } };
}

const cancels = new Map();

async function prompt(context) {
  const { sessionId, prompt: parts } = context.params;
  const words = parts.map((part) => part.text ?? "").join(" ");
  const say = (update) => context.client.notify(methods.client.session.update, { sessionId, update });
  const cancelled = new Promise((resolve) => cancels.set(sessionId, resolve));
  const name = Object.keys(acts).find((act) => words.includes(act));
  if (name === undefined) {
    await say(chunk("agent_message_chunk", words));
    return { stopReason: "end_turn" };
  }
  return { stopReason: await acts[name](say, context, cancelled) };
}

agent({ name: "rejoin-test-agent" })
  .onRequest(methods.agent.initialize, () => ({ protocolVersion: PROTOCOL_VERSION, agentCapabilities: {} }))
  .onRequest(methods.agent.session.new, () => ({ sessionId: `session-${++sessions}` }))
  .onRequest(methods.agent.session.prompt, prompt)
  .onNotification(methods.agent.session.cancel, ({ params }) => cancels.get(params.sessionId)?.())
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
