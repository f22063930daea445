import assert from "node:assert/strict";
import test from "node:test";

import { SseParser, readFrame } from "../src/index.js";

const bytesOf = (text) => new TextEncoder().encode(text);

/** Messages as they are, comments as null. */
function parse(pieces, options) {
  const parser = new SseParser(options);
  return pieces.flatMap((piece) => parser.push(piece)).map((item) => (item.type === "message" ? item.data : null));
}

/** Whole, byte by byte, and in two pieces cut at every byte. */
function check(stream, expected) {
  const bytes = typeof stream === "string" ? bytesOf(stream) : stream;
  assert.deepEqual(parse([bytes]), expected, "whole");
  assert.deepEqual(parse([...bytes].map((byte) => Uint8Array.of(byte))), expected, "byte by byte");
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    assert.deepEqual(parse([bytes.subarray(0, cut), bytes.subarray(cut)]), expected, `cut at ${cut}`);
  }
}

test("lines end in three ways", () => {
  check("data: a\n\ndata:b\r\n\r\ndata: c\r\r", ["a", "b", "c"]);
  check("data: a\r\n\n", ["a"]);
  check("data: a\n\r\ndata: b\r\n\r", ["a", "b"]);
});

test("data lines are joined and other fields skipped", () => {
  check("event: x\ndata: a\nid: 7\ndata\ndata:  b\nretry: 1\n\n", ["a\n\n b"]);
  check("database: a\n\n\n\ndata:\n\n", [""]);
});

test("comments are told and end nothing", () => {
  check(": keep-alive\n\ndata: a\n:\ndata: b\n\n", [null, null, "a\nb"]);
});

test("characters of every length survive a cut in their middle", () => {
  check("data: é日👩‍🚀\r\n\r\ndata: \u{10ffff}\n\n", ["é日👩‍🚀", "\u{10ffff}"]);
});

test("a byte order mark counts at the start only", () => {
  check("\u{feff}data: a\n\n\u{feff}data: b\n\n", ["a"]);
});

test("what the end cuts short is no message", () => {
  check("data: a\n\ndata: b\n", ["a"]);
});

test("invalid bytes become replacement characters", () => {
  check(Uint8Array.of(...bytesOf("data: "), 0xff, ...bytesOf("\n\n")), ["\ufffd"]);
});

test("a message has a longest size, and small ones never add up to it", () => {
  assert.throws(() => parse([bytesOf("data: 123")], { charsMax: 8 }), RangeError);
  assert.throws(() => parse([bytesOf("data: 1\ndata: 2")], { charsMax: 12 }), RangeError);
  assert.equal(parse([bytesOf("data: 1\n\n: hi\nid: 9\n".repeat(50))], { charsMax: 12 }).length, 100);
});

test("frames are read", () => {
  const read = (frame) => readFrame(JSON.stringify(frame));
  assert.deepEqual(read({ type: "STREAM_SNAPSHOT", run_id: "r", seq: 2, events: [{ type: "X" }], more: 1 }), {
    type: "snapshot",
    runId: "r",
    seq: 2,
    events: [{ type: "X" }],
  });
  assert.deepEqual(read({ type: "STREAM_EVENT", run_id: "r", seq: 1, event: { type: "X" } }), {
    type: "event",
    runId: "r",
    seq: 1,
    event: { type: "X" },
  });
  assert.deepEqual(read({ type: "STREAM_END", run_id: "r", seq: 0, persisted: false, superseded: true }), {
    type: "end",
    runId: "r",
    seq: 0,
    persisted: false,
    superseded: true,
  });
});

test("whatever else comes is no frame", () => {
  const bad = [
    "",
    "{",
    "null",
    "7",
    "[]",
    '{"type":"STREAM_EVENT","seq":1,"event":{}}',
    '{"type":"STREAM_EVENT","run_id":"","seq":1,"event":{}}',
    '{"type":"STREAM_EVENT","run_id":"r","seq":-1,"event":{}}',
    '{"type":"STREAM_EVENT","run_id":"r","seq":0,"event":{}}',
    '{"type":"STREAM_EVENT","run_id":"r","seq":1.5,"event":{}}',
    '{"type":"STREAM_EVENT","run_id":"r","seq":"1","event":{}}',
    '{"type":"STREAM_EVENT","run_id":"r","seq":1}',
    '{"type":"STREAM_EVENT","run_id":"r","seq":1,"event":[]}',
    '{"type":"STREAM_SNAPSHOT","run_id":"r","seq":1,"events":{}}',
    '{"type":"STREAM_SNAPSHOT","run_id":"r","seq":1,"events":[null]}',
    '{"type":"STREAM_END","run_id":"r","seq":1,"persisted":true}',
    '{"type":"STREAM_END","run_id":"r","seq":1,"persisted":1,"superseded":false}',
    '{"type":"STREAM_OTHER","run_id":"r","seq":1}',
  ];
  for (const data of bad) assert.equal(readFrame(data), null, data);
});
