// The part of navigator.locks that an election needs: exclusive locks, granted in order.

export function fakeLocks({ held = false } = {}) {
  const queues = new Map();
  return {
    async request(name, { signal }, callback) {
      const queue = queues.get(name) ?? (held ? [new Promise(() => {})] : []);
      queues.set(name, queue);
      const before = Promise.allSettled(queue);
      let release;
      queue.push(
        new Promise((resolve) => {
          release = resolve;
        }),
      );
      const aborted = new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(new DOMException("called off", "AbortError")), { once: true });
      });
      try {
        await Promise.race([before, aborted]);
        aborted.catch(() => undefined);
        return await callback({ name });
      } finally {
        release();
      }
    },
  };
}
