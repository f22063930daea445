// Back-off: how long to wait before the next attempt. Pure: the randomness is an argument, and nobody waits in here.

/** A server that says when to come back is believed up to this, in milliseconds. */
const RETRY_AFTER_MS_MAX = 15_000;

/** 0.5, 1, 2, 4 and 8 seconds, then no more. */
export const BACKOFF = Object.freeze({ firstMs: 500, lastMs: 8_000, attemptsMax: 5 });

/**
 * The delay in milliseconds before an attempt, counted from 1. It is shortened by up to half at random (0: by half, 1: not
 * at all), so that the clients of a server that restarts don't all come back in the same instant.
 */
export function delayMs({ firstMs, lastMs }, attempt, random) {
  const full = Math.min(firstMs * 2 ** (attempt - 1), lastMs);
  return full / 2 + (full / 2) * random;
}

/** What a `Retry-After` asks for, in milliseconds. A date would need the server's clock: it counts as nothing. */
export function retryAfterMs(value) {
  return /^\d+$/.test(value ?? "") ? Math.min(Number(value) * 1_000, RETRY_AFTER_MS_MAX) : 0;
}
