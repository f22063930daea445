// Where a person writes.

import { refusal } from "./texts.js";

export class Composer {
  #form = document.getElementById("composer");
  #area = document.getElementById("message");
  #send = document.getElementById("send");
  #stop = document.getElementById("stop");
  #notice = document.getElementById("notice");
  #conversation;
  #sent;

  constructor(conversation, sent) {
    this.#conversation = conversation;
    this.#sent = sent;
    this.#form.onsubmit = (event) => this.#submit(event);
    this.#area.onkeydown = (event) => this.#key(event);
    this.#area.oninput = () => this.#fit();
    this.#stop.onclick = () => conversation.stop();
  }

  update({ running, sending, error }) {
    this.#send.textContent = running ? "Steer" : "Send";
    this.#send.title = running ? "Takes the place of the answer that is being written" : "";
    this.#send.disabled = sending;
    this.#stop.hidden = !running;
    const text = error === null ? "" : refusal(error);
    if (this.#notice.textContent !== text) this.#notice.textContent = text;
  }

  focus() {
    this.#area.focus();
  }

  #key(event) {
    // While an input method is composing, Enter is its own.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.#form.requestSubmit();
  }

  async #submit(event) {
    event.preventDefault();
    const text = this.#area.value;
    if (text.trim() === "" || this.#conversation.sending) return;
    this.#write("");
    this.#sent();
    const taken = await this.#conversation.send(text);
    // What was not taken is still the person's, unless they have gone on writing.
    if (!taken && this.#area.value === "") this.#write(text);
  }

  #write(text) {
    this.#area.value = text;
    this.#fit();
  }

  /** As high as its text, within what the style allows. */
  #fit() {
    this.#area.style.height = "auto";
    this.#area.style.height = `${this.#area.scrollHeight + 2}px`;
  }
}
