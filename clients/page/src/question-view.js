// A question with a few answers to choose from: an agent's request for permission.

import { h, setText } from "./dom.js";
import { pretty } from "./format.js";

const OUTCOMES = { cancelled: "Nobody answered; it was called off.", declined: "Declined." };

export class PermissionView {
  #respond;
  #title = h("p.question-title");
  #input = h("pre", { hidden: true });
  #options = h("div.actions");
  #decided = h("p.decided", { hidden: true });
  element = h("section.question", { "aria-label": "Question" }, this.#title, this.#input, this.#options, this.#decided);

  constructor(respond) {
    this.#respond = respond;
  }

  update({ requestId, toolCall, options, resolved }) {
    setText(this.#title, `May the agent do this? ${toolCall.title ?? toolCall.toolCallId ?? ""}`);
    this.#input.hidden = toolCall.rawInput === undefined;
    setText(this.#input, this.#input.hidden ? "" : pretty(toolCall.rawInput));
    this.#options.hidden = resolved !== null;
    this.#decided.hidden = resolved === null;
    if (resolved !== null) return setText(this.#decided, decision(options, resolved));
    if (this.#options.childNodes.length === 0) this.#options.append(...options.map((option) => this.#button(requestId, option)));
  }

  #button(requestId, { optionId, name, kind }) {
    const name_ = kind?.startsWith("allow") ? "button.primary" : "button";
    const onclick = () => answer(this.#options, this.#respond(requestId, { optionId }));
    return h(name_, { type: "button", onclick }, name ?? optionId);
  }
}

function decision(options, { outcome, optionId }) {
  const chosen = options.find((option) => option.optionId === optionId);
  return chosen !== undefined ? `Answered: ${chosen.name ?? optionId}` : (OUTCOMES[outcome] ?? `Answered: ${outcome}`);
}

/** While an answer is on its way there is no second one; if it is refused, there may be. */
export async function answer(buttons, sent) {
  const all = buttons.querySelectorAll("button");
  all.forEach((button) => (button.disabled = true));
  await sent;
  all.forEach((button) => (button.disabled = false));
}
