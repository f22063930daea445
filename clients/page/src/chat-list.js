// The chats at the left: those that have a history, and those in which something is being written.

import { h, KeyedViews, setText } from "./dom.js";
import { moment } from "./format.js";

/** Chats change in bursts; the list is read once for all of them, after this many milliseconds. */
const SETTLE_MS = 300;

export class ChatList {
  #client;
  #rows = [];
  #next = null;
  #writing = new Map();
  #current = null;
  #timer = null;
  #views;
  #more = document.getElementById("more-chats");

  /** `open` is called with the id of the chat that a person chooses; `deleted` with that of one they delete. */
  constructor(client, open, deleted) {
    this.#client = client;
    const gone = (chatId) => {
      this.readSoon();
      deleted(chatId);
    };
    this.#views = new KeyedViews(document.getElementById("chat-list"), () => new RowView(client, open, gone));
    this.#more.onclick = () => this.#readMore();
  }

  show(chatId) {
    this.#current = chatId;
    this.#render();
  }

  /** A notice of the bus. */
  take(notice) {
    if (notice.type === "snapshot") this.#writing = new Map(notice.streams.map(({ chatId, runId }) => [chatId, runId]));
    if (notice.type === "started") this.#writing.set(notice.chatId, notice.runId);
    if (notice.type === "ended" && this.#writing.get(notice.chatId) === notice.runId) this.#writing.delete(notice.chatId);
    this.#render();
    this.readSoon();
  }

  readSoon() {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#read();
    }, SETTLE_MS);
  }

  async #read() {
    try {
      const { chats, next } = await this.#client.chats();
      this.#rows = chats;
      this.#next = next;
    } catch {
      // The list is as old as its last reading; the connection's state says why.
    }
    this.#render();
  }

  async #readMore() {
    const { chats, next } = await this.#client.chats({ after: this.#next });
    const known = new Set(this.#rows.map(({ chatId }) => chatId));
    this.#rows.push(...chats.filter(({ chatId }) => !known.has(chatId)));
    this.#next = next;
    this.#render();
  }

  #render() {
    const known = new Set(this.#rows.map(({ chatId }) => chatId));
    const others = [...this.#writing.keys(), this.#current].filter((chatId) => chatId !== null && !known.has(chatId));
    const rows = [...new Set(others)].map((chatId) => ({ chatId, changedMs: null }));
    const items = [...rows, ...this.#rows].map((row) => ({
      ...row,
      key: row.chatId,
      writing: this.#writing.has(row.chatId),
      current: row.chatId === this.#current,
    }));
    this.#views.update(items);
    this.#more.hidden = this.#next === null;
  }
}

class RowView {
  #name = h("span.name");
  #when = h("span.when");
  #dot = h("span.dot", { title: "Being written", role: "img", "aria-label": "being written" });
  #link;
  #delete = h("button.quiet.delete", { type: "button" });
  #chatId = "";
  element;

  constructor(client, open, deleted) {
    this.#link = h("a", { onclick: (event) => this.#choose(event, open) }, this.#dot, this.#name, this.#when);
    this.element = h("li", {}, this.#link, this.#delete);
    this.#askFirst();
    this.#delete.onclick = () => this.#confirm(client, deleted);
    this.#delete.onblur = () => this.#askFirst();
  }

  update({ chatId, changedMs, writing, current }) {
    this.#chatId = chatId;
    this.#link.href = `/?chat=${encodeURIComponent(chatId)}`;
    setText(this.#name, chatId);
    setText(this.#when, changedMs === null ? "" : moment(changedMs));
    this.#dot.hidden = !writing;
    this.#delete.hidden = changedMs === null;
    if (current) this.#link.setAttribute("aria-current", "page");
    else this.#link.removeAttribute("aria-current");
  }

  #choose(event, open) {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    open(this.#chatId);
  }

  #askFirst() {
    this.#delete.dataset.sure = "";
    this.#delete.textContent = "×";
    this.#delete.title = "Delete this chat";
    this.#delete.setAttribute("aria-label", "Delete this chat");
  }

  async #confirm(client, deleted) {
    if (this.#delete.dataset.sure === "") {
      this.#delete.dataset.sure = "yes";
      this.#delete.textContent = "Delete?";
      this.#delete.setAttribute("aria-label", "Really delete this chat");
      return;
    }
    await client.deleteChat(this.#chatId).then(() => deleted(this.#chatId), () => this.#askFirst());
  }
}
