// A queue: pushed by one side, iterated by the other.

export class Queue {
  #items = [];
  #waiting = null;
  #closed = false;

  push(item) {
    if (this.#closed) return;
    this.#items.push(item);
    this.#wake();
  }

  /** Ends the iteration; what was not yet taken is dropped. */
  close() {
    this.#closed = true;
    this.#items = [];
    this.#wake();
  }

  async next() {
    while (this.#items.length === 0 && !this.#closed) {
      await new Promise((resolve) => {
        this.#waiting = resolve;
      });
    }
    return this.#closed ? { done: true, value: undefined } : { done: false, value: this.#items.shift() };
  }

  #wake() {
    this.#waiting?.();
    this.#waiting = null;
  }
}
