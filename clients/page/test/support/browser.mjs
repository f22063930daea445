// A real browser, and what a person sees in it.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const SHOTS = fileURLToPath(new URL("../../../../target/browser/", import.meta.url));

/** Longest wait for something to be seen, in milliseconds: far more than it takes. */
const PATIENCE_MS = 20_000;

export async function openBrowser() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  // In a container Chromium's own sandbox can't be set up; it sees nothing but this server.
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  await mkdir(SHOTS, { recursive: true });
  return browser;
}

/** One tab on a chat. Errors of scripts count against the test. */
export class Tab {
  errors = [];

  static async open(context, address) {
    const tab = new Tab();
    tab.page = await context.newPage();
    tab.page.setDefaultTimeout(PATIENCE_MS);
    tab.page.on("pageerror", (error) => tab.errors.push(error.stack));
    tab.page.on("console", (message) => {
      // Whatever the content security policy stops is said here.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) tab.errors.push(message.text());
    });
    await tab.page.goto(address);
    return tab;
  }

  async send(text) {
    await this.page.locator("#message").fill(text);
    await this.page.locator("#message").press("Enter");
  }

  async sees(text) {
    await this.page.locator("#exchanges").getByText(text).last().waitFor();
  }

  async connectionIs(state) {
    await this.page.locator(`#connection .state[data-state="${state}"]`).waitFor();
  }

  /** The last exchange is in this state. */
  async lastIs(state) {
    await this.page.locator(`.exchange:last-child[data-state="${state}"]`).waitFor();
  }

  button(name) {
    return this.page.getByRole("button", { name, exact: true });
  }

  /** The answers' texts, from the first to the last. */
  answers() {
    return this.page.locator(".exchange .answer > .text").allInnerTexts();
  }

  users() {
    return this.page.locator(".user-text").allInnerTexts();
  }

  /** Waits until the last answer has this many characters. */
  async hasWritten(count) {
    await this.page.waitForFunction((least) => (document.querySelector(".exchange:last-child .answer > .text")?.textContent.length ?? 0) >= least, count);
  }

  /** Records what the last exchange shows in each frame that is painted, on this page and after each reload. */
  async record() {
    const script = () => {
      globalThis.seen = [];
      const look = () => {
        const exchange = document.querySelector(".exchange:last-child");
        const texts = [...(exchange?.querySelectorAll(".answer > .text") ?? [])].map((text) => text.textContent);
        // Letters and digits only: a star that turns out to begin emphasis is rightly gone.
        globalThis.seen.push({ exchanges: document.querySelectorAll(".exchange").length, text: texts.join("").replace(/[^\p{L}\p{N}]/gu, "") });
        requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    };
    await this.page.addInitScript(script);
    await this.page.evaluate(script);
  }

  /** Since the recording or the reload: once there is text it never goes away, shrinks or doubles. */
  async sawOnlyGrowth() {
    const frames = await this.page.evaluate(() => globalThis.seen);
    const from = frames.findIndex(({ text }) => text !== "");
    assert.notEqual(from, -1, "no frame had any text");
    frames.slice(from).reduce((before, now) => {
      assert.ok(now.text.startsWith(before.text), `${JSON.stringify(before)} became ${JSON.stringify(now)}`);
      assert.ok(now.exchanges === before.exchanges, `${before.exchanges} exchanges became ${now.exchanges}`);
      return now;
    });
    return frames[from].text;
  }

  async shot(name) {
    await this.page.screenshot({ path: `${SHOTS}${name}.png` });
  }

  async close() {
    await this.page.close();
    assert.deepEqual(this.errors, []);
  }
}
