// The chat page: the list of chats, and one conversation.

import { createClient } from "../client/index.js";
import { ChatList } from "./chat-list.js";
import { ChatView } from "./chat-view.js";
import { Composer } from "./composer.js";
import { ConnectionView } from "./connection-view.js";
import { Conversation } from "./conversation.js";
import { tokenHeaders } from "./token.js";

const client = createClient({ headers: tokenHeaders() });
const title = document.getElementById("title");
const toggle = document.getElementById("toggle-chats");
const list = new ChatList(client, go, (chatId) => chatId === conversation?.chatId && go(freshId()));
let conversation = null;

function freshId() {
  return `chat-${crypto.getRandomValues(new Uint32Array(2)).join("").slice(0, 12)}`;
}

function go(chatId) {
  if (chatId !== conversation?.chatId) history.pushState(null, "", `/?chat=${encodeURIComponent(chatId)}`);
  show(chatId);
}

function show(chatId) {
  toggleChats(false);
  if (chatId === conversation?.chatId) return;
  conversation?.close();
  let frame = null;
  const current = new Conversation(client, chatId, () => {
    // However many events came, the page is painted once.
    frame ??= requestAnimationFrame(() => {
      frame = null;
      if (current === conversation) views.forEach((view) => view.update(current));
    });
  });
  conversation = current;
  const chatView = new ChatView(document.getElementById("exchanges"), current);
  const composer = new Composer(current, () => chatView.toEnd());
  const views = [chatView, composer, new ConnectionView(document.getElementById("connection"), current)];
  title.textContent = chatId;
  document.title = `${chatId} · rejoin`;
  list.show(chatId);
  current.open();
  composer.focus();
}

function toggleChats(open) {
  document.body.classList.toggle("chats-open", open);
  toggle.setAttribute("aria-expanded", String(open));
}

async function watch() {
  for await (const notice of client.bus()) {
    list.take(notice);
    // Whatever was not heard while the bus was away is in the history.
    if (notice.type === "snapshot") conversation?.refresh();
    const mine = notice.type === "snapshot" ? notice.streams.find(({ chatId }) => chatId === conversation?.chatId) : notice;
    if (mine?.chatId !== conversation?.chatId) continue;
    if (notice.type === "ended") conversation.noteEnded(mine.runId);
    else conversation.noteStarted(mine.runId);
  }
}

/** The chat that the address names. Without one: the newest that is being written or was, or a new one. */
async function chosen() {
  const named = new URLSearchParams(location.search).get("chat");
  if (named) return named;
  if (location.hash === "#new") return freshId();
  const { chats } = await client.chats().catch(() => ({ chats: [] }));
  return chats[0]?.chatId ?? freshId();
}

async function start() {
  const chatId = await chosen();
  history.replaceState(null, "", `/?chat=${encodeURIComponent(chatId)}`);
  show(chatId);
  watch();
}

toggle.onclick = () => toggleChats(!document.body.classList.contains("chats-open"));
document.getElementById("new-chat").onclick = (event) => {
  event.preventDefault();
  go(freshId());
};
window.onpopstate = async () => show(await chosen());
start();
