// The parts of an answer, each with a view of its kind.

import { h, setText } from "./dom.js";
import { FormView } from "./form-view.js";
import { pretty } from "./format.js";
import { MarkdownView } from "./markdown.js";
import { PermissionView } from "./question-view.js";

class TextView {
  element = h("div.text");
  #markdown = new MarkdownView(this.element);

  update({ text }) {
    this.#markdown.update(text);
  }
}

class ReasoningView {
  #body = h("div.text");
  #title = h("summary");
  #markdown = new MarkdownView(this.#body);
  element = h("details.reasoning", {}, this.#title, this.#body);

  update({ text, done }) {
    setText(this.#title, done ? "Thoughts" : "Thinking …");
    this.#markdown.update(text);
  }
}

class ToolView {
  #name = h("code");
  #state = h("span.state");
  #args = h("pre");
  #result = h("pre");
  #resultTitle = h("p.label", {}, "Result");
  element = h(
    "details.tool",
    {},
    h("summary", {}, this.#name, " ", this.#state),
    h("p.label", {}, "Arguments"),
    this.#args,
    this.#resultTitle,
    this.#result,
  );

  update({ name, args, done, result, hasResult }) {
    setText(this.#name, name);
    setText(this.#state, hasResult ? "done" : done ? "called" : "being called …");
    setText(this.#args, done ? pretty(args) : args);
    this.#resultTitle.hidden = this.#result.hidden = !hasResult;
    if (hasResult) setText(this.#result, pretty(result));
  }
}

/** A line about what goes on. */
class NoteView {
  element = h("p.note");
  #say;

  constructor(say) {
    this.#say = say;
  }

  update(part) {
    setText(this.element, this.#say(part));
  }
}

class PlanView {
  #list = h("ul");
  element = h("section.plan", { "aria-label": "Plan" }, h("p.label", {}, "Plan"), this.#list);

  update({ value }) {
    const entries = Array.isArray(value?.entries) ? value.entries : [];
    this.#list.replaceChildren(
      ...entries.map(({ content, status }) => h("li", { "data-status": String(status) }, String(content ?? ""), status === "completed" ? " ✓" : "")),
    );
  }
}

class NothingView {
  element = h("span", { hidden: true });
  update() {}
}

/** What this page has no picture for: its JSON, folded. */
class RawView {
  #title = h("summary");
  #body = h("pre");
  element = h("details.raw", {}, this.#title, this.#body);

  update(part) {
    setText(this.#title, part.value?.sessionUpdate ?? part.name ?? part.activityType ?? part.kind);
    setText(this.#body, pretty(part.value ?? part.content));
  }
}

const VIEWS = {
  text: () => new TextView(),
  reasoning: () => new ReasoningView(),
  tool: () => new ToolView(),
  permission: (respond) => new PermissionView(respond),
  form: (respond) => new FormView(respond),
  step: () => new NoteView(({ name, done }) => `${name}${done ? " ✓" : " …"}`),
  subagent: () => new NoteView(({ name, done, error }) => `Subagent ${name}${error !== null ? `: ${error}` : done ? " ✓" : " …"}`),
};

const raw = () => new RawView();

/** ACP's session updates that AG-UI has no event for. A tool call's are a part of it anyway. */
const UPDATES = {
  plan: () => new PlanView(),
  tool_call: () => new NothingView(),
  tool_call_update: () => new NothingView(),
};

/** The view of a part, kept as long as the part has its key; it is touched only when the part is another object. */
export class PartView {
  #view;
  #part = null;

  constructor(part, respond) {
    const make = part.kind === "custom" ? (UPDATES[part.value?.sessionUpdate] ?? raw) : (VIEWS[part.kind] ?? raw);
    this.#view = make(respond);
    this.element = this.#view.element;
    if (part.subagentRunId !== undefined && part.kind !== "subagent") this.element.classList.add("of-subagent");
  }

  update(part) {
    if (part === this.#part) return;
    this.#part = part;
    this.#view.update(part);
  }
}
