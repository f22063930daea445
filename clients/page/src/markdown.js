// Markdown of agents as elements. The renderer and the sanitizer are libraries; here is only how they are used: block by
// block, so that a growing answer costs what changed and not all of it.

import { Marked } from "../vendor/marked.esm.js";
import createSanitizer from "../vendor/purify.es.mjs";

const marked = new Marked({ gfm: true, breaks: true });
const sanitizer = createSanitizer(window);

/** Nothing that loads, acts, or looks like a part of the page. */
const ALLOWED = {
  ALLOWED_TAGS: [
    "a", "b", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "li", "ol", "p", "pre", "s",
    "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["href", "title", "start", "align", "colspan", "rowspan"],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#)/i,
  RETURN_DOM_FRAGMENT: true,
};

sanitizer.addHook("afterSanitizeAttributes", (element) => {
  if (element.tagName !== "A") return;
  element.setAttribute("target", "_blank");
  element.setAttribute("rel", "noopener noreferrer nofollow");
});

/** A view of a text that grows. */
export class MarkdownView {
  #text = null;
  #blocks = [];

  constructor(element) {
    this.element = element;
  }

  update(text) {
    if (text === this.#text) return;
    this.#text = text;
    const tokens = marked.lexer(text);
    const sources = tokens.filter(({ type }) => type !== "space" && type !== "def");
    // A reference that is defined further down changes what stands above it.
    const fixed = tokens.some(({ type }) => type === "def") ? 0 : this.#unchanged(sources);
    this.#blocks.slice(fixed).forEach(({ nodes }) => nodes.forEach((node) => node.remove()));
    this.#blocks = [...this.#blocks.slice(0, fixed), ...sources.slice(fixed).map((token) => this.#render(token, tokens.links))];
  }

  #unchanged(sources) {
    const changed = sources.findIndex(({ raw }, index) => this.#blocks[index]?.raw !== raw);
    return changed === -1 ? sources.length : changed;
  }

  #render(token, links) {
    const tokens = Object.assign([token], { links });
    const fragment = sanitizer.sanitize(marked.parser(tokens), ALLOWED);
    const nodes = [...fragment.childNodes];
    this.element.append(fragment);
    return { raw: token.raw, nodes };
  }
}
