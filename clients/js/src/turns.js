// Turns: starting, steering, stopping, answering. Each makes one request and never another.

import { about } from "./endpoint.js";
import { encodeFiles } from "./files.js";
import { request } from "./request.js";

export function send(endpoint, chatId, message, options = {}) {
  return start(endpoint, "chat/send", chatId, { ...options, message });
}

export function steer(endpoint, chatId, message, options = {}) {
  return start(endpoint, "chat/steer-send", chatId, { ...options, message });
}

export function retry(endpoint, chatId, options = {}) {
  return start(endpoint, "chat/retry", chatId, options);
}

async function start(endpoint, path, chatId, options) {
  const { message, messageIndex, files, trigger, payload, runtime, config, resume, signal } = options;
  const body = {
    chat_id: chatId,
    message: message ?? undefined,
    message_index: messageIndex,
    files: files && files.length > 0 ? await encodeFiles(files) : undefined,
    trigger,
    payload,
    runtime,
    config,
    resume,
  };
  const { run_id: runId } = await request(endpoint, "POST", about(path, chatId), { body, changes: true, signal });
  return { chatId, runId };
}

export async function stop(endpoint, chatId, { reason, signal } = {}) {
  const body = { chat_id: chatId, reason };
  const { run_id, seq, persisted } = await request(endpoint, "POST", about("chat/stop", chatId), { body, changes: true, signal });
  return { runId: run_id, seq, persisted };
}

export async function respond(endpoint, chatId, requestId, answer, { signal } = {}) {
  const { optionId, action, content, cancelled } = answer;
  const body = { chat_id: chatId, request_id: requestId, option_id: optionId, action, content, cancelled };
  const { request_id, option_id, outcome, content: decided } = await request(endpoint, "POST", about("chat/respond", chatId), {
    body,
    changes: true,
    signal,
  });
  return withoutGaps({ requestId: request_id, outcome, optionId: option_id, content: decided });
}

function withoutGaps(object) {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}
