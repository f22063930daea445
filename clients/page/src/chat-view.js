// The conversation on the page: its exchanges, kept in sight of the end while they grow.

import { KeyedViews } from "./dom.js";
import { ExchangeView } from "./exchange-view.js";

/** Whoever is this close to the end, in pixels, wants to see what comes. */
const NEAR = 80;

export class ChatView {
  #box;
  #views;
  #conversation;
  #follows = true;
  #resized = new ResizeObserver(() => this.#stay());

  constructor(box, conversation) {
    this.#box = box;
    this.#conversation = conversation;
    box.replaceChildren();
    this.#views = new KeyedViews(box, () => new ExchangeView(conversation));
    this.#resized.observe(box);
    box.onscroll = () => {
      this.#follows = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
    };
  }

  #stay() {
    if (this.#follows) this.#box.scrollTop = this.#box.scrollHeight;
  }

  update() {
    this.#views.update(this.#conversation.exchanges);
    this.#box.setAttribute("aria-busy", String(this.#conversation.running));
    this.#stay();
  }

  /** A person's own message is worth going to the end for. */
  toEnd() {
    this.#follows = true;
  }
}
