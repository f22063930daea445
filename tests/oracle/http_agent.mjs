// Talks to an AG-UI agent with AG-UI's own HttpAgent, unchanged: one turn for each argument behind the URL. Prints a line
// of JSON per turn: the text of the last answer, and whether the turn failed.

import { HttpAgent } from "@ag-ui/client";

const [url, ...prompts] = process.argv.slice(2);
const agent = new HttpAgent({ url, threadId: "stock" });
let number = 0;

for (const content of prompts) {
  agent.addMessage({ id: `user-${++number}`, role: "user", content });
  let failed = null;
  try {
    await agent.runAgent({}, { onRunErrorEvent: () => (failed = true), onRunFailed: () => (failed = true) });
  } catch {
    failed = true;
  }
  const answer = agent.messages.findLast((message) => message.role === "assistant")?.content ?? "";
  process.stdout.write(`${JSON.stringify({ answer, failed })}\n`);
}
