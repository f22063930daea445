// What the page says, by code. The server's own message is shown where there is no better one.

const REFUSALS = {
  already_streaming: "An answer is still being written. Steer it, or wait for its end.",
  no_agent: "No agent is set up. Start the server with --agent, or try: rejoin demo",
  empty_message: "Write something first.",
  store_failed: "Your message could not be stored, so nobody was asked. It is still in the box below.",
  unauthorized: "The server asks for a token: open this page with #token=… behind its address.",
  invalid_token: "The token is not good, or not any more: open this page with a new one, as #token=… behind its address.",
  forbidden: "Your token does not allow this here.",
  unconfirmed: "The connection was lost before the server confirmed. Your message may have arrived: look at the conversation before you send it again.",
  unreachable: "The server does not answer.",
  already_answered: "This was answered before, perhaps in another tab. The first answer counts.",
  unknown_request: "This question is closed.",
  no_active_run: "There is nothing to stop.",
  nothing_to_retry: "There is nothing to ask again.",
  shutting_down: "The server is being shut down. Try again in a moment.",
  out_of_memory: "The server has no room for another answer just now. Try again when others have ended.",
};

const LOSSES = {
  network: "no network, or nobody listens",
  eof: "the stream broke off",
  silent: "nothing came for too long",
  status: "the server asked to come later",
  malformed: "what came made no sense",
  gap: "a piece was missing",
  cut: "you cut it",
};

const CLOSINGS = {
  stopped: "Stopped",
  producer_lost: "The agent went away",
  agent_error: "The agent failed",
  timeout: "The agent was silent for too long",
  too_large: "The answer became too large",
  shutdown: "The server was shut down",
  store_failed: "The message could not be stored",
};

/** What went wrong with a request. */
export function refusal(error) {
  return REFUSALS[error.code] ?? error.message;
}

/** Why a connection was lost. */
export function loss(reason) {
  return LOSSES[reason] ?? reason;
}

/** Why a run ended early. */
export function closing(code) {
  return CLOSINGS[code] ?? "The answer was broken off";
}
