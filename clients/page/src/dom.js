// Elements, made and updated with few words.

/** An element: `h("p.note", { hidden: true }, "text", otherElement)`. Names that the element does not have become attributes. */
export function h(name, properties = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  element.classList.add(...classes);
  for (const [key, value] of Object.entries(properties)) {
    if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Makes `parent`'s children these, touching only what differs: what stays keeps its focus, selection and scroll. */
export function setChildren(parent, children) {
  const wanted = new Set(children);
  for (const child of [...parent.childNodes]) if (!wanted.has(child)) child.remove();
  children.forEach((child, index) => {
    const there = parent.childNodes[index] ?? null;
    if (there !== child) parent.insertBefore(child, there);
  });
}

/** Sets a text only where it differs. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** One view per key, made when its key first appears and dropped with it. A view has an `element` and `update(item)`. */
export class KeyedViews {
  #parent;
  #make;
  #views = new Map();

  constructor(parent, make) {
    this.#parent = parent;
    this.#make = make;
  }

  update(items) {
    const views = new Map();
    for (const item of items) {
      const view = this.#views.get(item.key) ?? this.#make(item);
      view.update(item);
      views.set(item.key, view);
    }
    this.#views = views;
    setChildren(this.#parent, [...views.values()].map((view) => view.element));
  }
}
