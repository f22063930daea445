// The inspector: asks the server how it is once a second, as long as somebody looks.

import { h, KeyedViews, setText } from "./dom.js";
import { bytes, count, moment } from "./format.js";
import { Chart } from "./inspect-chart.js";
import { about, CHARTS, figures, takeSample } from "./inspect-model.js";
import { tokenHeaders } from "./token.js";

const INTERVAL_MS = 1000;

const headers = tokenHeaders();

const charts = CHARTS.map((chart) => [chart.key, new Chart(chart)]);
const runs = new KeyedViews(document.getElementById("runs"), () => new RunRow());
let samples = { series: {}, last: null };

class RunRow {
  #link = h("a");
  #cells = Array.from({ length: 9 }, (_, index) => h(index >= 3 && index <= 7 ? "td.number" : "td"));
  element = h("tr", {}, h("th", { scope: "row" }, this.#link), ...this.#cells);

  update(run) {
    this.#link.href = `/?chat=${encodeURIComponent(run.chat_id)}`;
    this.#link.title = run.run_id;
    setText(this.#link, run.chat_id);
    this.element.dataset.state = run.state;
    const texts = [
      run.queued ? `${run.state}, queued` : run.state,
      run.persisted === null ? "" : run.persisted ? "yes" : "no",
      moment(run.started_ms),
      count(run.seq),
      count(run.window_from),
      count(run.observers),
      bytes(run.event_bytes),
      bytes(run.memory_bytes),
      run.snapshots.map(({ seq, bytes: size }) => `${count(seq)}: ${size === null ? "…" : bytes(size)}`).join(", "),
    ];
    this.#cells.forEach((cell, index) => setText(cell, texts[index]));
  }
}

function show(status) {
  samples = takeSample(samples, status, performance.now());
  setText(document.getElementById("about"), about(status));
  document.getElementById("figures").replaceChildren(
    ...figures(status).map(([title, value, below]) => h("div.figure", {}, h("span", {}, title), h("strong", {}, value), h("small", {}, below))),
  );
  for (const [key, chart] of charts) chart.update(samples.series[key] ?? []);
  runs.update(status.runs.map((run) => ({ ...run, key: run.run_id })));
  setText(document.getElementById("more-runs"), status.more > 0 ? `${count(status.more)} more are not listed.` : "");
}

function refuse() {
  document.body.classList.add("gone");
  setText(document.getElementById("about"), "The server asks for an administrator's token: open this page with #token=… behind its address.");
}

async function look() {
  try {
    const answer = await fetch("/status", { headers, signal: AbortSignal.timeout(10 * INTERVAL_MS) });
    if (answer.status === 401 || answer.status === 403) return refuse();
    show(await answer.json());
    document.body.classList.remove("gone");
  } catch {
    document.body.classList.add("gone");
    setText(document.getElementById("about"), "The server does not answer. What you see is the last that it said.");
  }
}

async function watch() {
  while (!document.hidden) {
    await look();
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
  }
  document.addEventListener("visibilitychange", watch, { once: true });
}

document.getElementById("charts").append(...charts.map(([, chart]) => chart.element));
watch();
