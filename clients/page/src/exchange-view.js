// One exchange: what the person wrote, what the agent made of it, and what is known of its end.

import { h, KeyedViews, setText } from "./dom.js";
import { PartView } from "./part-view.js";
import { closing } from "./texts.js";

export class ExchangeView {
  #conversation;
  #exchange = null;
  #user = h("div.user-text");
  #edit = h("button.quiet", { type: "button", onclick: () => this.#startEdit() }, "Edit");
  #userBox = h("div.user", {}, this.#user, this.#edit);
  #parts = h("div.answer");
  #waiting = h("p.waiting", { hidden: true }, "…");
  #error = h("p.error", { hidden: true });
  #saved = h("span.saved");
  #retry = h("button.quiet", { type: "button", onclick: () => this.#conversation.retry(this.#exchange) }, "Ask again");
  #foot = h("footer", {}, this.#saved, this.#retry);
  #views;
  #editor = null;
  element = h("article.exchange", {}, this.#userBox, this.#parts, this.#waiting, this.#error, this.#foot);

  constructor(conversation) {
    this.#conversation = conversation;
    const respond = (requestId, answer) => conversation.respond(requestId, answer);
    this.#views = new KeyedViews(this.#parts, (part) => new PartView(part, respond));
  }

  update(exchange) {
    const { user, transcript, state, trigger, index } = exchange;
    this.#exchange = exchange;
    this.element.dataset.state = state;
    this.#userBox.hidden = user === null && trigger === "user";
    setText(this.#user, user ?? `(${trigger})`);
    this.#edit.hidden = index === null || user === null || this.#editor !== null;
    this.#views.update(transcript.parts);
    const open = state === "live" || state === "sending";
    this.#waiting.hidden = !open || transcript.parts.length > 0;
    this.#error.hidden = transcript.error === null;
    if (transcript.error !== null) setText(this.#error, errorText(transcript.error));
    setText(this.#saved, this.#savedText(exchange));
    this.#retry.hidden = open || index === null;
    this.#foot.hidden = open;
  }

  #savedText({ state, closed }) {
    if (closed !== null) return `${closing(closed)}. What there is of the answer is saved.`;
    switch (state) {
      case "saved":
        return "Saved";
      case "replaced":
        return "Replaced by the next message; what was written is saved.";
      case "not-saved":
        return "This answer could not be saved. It will be gone after a reload.";
      case "unsaved":
        // Until it is known what goes on, it may be being written.
        return this.#conversation.ready && !this.#conversation.running ? "This answer was never saved." : "";
      default:
        return "";
    }
  }

  #startEdit() {
    const area = h("textarea", { value: this.#exchange.user, rows: 3, "aria-label": "Edit the message" });
    const cancel = () => this.#endEdit();
    const form = h(
      "form.editor",
      { onsubmit: (event) => this.#submitEdit(event, area) },
      area,
      h("div.actions", {}, h("button.primary", { type: "submit" }, "Send again"), h("button", { type: "button", onclick: cancel }, "Cancel")),
    );
    form.addEventListener("keydown", (event) => event.key === "Escape" && cancel());
    this.#editor = form;
    this.#user.hidden = this.#edit.hidden = true;
    this.#userBox.append(form);
    area.focus();
  }

  async #submitEdit(event, area) {
    event.preventDefault();
    const text = area.value.trim();
    if (text === "") return;
    const taken = this.#conversation.retry(this.#exchange, text);
    if (await taken) this.#endEdit();
  }

  #endEdit() {
    this.#editor?.remove();
    this.#editor = null;
    this.#user.hidden = false;
    this.update(this.#exchange);
  }
}

function errorText({ message, code }) {
  return code === null || code === "agent_error" ? message : `${closing(code)}: ${message}`;
}
