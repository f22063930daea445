// One request, one answer. Never repeated in here: a request that starts a turn would start another.

import { RejoinError, refusal } from "./errors.js";

/**
 * Asks for JSON. `changes`: the request changes something, so that a lost answer is `unconfirmed`, which is not the same as
 * not done; one that only reads is `unreachable` then.
 */
export async function request(endpoint, method, path, { body, changes = false, signal } = {}) {
  const init = { method, signal };
  if (body !== undefined) {
    init.headers = { "Content-Type": "application/json" };
    init.body = JSON.stringify(body);
  }
  let response;
  let text;
  try {
    response = await endpoint.fetch(path, init);
    text = await response.text();
  } catch (cause) {
    throw lostAnswer(changes, signal, cause, response?.status);
  }
  if (!response.ok) throw failure(response.status, text, changes);
  return response.status === 204 ? null : parse(text, changes, response.status);
}

function lostAnswer(changes, signal, cause, status = 0) {
  if (changes) {
    const message = "the answer was lost, so it is not known whether the request was carried out; look before you repeat it";
    return new RejoinError("unconfirmed", message, { status, cause });
  }
  if (signal?.aborted) return new RejoinError("aborted", "the request was called off", { status, cause });
  return new RejoinError("unreachable", "the server can't be reached", { status, cause });
}

/** A gateway that lost the server behind it says nothing about what the server did. */
function failure(status, text, changes) {
  const error = refusal(status, text);
  const byGateway = error.code === "refused" && [502, 503, 504].includes(status);
  return changes && byGateway ? lostAnswer(true, undefined, error, status) : error;
}

function parse(text, changes, status) {
  try {
    const value = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Told below.
  }
  if (changes) throw lostAnswer(true, undefined, undefined, status);
  throw new RejoinError("malformed", "the answer is not rejoin's", { status });
}
