// Files of a message: whatever holds bytes becomes base64.

/** Bytes that are turned into a string at once: a call takes a limited number of arguments. */
const SLICE_BYTES = 0x8000;

/** The `files` member of a request. */
export function encodeFiles(files) {
  return Promise.all(files.map(encodeFile));
}

async function encodeFile(file) {
  if (isBlob(file)) {
    const data = base64(new Uint8Array(await file.arrayBuffer()));
    return { name: file.name ?? "file", mime_type: file.type || "application/octet-stream", data };
  }
  const { name, mimeType = "application/octet-stream", data } = file;
  return { name, mime_type: mimeType, data: typeof data === "string" ? data : base64(new Uint8Array(data)) };
}

function isBlob(value) {
  return typeof value.arrayBuffer === "function";
}

function base64(bytes) {
  let binary = "";
  for (let start = 0; start < bytes.length; start += SLICE_BYTES) {
    binary += String.fromCharCode(...bytes.subarray(start, start + SLICE_BYTES));
  }
  return btoa(binary);
}
