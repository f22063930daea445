// The endpoint: where the server is and how it is asked. What all requests of a client have in common.

import { BACKOFF } from "./backoff.js";

/** A stream that is silent for this long, in milliseconds, is lost: three keep-alives are missing. */
const SILENCE_MS = 45_000;

/** A path of a request about a chat. Its body or the rest of the path tells the server which; a proxy in front of several needs it here. */
export const about = (path, chatId) => `${path}?chat_id=${encodeURIComponent(chatId)}`;

export class Endpoint {
  #base;
  #headers;
  #fetch;

  constructor({ baseUrl, headers = {}, fetch, backoff = {}, silenceMs = SILENCE_MS, storage } = {}) {
    this.#base = base(baseUrl);
    this.#headers = headers;
    this.#fetch = fetch;
    this.backoff = { ...BACKOFF, ...backoff };
    this.silenceMs = silenceMs;
    this.storage = storage === undefined ? ownStorage() : storage;
  }

  /** Whether requests need something that can't be handed to a worker. */
  get isPrivate() {
    return this.#fetch !== undefined || typeof this.#headers === "function";
  }

  /** The headers, or a promise of them. */
  get headers() {
    return typeof this.#headers === "function" ? this.#headers() : this.#headers;
  }

  /** The address of a path, which is relative: the server may live below another path. */
  url(path) {
    return this.#base + path;
  }

  async fetch(path, { headers, ...init } = {}) {
    // Called as a plain function: a browser's fetch refuses to be anything else.
    const fetch = this.#fetch ?? globalThis.fetch;
    const own = await this.headers;
    return fetch(this.url(path), { cache: "no-store", ...init, headers: { ...own, ...headers } });
  }
}

function base(url) {
  const given = url ?? globalThis.location?.origin;
  if (given === undefined) throw new TypeError("createClient needs a baseUrl here: there is no page whose origin it could be");
  const text = new URL(given, globalThis.location?.href).href;
  return text.endsWith("/") ? text : `${text}/`;
}

/** A browser may forbid even to look. */
function ownStorage() {
  try {
    return globalThis.sessionStorage ?? null;
  } catch {
    return null;
  }
}
