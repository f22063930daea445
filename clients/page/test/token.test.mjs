// The pages of a server that asks for tokens.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { openBrowser, Tab } from "./support/browser.mjs";
import { BINARY, TestServer } from "./support/server.mjs";

const ADMIN = "admin-0123456789abcdef";

let browser;
let folder;
let server;

before(async () => {
  browser = await openBrowser();
  folder = await mkdtemp(join(tmpdir(), "rejoin-token-"));
  const file = join(folder, "tokens");
  await writeFile(file, `admin ${ADMIN}\nhs256 0123456789abcdef0123456789abcdef\n`);
  server = await TestServer.start({ options: ["--token-file", file] });
});
after(async () => {
  await browser.close();
  await server.stop();
  await rm(folder, { recursive: true });
});

test("a token behind # lets the page in, survives a reload, and leaves the address", async () => {
  const rights = ["observe", "send", "history"].flatMap((right) => ["--right", right]);
  const args = ["token", "--token-file", join(folder, "tokens"), "--chat", "mine", ...rights];
  const token = execFileSync(BINARY, args, { encoding: "utf8" }).trim();
  const context = await browser.newContext();
  const tab = await Tab.open(context, `${server.base}/?chat=mine#token=${token}`);
  await tab.send("let me in");
  await tab.lastIs("saved");
  assert.equal(new URL(tab.page.url()).hash, "");
  await tab.page.reload();
  await tab.lastIs("saved");
  assert.deepEqual(await tab.users(), ["let me in"]);
  await tab.close();
  await context.close();
});

test("without a token the page says what is missing, and so does the inspector", async () => {
  const context = await browser.newContext();
  const tab = await Tab.open(context, `${server.base}/?chat=mine`);
  await tab.page.getByText(/token/).first().waitFor();
  await tab.page.goto(`${server.base}/inspect`);
  await tab.page.getByText(/token/).first().waitFor();
  await tab.page.goto(`${server.base}/inspect?again#token=${ADMIN}`);
  await tab.page.getByText(/^rejoin .*, up/).waitFor();
  await tab.close();
  await context.close();
});
