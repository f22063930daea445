// One HTTP/2 connection over TLS, as a browser has it: orders come on standard input, a line each, and each line of what the
// server sends goes to standard output.
import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { createInterface } from "node:readline";

const [origin, certificate] = process.argv.slice(2);
const session = connect(origin, { ca: readFileSync(certificate) });
let stream = null;

function say(line) {
  process.stdout.write(`${line}\n`);
}

function follow(chat) {
  stream = session.request({ ":method": "POST", ":path": "/chat/live", "content-type": "application/json" });
  stream.on("response", (head) => say(`${head[":status"]} ${session.socket.alpnProtocol}`));
  createInterface({ input: stream }).on("line", (line) => {
    if (line.startsWith("data: ")) say(line);
  });
  stream.end(JSON.stringify({ chat_id: chat, protocol: 1 }));
}

function leave() {
  stream.on("close", () => say("left"));
  stream.close();
}

function push(chat) {
  const path = `/chats/${chat}/runs?stream=1`;
  stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/x-ndjson" });
  let answer = "";
  stream.on("response", (head) => { answer = `${head[":status"]} `; });
  stream.on("data", (data) => { answer += data; });
  stream.on("end", () => say(answer));
}

for await (const line of createInterface({ input: process.stdin })) {
  const [order, chat] = line.split(" ");
  if (order === "follow") follow(chat);
  else if (order === "leave") leave();
  else if (order === "push") push(chat);
  else if (order === "end") stream.end();
  else stream.write(`${line}\n`);
}
session.destroy();
