// A small chart of the last samples: a line over a filled area, its largest value written beside.

import { h, setText } from "./dom.js";
import { SAMPLES } from "./inspect-model.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [240, 48];

export class Chart {
  #write;
  #now = h("strong");
  #most = h("span.most");
  #line = document.createElementNS(SVG, "polyline");
  #area = document.createElementNS(SVG, "polygon");
  element;

  constructor({ title, unit, write }) {
    this.#write = (value) => `${write(value)}${unit}`;
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    svg.append(this.#area, this.#line);
    this.element = h("figure", {}, h("figcaption", {}, title, " ", this.#now), svg, this.#most);
  }

  update(values) {
    const most = Math.max(...values, 0);
    const points = values.map((value, index) => {
      const x = WIDTH - (values.length - 1 - index) * (WIDTH / (SAMPLES - 1));
      const y = HEIGHT - 1 - (most > 0 ? value / most : 0) * (HEIGHT - 3);
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    });
    this.#line.setAttribute("points", points.join(" "));
    const [first] = (points[0] ?? `${WIDTH},0`).split(",");
    this.#area.setAttribute("points", [`${first},${HEIGHT}`, ...points, `${WIDTH},${HEIGHT}`].join(" "));
    setText(this.#now, this.#write(values.at(-1) ?? 0));
    setText(this.#most, `most ${this.#write(most)}`);
  }
}
