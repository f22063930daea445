// Server-sent events as a client reads them (WHATWG HTML, "Interpreting an event stream"): bytes in, messages out. Only
// data matters here; names, ids and retry times are skipped. The parser never touches a connection.

/** One message, in UTF-16 units: a snapshot holds a whole run, 64 MiB by default, and an operator may allow more. */
const MESSAGE_CHARS_MAX = 256 * 1024 * 1024;

const LINE_END = /\r\n|\n|\r/g;

export class SseParser {
  #charsMax;
  /** Keeps the bytes of a character that the network cut, and drops a byte order mark at the start. */
  #decoder = new TextDecoder();
  /** Pieces of the unfinished line: joined once, at its end. */
  #line = [];
  /** Data lines of the unfinished message. */
  #data = [];
  #chars = 0;
  /** The last character was a CR: an LF right behind it belongs to it. */
  #afterCr = false;

  constructor({ charsMax = MESSAGE_CHARS_MAX } = {}) {
    this.#charsMax = charsMax;
  }

  /** What these bytes complete. What is unfinished at the end of the stream is no message. */
  push(bytes) {
    const text = this.#decoder.decode(bytes, { stream: true });
    if (text === "") return [];
    const items = [];
    let start = this.#afterCr && text[0] === "\n" ? 1 : 0;
    this.#afterCr = text.endsWith("\r");
    LINE_END.lastIndex = start;
    for (let end = LINE_END.exec(text); end !== null; end = LINE_END.exec(text)) {
      this.#keep(text.slice(start, end.index));
      this.#endLine(items);
      start = LINE_END.lastIndex;
    }
    this.#keep(text.slice(start));
    return items;
  }

  #keep(piece) {
    if (piece === "") return;
    this.#chars += piece.length;
    if (this.#chars > this.#charsMax) {
      throw new RangeError(`a message has more than ${this.#charsMax} characters`);
    }
    this.#line.push(piece);
  }

  #endLine(items) {
    const line = this.#line.length === 1 ? this.#line[0] : this.#line.join("");
    this.#line = [];
    if (line === "") {
      if (this.#data.length > 0) items.push({ type: "message", data: this.#data.join("\n") });
      this.#data = [];
      this.#chars = 0;
    } else if (line.startsWith(":")) {
      this.#chars -= line.length;
      items.push({ type: "comment" });
    } else {
      const value = dataValue(line);
      if (value === undefined) this.#chars -= line.length;
      else this.#data.push(value);
    }
  }
}

/** The value of a line whose field is `data`. */
function dataValue(line) {
  if (line === "data") return "";
  if (!line.startsWith("data:")) return undefined;
  return line.slice(line[5] === " " ? 6 : 5);
}
