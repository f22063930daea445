// POST /agui: a RunAgentInput as it is. The turn goes on only as long as its sender reads the answer, so the answer is
// read to its end and dropped: the run itself is observed over /chat/live.

import { about } from "./endpoint.js";
import { RejoinError, refusal } from "./errors.js";

/** No run has this name: the answer to a cursor of an unknown run begins with a snapshot, also if it is over already. */
const UNKNOWN_RUN = { runId: "-", afterSeq: 0 };

/** Starts the turn. Where to observe it from. */
export async function startAgUi(endpoint, input) {
  let response;
  try {
    response = await endpoint.fetch(about("agui", input.threadId), {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(input),
    });
  } catch (cause) {
    throw new RejoinError("unconfirmed", "the connection was lost before the turn began; if it did begin, it was stopped", { cause });
  }
  if (!response.ok) throw refusal(response.status, await response.text().catch(() => ""));
  drain(response.body.getReader());
  return UNKNOWN_RUN;
}

async function drain(reader) {
  try {
    while (!(await reader.read()).done);
  } catch {
    // The turn is stopped then, and its observers are told.
  }
}
