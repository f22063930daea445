// A RunAgentInput as a turn. /chat/send takes what a person wrote, or the answers to an interrupt, and the turn goes on
// whatever happens to the connection.

/** `{message, options}` for a send; null: the input has something to say that a send can't carry. */
export function turnOf(input) {
  const { state, tools, context, forwardedProps, resume } = input;
  const config = { state, tools, context, forwardedProps };
  if (resume !== undefined) return { message: null, options: { config, resume } };
  const last = input.messages.at(-1);
  if (last?.role !== "user") return null;
  if (typeof last.content === "string") return { message: last.content, options: { config } };
  const texts = last.content.filter((part) => part.type === "text").map((part) => part.text);
  const files = last.content.filter((part) => part.type !== "text").map(fileOf);
  if (files.includes(null)) return null;
  return { message: texts.length > 0 ? texts.join("\n") : null, options: { config, files } };
}

/** A part with bytes in it; null for one that only points somewhere. */
function fileOf({ source, metadata }) {
  if (source?.type !== "data") return null;
  return { name: metadata?.filename ?? "file", mimeType: source.mimeType, data: source.value };
}
