export { createClient } from "./client.js";
export { OWN_CODES, RejoinError } from "./errors.js";
export { follow, startFollowing } from "./follow.js";
export { readFrame } from "./frame.js";
export { SseParser } from "./sse.js";
export { applyEvent, applyNotice, emptyTranscript, transcriptOf } from "./transcript.js";
