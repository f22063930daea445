// What the package promises about itself.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFile, readdir } from "node:fs/promises";
import test from "node:test";
import { fileURLToPath } from "node:url";

import * as core from "../src/index.js";
import { RejoinError, SseParser } from "../src/index.js";

const SOURCES = new URL("../src/", import.meta.url);
const source = (name) => readFile(new URL(name, SOURCES), "utf8");
const importsOf = (text) => [...text.matchAll(/^(?:import|export)\b[^"]*?from "([^"]+)"|^import "([^"]+)"/gm)].map(([, from, bare]) => from ?? bare);

test("browsers can load the core as it is: relative imports of files that exist, nothing bare", async () => {
  const seen = new Set();
  const todo = ["index.js", "bus-worker.js"];
  while (todo.length > 0) {
    const name = todo.pop();
    if (seen.has(name)) continue;
    seen.add(name);
    for (const specifier of importsOf(await source(name))) {
      assert.match(specifier, /^\.\/[a-z-]+\.js$/, `${name} imports ${specifier}`);
      todo.push(specifier.slice(2));
    }
  }
  assert.ok(seen.has("transcript-draft.js") && seen.has("bus-hub.js"));
  const others = (await readdir(SOURCES)).filter((name) => name.endsWith(".js") && !seen.has(name));
  assert.ok(others.every((name) => name.startsWith("ag-ui")), `nobody imports ${others}`);
});

test("the AG-UI part needs its peers and nothing else", async () => {
  const bare = importsOf(await source("ag-ui.js")).filter((specifier) => !specifier.startsWith("."));
  const { peerDependencies, dependencies } = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8"));
  assert.deepEqual(bare.sort(), Object.keys(peerDependencies).sort());
  assert.equal(dependencies, undefined);
});

test("the types declare what there is", async () => {
  const declared = [...(await source("index.d.ts")).matchAll(/^export (?:function|class|const) (\w+)/gm)].map(([, name]) => name);
  assert.deepEqual(declared.sort(), Object.keys(core).sort());
  const methods = /export interface RejoinClient \{(.*?)^\}/ms.exec(await source("index.d.ts"))[1];
  const names = [...methods.matchAll(/^ {2}(\w+)\(/gm)].map(([, name]) => name);
  assert.deepEqual(names.sort(), Object.keys(core.createClient({ baseUrl: "http://127.0.0.1/" })).sort());
});

test("the README names every notice and every code of the library's own", async () => {
  const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
  for (const code of core.OWN_CODES) assert.ok(readme.includes(`| \`${code}\` |`), code);
  for (const notice of ["seed", "snapshot", "event", "end", "idle", "connection", "lost"]) assert.ok(readme.includes(`| \`${notice}\``), notice);
});

test("a sample program compiles against the types", () => {
  const tsc = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url));
  const { status, stdout } = spawnSync(process.execPath, [tsc, "--project", fileURLToPath(new URL("types", import.meta.url))], { encoding: "utf8" });
  assert.equal(status, 0, stdout);
});

test("an error has a code, a status and what else the server said", () => {
  const error = new RejoinError("gone", "it is gone");
  assert.deepEqual([error.name, error.code, error.status, error.message, error.details], ["RejoinError", "gone", 0, "it is gone", {}]);
  assert.ok(new SseParser() instanceof SseParser);
});

test("without a page the client has to be told where the server is", () => {
  assert.throws(() => core.createClient(), /baseUrl/);
});
