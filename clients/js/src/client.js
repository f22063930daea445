// The client: one endpoint, and everything that can be asked of it.

import { startAgUi } from "./agui-turn.js";
import { attach } from "./attach.js";
import { subscribe } from "./bus.js";
import { Endpoint } from "./endpoint.js";
import { chat, chats, deleteChat, wholeChat } from "./history.js";
import { respond, retry, send, steer, stop } from "./turns.js";

export function createClient(options = {}) {
  const endpoint = new Endpoint(options);
  return Object.freeze({
    attach: (chatId, attachOptions) => attach(endpoint, chatId, attachOptions),
    send: (chatId, message, turnOptions) => send(endpoint, chatId, message, turnOptions),
    steer: (chatId, message, turnOptions) => steer(endpoint, chatId, message, turnOptions),
    retry: (chatId, turnOptions) => retry(endpoint, chatId, turnOptions),
    stop: (chatId, stopOptions) => stop(endpoint, chatId, stopOptions),
    respond: (chatId, requestId, answer, respondOptions) => respond(endpoint, chatId, requestId, answer, respondOptions),
    chats: (pageOptions) => chats(endpoint, pageOptions),
    chat: (chatId, pageOptions) => chat(endpoint, chatId, pageOptions),
    wholeChat: (chatId, pageOptions) => wholeChat(endpoint, chatId, pageOptions),
    deleteChat: (chatId, deleteOptions) => deleteChat(endpoint, chatId, deleteOptions),
    startAgUi: (input) => startAgUi(endpoint, input),
    bus: (busOptions) => subscribe(endpoint, busOptions),
  });
}
