// The inspector in a real browser.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { openBrowser, Tab } from "./support/browser.mjs";
import { TestServer } from "./support/server.mjs";

const browser = await openBrowser();
after(() => browser.close());

test("the inspector shows runs, observers and rates as they are", async () => {
  const server = await TestServer.start({ agent: false });
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 } });
  const run = await server.produce("watched <b>chat</b>".replace("/", "%2F"));
  const reading = new AbortController();
  await fetch(`${server.base}/chat/live?chat_id=${encodeURIComponent("watched <b>chat</b>")}`, { signal: reading.signal });
  const tab = await Tab.open(context, `${server.base}/inspect`);
  const row = tab.page.locator("#runs tr").filter({ hasText: "watched <b>chat</b>" });
  await row.filter({ hasText: "active" }).waitFor();
  assert.equal(await row.locator("td").nth(5).innerText(), "1");
  const figure = (title) => tab.page.locator(".figure").filter({ hasText: title }).locator("strong");
  assert.equal(await figure("Runs being written").innerText(), "1");
  const chart = tab.page.locator("figure").filter({ hasText: "Events appended" });
  const rate = chart.locator("strong");
  for (let push = 0; push < 40 && /^0(\.0)?\/s$/.test(await rate.innerText()); push += 1) {
    await run.say("word ");
    await tab.page.waitForTimeout(100);
  }
  assert.notEqual(await rate.innerText(), "0/s");
  await tab.shot("inspector");
  reading.abort();
  await run.finish();
  await row.filter({ hasText: "ended" }).filter({ hasText: "yes" }).waitFor();
  await tab.page.locator(".figure").filter({ hasText: "1 saved, 0 not, 0 replaced" }).waitFor();
  await server.kill("SIGKILL");
  await tab.page.getByText("The server does not answer.").waitFor();
  await server.restart();
  await tab.page.getByText(/^rejoin .*, up/).waitFor();
  await tab.close();
  await context.close();
  await server.stop();
});
