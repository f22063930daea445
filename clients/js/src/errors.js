// Errors: how a request fails, for the program that has to go on (code) and for the person who reads (message).

/** The codes that are the library's own; all others are the server's. README.md says what each means. */
export const OWN_CODES = Object.freeze(
  /** @type {const} */ ([
    "lost",
    "unconfirmed",
    "unreachable",
    "malformed",
    "refused",
    "aborted",
  ]),
);

export class RejoinError extends Error {
  constructor(code, message, { status = 0, details = {}, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "RejoinError";
    this.code = code;
    this.status = status;
    this.details = details;
  }
}

/**
 * The error that an answer's body tells of. A proxy on the way may answer in a language of its own: then there is
 * only the status.
 */
export function refusal(status, body) {
  const { code, message, ...details } = errorMember(body);
  if (typeof code === "string" && typeof message === "string") {
    return new RejoinError(code, message, { status, details });
  }
  return new RejoinError("refused", `the server answered with status ${status}`, { status });
}

function errorMember(body) {
  try {
    return Object(JSON.parse(body)?.error);
  } catch {
    return {};
  }
}
