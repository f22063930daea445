// A form that an agent asks a person to fill in: fields from a flat JSON schema, as ACP's elicitation has it.

import { h, setText } from "./dom.js";
import { pretty } from "./format.js";
import { answer } from "./question-view.js";

const INPUT_TYPES = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

export class FormView {
  #respond;
  #requestId = "";
  #title = h("p.question-title");
  #fields = h("div.fields");
  #buttons = h(
    "div.actions",
    {},
    h("button.primary", { type: "submit" }, "Submit"),
    h("button", { type: "button", onclick: () => this.#send({ action: "decline" }) }, "Decline"),
  );
  #decided = h("p.decided", { hidden: true });
  #read = [];
  #form = h("form", { onsubmit: (event) => this.#submit(event) }, this.#fields, this.#buttons);
  element = h("section.question", { "aria-label": "Form" }, this.#title, this.#form, this.#decided);

  constructor(respond) {
    this.#respond = respond;
  }

  update({ requestId, message, schema, resolved }) {
    setText(this.#title, message || schema.title || "The agent asks:");
    this.#form.hidden = resolved !== null;
    this.#decided.hidden = resolved === null;
    if (resolved !== null) setText(this.#decided, decision(resolved));
    else if (this.#requestId !== requestId) this.#build(requestId, schema);
  }

  #build(requestId, schema) {
    this.#requestId = requestId;
    const required = new Set(Array.isArray(schema.required) ? schema.required : []);
    const fields = Object.entries(Object(schema.properties)).map(([name, property]) => field(name, Object(property), required.has(name)));
    this.#read = fields.map(({ read }) => read);
    this.#fields.replaceChildren(...fields.map(({ element }) => element));
  }

  #submit(event) {
    event.preventDefault();
    const content = Object.fromEntries(this.#read.map((read) => read()).filter(([, value]) => value !== undefined));
    this.#send({ action: "accept", content });
  }

  #send(decided) {
    return answer(this.#buttons, this.#respond(this.#requestId, decided));
  }
}

function decision({ outcome, content }) {
  if (outcome === "accepted") return `Submitted${content ? `: ${pretty(content)}` : "."}`;
  return outcome === "declined" ? "Declined." : "Nobody answered; it was called off.";
}

/** A labelled field, and how to read it: its name with its value, or undefined if nothing was entered. */
function field(name, property, required) {
  const { control, value } = controlOf(property, required);
  const hint = property.description ? h("small", {}, property.description) : null;
  const label = h("label", {}, h("span", {}, `${property.title ?? name}${required ? " *" : ""}`), control, hint);
  return { element: label, read: () => [name, value()] };
}

function controlOf(property, required) {
  const items = Object(property.items);
  if (property.type === "array") return several(choices(items), property);
  if (property.type === "boolean") return checkbox(property);
  const options = choices(property);
  return options.length > 0 ? oneOf(options, property, required) : input(property, required);
}

function choices({ enum: values, oneOf: titled, anyOf: alternatives, enumNames: names }) {
  const listed = titled ?? alternatives;
  if (Array.isArray(listed)) return listed.map(({ const: value, title }) => [value, title ?? String(value)]);
  return Array.isArray(values) ? values.map((value, index) => [value, names?.[index] ?? String(value)]) : [];
}

function oneOf(options, property, required) {
  const items = options.map(([value, title], index) => h("option", { value: String(index), selected: value === property.default }, title));
  const control = h("select", { required }, h("option", { value: "" }, "Choose …"), ...items);
  return { control, value: () => options[control.value]?.[0] };
}

function several(options, property) {
  const preset = Array.isArray(property.default) ? property.default : [];
  const items = options.map(([value, title], index) => h("option", { value: String(index), selected: preset.includes(value) }, title));
  const control = h("select", { multiple: true }, ...items);
  return { control, value: () => [...control.selectedOptions].map(({ value }) => options[value][0]) };
}

function checkbox(property) {
  const control = h("input", { type: "checkbox", checked: property.default === true });
  return { control, value: () => control.checked };
}

function input(property, required) {
  const isNumber = property.type === "number" || property.type === "integer";
  const control = h("input", { type: isNumber ? "number" : (INPUT_TYPES[property.format] ?? "text"), required });
  if (isNumber) control.step = property.type === "integer" ? "1" : "any";
  const bounds = { min: property.minimum, max: property.maximum, pattern: property.pattern };
  for (const [name, bound] of Object.entries(bounds)) if (bound !== undefined) control[name] = bound;
  if (property.minLength !== undefined) control.minLength = property.minLength;
  if (property.maxLength !== undefined) control.maxLength = property.maxLength;
  if (property.default !== undefined) control.value = property.default;
  return { control, value: () => (control.value === "" ? undefined : isNumber ? control.valueAsNumber : dated(control)) };
}

/** JSON schema's moments have a zone; the browser's field has the person's. */
function dated({ type, value }) {
  return type === "datetime-local" ? new Date(value).toISOString() : value;
}
