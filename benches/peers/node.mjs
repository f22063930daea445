// What one writes by hand: an array of events and a set of responses.

import { createServer } from "node:http";

const history = [];
const observers = new Set();

function publish(line) {
  const frame = `data: ${line}\n\n`;
  history.push(frame);
  for (const observer of observers) observer.write(frame);
}

function observe(response, everything) {
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" });
  response.flushHeaders();
  if (everything) for (const frame of history) response.write(frame);
  observers.add(response);
  response.on("close", () => observers.delete(response));
}

const server = createServer((request, response) => {
  if (request.method === "GET") return observe(response, request.url === "/all");
  let rest = "";
  request.setEncoding("utf8");
  request.on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    lines.forEach(publish);
  });
  request.on("end", () => response.end());
});
server.requestTimeout = 0;
server.listen(0, "127.0.0.1", () => console.log(`node listens on 127.0.0.1:${server.address().port}`));
