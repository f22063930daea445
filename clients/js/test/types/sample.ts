// What a user of the package writes: it only has to compile.

import type { AbstractAgent } from "@ag-ui/client";
import {
  OWN_CODES,
  RejoinError,
  SseParser,
  applyNotice,
  createClient,
  emptyTranscript,
  follow,
  readFrame,
  startFollowing,
  transcriptOf,
} from "rejoin-client";
import type { FollowStep, Notice, Part, RejoinClient, Transcript } from "rejoin-client";
import { RejoinAgent } from "rejoin-client/ag-ui";

const client: RejoinClient = createClient({
  baseUrl: "http://127.0.0.1:8787/",
  headers: () => ({ Authorization: "Bearer x" }),
  storage: null,
  backoff: { attemptsMax: 3 },
});

export async function showRun(signal: AbortSignal): Promise<Transcript> {
  const { runId } = await client.send("chat", "hello", { files: [new File(["x"], "x.txt"), { name: "y", data: "eA==" }] });
  let transcript = emptyTranscript();
  const attachment = client.attach("chat", { cursor: { runId, afterSeq: 0 }, seed: true, signal });
  for await (const notice of attachment) {
    transcript = applyNotice(transcript, notice);
    describe(notice);
  }
  attachment.cut();
  return transcript;
}

function describe(notice: Notice): string {
  switch (notice.type) {
    case "seed":
      return `${notice.transcript.parts.length}`;
    case "snapshot":
      return `${notice.events.length}`;
    case "event":
      return notice.event.type;
    case "end":
      return notice.persisted ? "saved" : "not saved";
    case "idle":
      return `${notice.attached}`;
    case "connection":
      return notice.state === "retrying" ? `${notice.attempt} of ${notice.attemptsMax}: ${notice.reason}` : notice.state;
    case "lost":
      return notice.error.code;
  }
}

export function render(part: Part): string {
  switch (part.kind) {
    case "text":
    case "reasoning":
      return part.text;
    case "tool":
      return `${part.name}(${part.args}) = ${String(part.result)}`;
    case "permission":
      return part.options.map(({ name }) => name).join();
    case "form":
      return part.message;
    case "step":
    case "subagent":
      return part.name;
    case "activity":
      return part.activityType;
    case "custom":
      return part.name;
  }
}

export async function everythingElse(): Promise<void> {
  await client.steer("chat", "no");
  await client.retry("chat", { messageIndex: 0, message: "edit" });
  await client.respond("chat", "q", { optionId: "yes" });
  await client.respond("chat", "q", { action: "accept", content: { n: 1 } });
  const { persisted } = await client.stop("chat");
  const page = await client.chats();
  if (page.next) await client.chats({ after: page.next });
  const { turns } = await client.wholeChat("chat");
  transcriptOf(turns[0]?.events ?? []);
  await client.deleteChat("chat");
  for await (const notice of client.bus({ share: "leader" })) if (notice.type === "ended") break;
  if (!persisted) throw new RejoinError("lost", "no", { status: 0, details: {} });

  const step: FollowStep = follow(startFollowing().state, { type: "lost", reason: "eof", online: true }, 0.5);
  for (const item of new SseParser().push(new Uint8Array())) if (item.type === "message") readFrame(item.data);
  const code: "lost" = OWN_CODES[0];
  console.log(step.action.type, code);

  // @ts-expect-error an answer has one of the known shapes
  await client.respond("chat", "q", { yes: true });
}

export const agent: AbstractAgent = new RejoinAgent({ client, threadId: "chat", onNotice: describe });
