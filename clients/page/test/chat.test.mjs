// The chat page in a real browser.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";

import { openBrowser, Tab } from "./support/browser.mjs";
import { TestServer } from "./support/server.mjs";

let browser;
let context;
let server;
let tabs;

before(async () => {
  browser = await openBrowser();
});
after(() => browser.close());
beforeEach(async () => {
  context = await browser.newContext({ viewport: { width: 1100, height: 760 } });
  tabs = [];
});
afterEach(async () => {
  await Promise.all(tabs.map((tab) => tab.close()));
  await context.close();
  await server.stop();
});

async function open(chat = "one") {
  const tab = await Tab.open(context, `${server.base}/?chat=${chat}`);
  tabs.push(tab);
  return tab;
}

test("a reload in mid-stream shows the same text, and it goes on", async () => {
  server = await TestServer.start();
  const tab = await open();
  await tab.send("hello there");
  await tab.hasWritten(120);
  await tab.shot("streaming");
  await tab.record();
  const [before] = await tab.answers();
  await tab.page.reload();
  await tab.hasWritten(before.length + 60);
  await tab.lastIs("saved");
  const first = await tab.sawOnlyGrowth();
  assert.ok(first.length >= 100, `the first frame with text had ${first.length} characters, ${before.length} were there before`);
  assert.deepEqual(await tab.users(), ["hello there"]);
  assert.match((await tab.answers()).join(), /You wrote:.*hello there.*the disk is full\./s);
  await tab.shot("saved");
});

test("the server is killed and comes back: what was received stays, and is not called saved", async () => {
  server = await TestServer.start({ agent: false });
  const run = await server.produce("one");
  const tab = await open();
  await run.say("Half a sentence");
  await tab.sees("Half a sentence");
  await server.kill("SIGKILL");
  await tab.connectionIs("retrying");
  await tab.shot("retrying");
  await server.restart();
  await tab.lastIs("not-saved");
  assert.deepEqual(await tab.answers(), ["Half a sentence"]);
  const next = await server.produce("one");
  await next.say("And the next one");
  await tab.sees("And the next one");
});

test("the server is stopped in order: the part that there is was saved", async () => {
  server = await TestServer.start();
  const tab = await open();
  await tab.send("hello");
  await tab.hasWritten(60);
  await server.kill("SIGTERM");
  await server.restart();
  await tab.lastIs("saved");
  await tab.sees("The server was shut down. What there is of the answer is saved.");
  assert.match((await tab.answers()).join(), /You wrote:.*hello/s);
});

test("a connection that is cut comes back, and nothing is missing or twice", async () => {
  server = await TestServer.start();
  const tab = await open();
  await tab.send("hello");
  for (const length of [40, 160, 300]) {
    await tab.hasWritten(length);
    await tab.record();
    await tab.button("Cut my connection").click();
    await tab.connectionIs("retrying");
    await tab.connectionIs("live");
  }
  await tab.lastIs("saved");
  await tab.sawOnlyGrowth();
  const shown = await tab.answers();
  await tab.page.reload();
  await tab.lastIs("saved");
  assert.deepEqual(await tab.answers(), shown);
});

test("two tabs show the same, and what one steers the other sees", async () => {
  server = await TestServer.start();
  const a = await open();
  await a.send("first");
  await a.hasWritten(40);
  const b = await open();
  await b.hasWritten(40);
  assert.equal(await a.button("Steer").count(), 1);
  await a.send("second");
  await a.lastIs("live");
  await b.sees("second");
  for (const tab of [a, b]) {
    await tab.page.locator('.exchange[data-state="replaced"]').waitFor();
    await tab.lastIs("saved");
    assert.deepEqual(await tab.users(), ["first", "second"]);
  }
  assert.deepEqual(await a.answers(), await b.answers());
  await a.shot("steered");
});

test("an approval that is answered in one tab closes in the other", async () => {
  server = await TestServer.start();
  const a = await open();
  await a.send("permission please");
  await a.button("Allow").waitFor();
  const b = await open();
  await b.button("Allow").waitFor();
  await a.shot("approval");
  await b.button("Reject").click();
  for (const tab of [a, b]) {
    await tab.sees("Answered: Reject");
    assert.equal(await tab.button("Allow").count(), 0);
    await tab.sees("The drafts stay.");
  }
});

test("a form is filled in, and what was entered comes back", async () => {
  server = await TestServer.start();
  const tab = await open();
  await tab.send("a form please");
  await tab.page.getByLabel("Name *").waitFor();
  await tab.button("Submit").click();
  assert.equal(await tab.page.getByLabel("Name *").evaluate((field) => field.validity.valueMissing), true);
  await tab.page.getByLabel("Name *").fill("Eva 日本");
  await tab.page.getByLabel("Speed *").selectOption({ label: "By air" });
  await tab.page.getByLabel("Copies").fill("3");
  await tab.page.getByLabel("It is a gift").check();
  await tab.shot("form");
  await tab.button("Submit").click();
  await tab.lastIs("saved");
  const shown = JSON.parse(await tab.page.locator(".answer > .text pre").innerText());
  assert.deepEqual(shown, { name: "Eva 日本", speed: "fast", copies: 3, gift: true });
});

test("an answer that could not be saved is shown as such", async () => {
  server = await TestServer.start({ agent: false, options: ["--commit-timeout", "1"] });
  const run = await server.produce("one");
  const tab = await open();
  await run.say("Nobody will keep this");
  await tab.sees("Nobody will keep this");
  const locked = await lock(join(server.folder, "rejoin.db"));
  assert.equal((await run.finish()).persisted, false);
  await tab.lastIs("not-saved");
  await tab.sees("This answer could not be saved.");
  await tab.shot("not-saved");
  locked.kill();
  // The server retains it for some minutes, and whoever comes sees the truth.
  await tab.page.reload();
  await tab.lastIs("not-saved");
  assert.deepEqual(await tab.answers(), ["Nobody will keep this"]);
});

/** Somebody else holds the database's lock for writing. */
async function lock(file) {
  const script = "import sqlite3,sys; db=sqlite3.connect(sys.argv[1]); db.execute('BEGIN IMMEDIATE'); print('locked',flush=True); sys.stdin.read()";
  const child = spawn("python3", ["-c", script, file], { stdio: ["pipe", "pipe", "inherit"] });
  await new Promise((resolve) => child.stdout.once("data", resolve));
  return child;
}

test("a message that nobody takes stays in the box, and the page says why", async () => {
  server = await TestServer.start({ agent: false });
  const tab = await open();
  await tab.send("is anybody there?");
  await tab.page.getByRole("alert").getByText("No agent is set up.").waitFor();
  assert.equal(await tab.page.locator("#message").inputValue(), "is anybody there?");
  assert.deepEqual(await tab.users(), []);
});

test("stop, ask again, edit", async () => {
  server = await TestServer.start();
  const tab = await open();
  await tab.send("first");
  await tab.hasWritten(40);
  await tab.button("Stop").click();
  await tab.sees("Stopped. What there is of the answer is saved.");
  await tab.button("Ask again").click();
  await tab.lastIs("live");
  await tab.lastIs("saved");
  assert.deepEqual(await tab.users(), ["first"]);
  await tab.button("Edit").click();
  await tab.page.getByLabel("Edit the message").fill("permission");
  await tab.button("Send again").click();
  await tab.button("Allow").click();
  await tab.lastIs("saved");
  assert.deepEqual(await tab.users(), ["permission"]);
});

test("the list shows what is being written, opens chats and deletes them", async () => {
  server = await TestServer.start({ agent: false });
  const [one, two] = [await server.produce("one"), await server.produce("two")];
  await one.say("The first");
  await one.finish();
  const tab = await open("two");
  const rows = tab.page.locator("#chat-list li");
  await rows.filter({ hasText: "two" }).getByRole("img", { name: "being written" }).waitFor();
  await two.say("The second");
  await two.finish();
  await tab.page.locator(".dot:visible").waitFor({ state: "detached" }).catch(() => {});
  await rows.filter({ hasText: "one" }).getByRole("link").click();
  await tab.sees("The first");
  assert.match(tab.page.url(), /chat=one$/);
  await tab.page.goBack();
  await tab.sees("The second");
  await rows.filter({ hasText: "one" }).hover();
  await rows.filter({ hasText: "one" }).getByRole("button").click();
  await rows.filter({ hasText: "one" }).getByRole("button", { name: "Really delete this chat" }).click();
  await rows.filter({ hasText: "one" }).waitFor({ state: "detached" });
});

test("what agents write can't act: no script, no element of the page's own, no request", async () => {
  server = await TestServer.start({ agent: false });
  const tab = await open();
  const requests = [];
  tab.page.on("request", (request) => requests.push(request.url()));
  const run = await server.produce("one");
  await run.say(
    [
      "<script>globalThis.acted = 1</script><img src=/x onerror='globalThis.acted = 2'>",
      "![pic](http://127.0.0.1:9/leak.png) <form action=/chat/stop><button>Allow</button></form>",
      "[a](javascript:globalThis.acted=3) <a href='java&#10;script:1' onclick='globalThis.acted=4'>b</a>",
      "<svg><animate onbegin='globalThis.acted=5'/></svg> <style>body{display:none}</style> <p id=composer class=primary>p</p>",
      "[good](https://example.org/)",
    ].join("\n\n"),
  );
  await run.finish();
  await tab.lastIs("saved");
  const text = tab.page.locator(".answer > .text");
  assert.equal(await tab.page.evaluate(() => globalThis.acted), undefined);
  assert.equal(await text.locator("script, img, form, button, svg, style, [id], [class], [onclick]").count(), 0);
  assert.deepEqual(await text.locator("a[href]").evaluateAll((links) => links.map(({ href, rel, target }) => [href, rel, target])), [
    ["https://example.org/", "noopener noreferrer nofollow", "_blank"],
  ]);
  assert.deepEqual(requests.filter((url) => !url.startsWith(server.base)), []);
  // The sanitizer reads it in a document of its own, where the policy already stops it: the browser says so.
  tab.errors = tab.errors.filter((error) => !error.includes("Content Security Policy"));
});

test("on a phone and in the dark it is usable: nothing beyond the edge, the list slides in", async () => {
  server = await TestServer.start();
  await context.close();
  context = await browser.newContext({ viewport: { width: 360, height: 640 }, colorScheme: "dark", reducedMotion: "reduce", hasTouch: true, isMobile: true });
  const tab = await open("a-chat-with-a-long-name-that-does-not-fit-on-any-phone");
  await tab.send("hello with aVeryLongWordThatNobodyBreaks_".repeat(5));
  await tab.lastIs("saved");
  const wide = await tab.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(wide, 0);
  await tab.shot("phone-dark");
  await tab.button("Chats").tap();
  await tab.page.locator("#chat-list a").first().waitFor();
  await tab.shot("phone-list");
  const ground = await tab.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(ground, "rgb(23, 24, 27)");
});

test("it can be used by keyboard alone", async () => {
  server = await TestServer.start();
  const tab = await open();
  const { keyboard } = tab.page;
  await keyboard.type("permission");
  await keyboard.press("Shift+Enter");
  await keyboard.type("please");
  await keyboard.press("Enter");
  await tab.button("Allow").waitFor();
  await tab.button("Allow").focus();
  await keyboard.press("Enter");
  await tab.lastIs("saved");
  assert.deepEqual(await tab.users(), ["permission\nplease"]);
  await tab.button("Edit").focus();
  await keyboard.press("Enter");
  assert.equal(await tab.page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Edit the message");
  await keyboard.press("Escape");
  assert.equal(await tab.page.getByLabel("Edit the message").count(), 0);
});
