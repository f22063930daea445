// Waiting, so that whoever waits can be called away.

/** Resolves after the delay, or as soon as the signal aborts: who waits looks at the signal itself. */
export function pause(delayMs, signal) {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, delayMs);
    signal.addEventListener("abort", done, { once: true });
  });
}

/** A controller that also aborts with `outer`; `release` forgets `outer`, which may live much longer. */
export function linkedController(outer) {
  const controller = new AbortController();
  const abort = () => controller.abort();
  if (outer?.aborted) abort();
  outer?.addEventListener("abort", abort, { once: true });
  return { controller, release: () => outer?.removeEventListener("abort", abort) };
}

/** Whether the browser says that there is a network. Where nobody says, there is one. */
export function isOnline() {
  return globalThis.navigator?.onLine !== false;
}

/** Resolves when the browser says that there is a network again, or when the signal aborts. */
export function untilOnline(signal) {
  return new Promise((resolve) => {
    if (signal.aborted || isOnline()) return resolve();
    const done = () => {
      globalThis.removeEventListener?.("online", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    globalThis.addEventListener?.("online", done, { once: true });
    signal.addEventListener("abort", done, { once: true });
  });
}
