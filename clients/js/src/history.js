// History: what was saved, read page by page. Events and messages are handed on as they are.

import { RejoinError } from "./errors.js";
import { request } from "./request.js";

export async function chats(endpoint, { after, signal } = {}) {
  const query = after ? `?after_changed_ms=${after.changedMs}&after_chat_id=${encodeURIComponent(after.chatId)}` : "";
  const page = await request(endpoint, "GET", `chats${query}`, { signal });
  return wellFormed(() => ({
    chats: page.chats.map((row) => ({
      chatId: row.chat_id,
      revision: row.revision,
      turns: row.turns,
      createdMs: row.created_ms,
      changedMs: row.changed_ms,
    })),
    next: page.next && { changedMs: page.next.changed_ms, chatId: page.next.chat_id },
  }));
}

export async function chat(endpoint, chatId, { afterTurn, signal } = {}) {
  const query = afterTurn === undefined ? "" : `?after_turn=${afterTurn}`;
  const page = await request(endpoint, "GET", `chats/${encodeURIComponent(chatId)}${query}`, { signal });
  return wellFormed(() => ({
    chatId: page.chat_id,
    revision: page.revision,
    messages: page.messages.slice(),
    turns: page.turns.map(turn),
    next: page.next,
  }));
}

/** A conversation that changes while it is read is read again, this often in all. */
const READS_MAX = 5;

/** All pages. If it never held still, `next` is not null: then what is behind it is missing. */
export async function wholeChat(endpoint, chatId, options = {}) {
  for (let reads = 1; ; reads += 1) {
    const whole = await firstPage(endpoint, chatId, options);
    const { revision } = whole;
    while (whole.next !== null && whole.revision === revision) {
      const page = await chat(endpoint, chatId, { ...options, afterTurn: whole.next });
      whole.revision = page.revision;
      if (page.revision !== revision) break;
      whole.messages.push(...page.messages);
      whole.turns.push(...page.turns);
      whole.next = page.next;
    }
    if (whole.revision === revision || reads === READS_MAX) return whole;
  }
}

async function firstPage(endpoint, chatId, options) {
  try {
    return await chat(endpoint, chatId, { signal: options.signal });
  } catch (error) {
    if (error.code !== "unknown_chat") throw error;
    return { chatId, revision: 0, messages: [], turns: [], next: null };
  }
}

export async function deleteChat(endpoint, chatId, { signal } = {}) {
  await request(endpoint, "DELETE", `chats/${encodeURIComponent(chatId)}`, { changes: true, signal });
}

function turn(row) {
  return {
    turn: row.turn,
    runId: row.run_id,
    trigger: row.trigger,
    seq: row.seq,
    startedMs: row.started_ms,
    endedMs: row.ended_ms,
    persisted: row.persisted,
    superseded: row.superseded,
    closed: row.closed,
    messages: row.messages,
    events: row.events,
  };
}

function wellFormed(read) {
  try {
    return read();
  } catch (cause) {
    throw new RejoinError("malformed", "the answer is not rejoin's history", { status: 200, cause });
  }
}
