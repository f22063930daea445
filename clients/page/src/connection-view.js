// How the connection is, and what one can do to it.

import { h, setText } from "./dom.js";
import { loss, refusal } from "./texts.js";

export class ConnectionView {
  #state = h("span.state", { role: "status" });
  #cut = h("button.quiet", { type: "button", title: "Drops the connection as a dead spot would" }, "Cut my connection");
  #again = h("button", { type: "button", hidden: true }, "Try again");
  #tab = h("a.button.quiet", { target: "_blank", rel: "noopener" }, "Open in a second tab");

  constructor(box, conversation) {
    this.#cut.onclick = () => conversation.cut();
    this.#again.onclick = () => conversation.reconnect();
    this.#tab.href = `/?chat=${encodeURIComponent(conversation.chatId)}`;
    box.replaceChildren(this.#state, this.#again, this.#cut, this.#tab);
  }

  update({ connection }) {
    this.#state.dataset.state = connection.state;
    setText(this.#state, describe(connection));
    this.#cut.disabled = connection.state !== "live";
    this.#again.hidden = connection.state !== "lost";
  }
}

function describe({ state, attempt, attemptsMax, reason, error }) {
  switch (state) {
    case "idle":
      return "Nothing is being written";
    case "connecting":
      return "Connecting …";
    case "live":
      return "Live";
    case "retrying":
      return `Reconnecting, ${attempt} of ${attemptsMax} (${loss(reason)}) …`;
    case "offline":
      return "Offline: waiting for a network …";
    default:
      return `Lost: ${reason ? loss(reason) : refusal(error)}. What you see is what was received.`;
  }
}
