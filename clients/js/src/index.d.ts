/**
 * rejoin-client: follow the runs of a rejoin server from a browser or from Node, and survive every cut.
 *
 * The names here are the library's own (camelCase); AG-UI events and messages are handed on as the server sent them.
 */

/** An AG-UI event, as its agent wrote it. */
export interface AgUiEvent {
  type: string;
  [member: string]: unknown;
}

/** An AG-UI message, as the history has it. */
export interface AgUiMessage {
  id: string;
  role: string;
  [member: string]: unknown;
}

// ---------------------------------------------------------------------------------------------------------------
// The client

export interface ClientOptions {
  /** Where the server is, for example `http://127.0.0.1:8787/`. Default: the page's own origin. */
  baseUrl?: string | URL;
  /**
   * Headers of every request, for example `Authorization`; a function, which may be asynchronous, is asked anew each time. If
   * it fails, the request counts as lost.
   */
  headers?: Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>);
  /** Default: the global `fetch`. */
  fetch?: typeof globalThis.fetch;
  /** When to come back after a loss. */
  backoff?: Partial<Backoff>;
  /** A stream that is silent for this long, in milliseconds, is lost. Default 45,000: three keep-alives. */
  silenceMs?: number;
  /** Where pictures of runs are kept (`seed`). Default: `sessionStorage` where there is one; `null`: nowhere. */
  storage?: Pick<Storage, "getItem" | "setItem" | "removeItem"> | null;
}

export interface Backoff {
  /** Before the first attempt, in milliseconds. Default 500. Each delay is twice the one before, shortened by up to half at random. */
  firstMs: number;
  /** Longest delay, in milliseconds. Default 8,000. */
  lastMs: number;
  /** Attempts since the last progress. Default 5. */
  attemptsMax: number;
}

/** A client of one server. It holds no connection of its own. */
export function createClient(options?: ClientOptions): RejoinClient;

export interface RejoinClient {
  /**
   * Follows a chat's run, and the runs that replace it, to the end. Nothing is sent before the first notice is asked
   * for. The iterator never throws: what goes wrong is a notice.
   */
  attach(chatId: string, options?: AttachOptions): Attachment;

  /**
   * Starts a turn. One request, never repeated. Rejects with a {@link RejoinError}; code `unconfirmed` means that the
   * answer was lost and the turn may be going on: attach, or look at the history, but don't send again by yourself.
   * Follow the turn with `attach(chatId, { cursor: { runId, afterSeq: 0 } })`, which also finds it when it is over already.
   */
  send(chatId: string, message: string | null, options?: TurnOptions): Promise<Accepted>;
  /** As `send`, but takes the place of a run that goes on. */
  steer(chatId: string, message: string | null, options?: TurnOptions): Promise<Accepted>;
  /** Takes back the last turn, or everything from `messageIndex` on, and asks again; with `message` it is an edit. */
  retry(chatId: string, options?: RetryOptions): Promise<Accepted>;
  /** Stops the chat's run; answers when it is known whether the partial answer was saved. */
  stop(chatId: string, options?: { reason?: string; signal?: AbortSignal }): Promise<Stopped>;
  /** Answers a question. Code `already_answered`: another answer came first, see `details`. */
  respond(chatId: string, requestId: string, answer: Answer, options?: { signal?: AbortSignal }): Promise<Outcome>;

  /**
   * Starts a turn with an AG-UI `RunAgentInput` as it is (`POST /agui`), and says where to attach to it. Unlike all other
   * turns it stops when this program's connection is lost.
   */
  startAgUi(input: { threadId: string; [member: string]: unknown }): Promise<Cursor>;

  /** A page of conversations, newest change first. */
  chats(options?: { after?: ChatsMark; signal?: AbortSignal }): Promise<ChatsPage>;
  /** A page of a conversation, oldest turn first. Rejects with code `unknown_chat` for one that has nothing. */
  chat(chatId: string, options?: { afterTurn?: number; signal?: AbortSignal }): Promise<ChatPage>;
  /**
   * All pages of a conversation as one. A conversation that has nothing is an empty one. If it changed all the time while it
   * was read, `next` is not null.
   */
  wholeChat(chatId: string, options?: { signal?: AbortSignal }): Promise<ChatPage>;
  /** Deletes a conversation; a run that goes on is cut off. */
  deleteChat(chatId: string, options?: { signal?: AbortSignal }): Promise<void>;

  /**
   * Which runs begin and end. All tabs of an origin share one connection. Ends when the signal aborts or the loop is
   * left; it never gives up and never throws.
   */
  bus(options?: BusOptions): AsyncIterableIterator<BusNotice>;
}

// ---------------------------------------------------------------------------------------------------------------
// Attaching

/** The last event that was applied. */
export interface Cursor {
  runId: string;
  /** Number of the last event that was applied; 0: none yet. */
  afterSeq: number;
}

export interface AttachOptions {
  /** Where to go on. Default: from the start of whatever run there is. */
  cursor?: Cursor | null;
  /** How long the server may wait for a run to begin, in milliseconds; it waits for 25,000 at most. Default 0. */
  waitMs?: number;
  /** Whether a run that takes the place of the followed one is followed in turn. Default true. */
  follow?: boolean;
  /** Ends the iteration at once and quietly. */
  signal?: AbortSignal;
  /**
   * Keeps the last picture of the run in the client's storage, and begins with it (a `seed` notice) after a reload. It
   * is only something to paint meanwhile: the server's snapshot replaces it. Default false.
   */
  seed?: boolean;
}

export interface Attachment extends AsyncIterableIterator<Notice> {
  /** Drops the current connection as the network might: recovery begins. */
  cut(): void;
  /** The last event that was applied. */
  readonly cursor: Cursor | null;
}

export type Notice = SeedNotice | SnapshotNotice | EventNotice | EndNotice | IdleNotice | ConnectionNotice | LostNotice;

/** With `seed`, first of all: the picture that an earlier page kept. Not to be trusted: show it until anything else comes. */
export interface SeedNotice {
  type: "seed";
  runId: string;
  seq: number;
  transcript: Transcript;
}

/** Replace all that is shown of the run by these events. */
export interface SnapshotNotice {
  type: "snapshot";
  runId: string;
  /** Number of the last event in it. */
  seq: number;
  events: AgUiEvent[];
}

/** Apply this event. It is always the next one. */
export interface EventNotice {
  type: "event";
  runId: string;
  seq: number;
  event: AgUiEvent;
}

/** The run is over. If it was superseded and is followed, the newer one comes next; else this is the last notice. */
export interface EndNotice {
  type: "end";
  runId: string;
  seq: number;
  /** Whether the turn is in the history. Never say "saved" if this is false. */
  persisted: boolean;
  /** A newer run took its place. */
  superseded: boolean;
}

/** There is no run. The last notice: the history has what there is. */
export interface IdleNotice {
  type: "idle";
  /** A run was followed before, and the server has forgotten it. */
  attached: boolean;
}

export type ConnectionNotice =
  /** The server is asked. */
  | { type: "connection"; state: "connecting" }
  /** Frames come. */
  | { type: "connection"; state: "live" }
  /** The connection was lost and is tried again. */
  | {
      type: "connection";
      state: "retrying";
      /** The attempt that comes, counted from 1 since the last progress. */
      attempt: number;
      attemptsMax: number;
      /** How long until then, in milliseconds. */
      delayMs: number;
      reason: LossReason;
    }
  /** No attempt is left, and the browser says that there is no network: it is tried again when there is. */
  | { type: "connection"; state: "offline" };

/**
 * No attempt is left, or the server refuses the request. The last notice. What was received is still good and should
 * stay on the screen; whether it was saved is not known.
 */
export interface LostNotice {
  type: "lost";
  /** Code `lost` (see `reason`), or the code of the server's refusal. */
  error: RejoinError;
  /** Absent if the server refused the request. */
  reason?: LossReason;
}

export type LossReason =
  /** The network, or nobody listens. */
  | "network"
  /** The answer ended without an end frame. */
  | "eof"
  /** No byte came for `silenceMs`. */
  | "silent"
  /** The server answered with a status that says to come later. */
  | "status"
  /** What came is no event stream or no frame. */
  | "malformed"
  /** An event is missing, or belongs to a run that was not announced. */
  | "gap"
  /** `cut()` was called. */
  | "cut";

// ---------------------------------------------------------------------------------------------------------------
// Turns

export type Trigger = "user" | "heartbeat" | "canvas" | "schedule";

export interface TurnOptions {
  /** They become parts of the message. */
  files?: (File | Blob | FileData)[];
  trigger?: Trigger;
  /** Any JSON; reaches the agent as `forwardedProps.payload`. */
  payload?: unknown;
  /** The agent's name; the chat keeps it for later turns. */
  runtime?: string;
  /** Handed on to an AG-UI agent. */
  config?: { state?: unknown; tools?: unknown[]; context?: unknown[]; forwardedProps?: unknown };
  /** Answers to an AG-UI interrupt, handed on. */
  resume?: unknown[];
  signal?: AbortSignal;
}

export interface RetryOptions extends TurnOptions {
  /** In place of the user's message: an edit. */
  message?: string;
  /** The place of a user's message that began a turn, counted from 0 in the conversation's messages. */
  messageIndex?: number;
}

export interface FileData {
  name: string;
  /** Default `application/octet-stream`. */
  mimeType?: string;
  /** The bytes, or their base64. */
  data: Uint8Array | ArrayBuffer | string;
}

export interface Accepted {
  chatId: string;
  runId: string;
}

export interface Stopped {
  runId: string;
  seq: number;
  persisted: boolean;
}

/** An answer to a permission, to a form, or to either. */
export type Answer =
  | { optionId: string }
  | { action: "accept"; content?: Record<string, unknown> }
  | { action: "decline" | "cancel" }
  | { cancelled: true };

/** What was decided. */
export interface Outcome {
  requestId: string;
  outcome: "selected" | "accepted" | "declined" | "cancelled";
  optionId?: string;
  content?: Record<string, unknown>;
}

// ---------------------------------------------------------------------------------------------------------------
// History

export interface ChatRow {
  chatId: string;
  /** Changes with every change of the conversation. */
  revision: number;
  turns: number;
  createdMs: number;
  changedMs: number;
}

export interface ChatsMark {
  changedMs: number;
  chatId: string;
}

export interface ChatsPage {
  chats: ChatRow[];
  /** Hand it on as `after` for the next page; null: there is none. */
  next: ChatsMark | null;
}

export interface Turn {
  /** The turn's number in its conversation, from 1. */
  turn: number;
  runId: string;
  trigger: Trigger;
  /** Number of events. */
  seq: number;
  startedMs: number;
  endedMs: number;
  /** False while it goes on, or if it never was saved: then there are no events. */
  persisted: boolean;
  superseded: boolean;
  /** The code of the RUN_ERROR that rejoin ended it with. */
  closed: string | null;
  /** How many of the page's messages, which stand in the order of their turns, are this turn's. */
  messages: number;
  /** Compacted. */
  events: AgUiEvent[];
}

export interface ChatPage {
  chatId: string;
  revision: number;
  messages: AgUiMessage[];
  turns: Turn[];
  /** Hand it on as `afterTurn` for the next page; null: there is none. */
  next: number | null;
}

// ---------------------------------------------------------------------------------------------------------------
// The event bus

export interface BusOptions {
  signal?: AbortSignal;
  /**
   * `auto` (default): one connection for all tabs, through a SharedWorker where there is one, else through a leader among
   * the tabs, else a connection of one's own. The others force a way. A client with its own `fetch` never uses a worker.
   */
  share?: "auto" | "worker" | "leader" | "none";
}

export interface BusStream {
  chatId: string;
  runId: string;
  trigger: Trigger;
  state: "registered" | "active" | "finalizing";
  /** Its turn waits for a thread. */
  queued: boolean;
}

export type BusNotice =
  /** The runs that are not over; comes first and after every reconnection, and replaces what was known. */
  | { type: "snapshot"; streams: BusStream[] }
  /** A run was registered; `queued` while its turn waits, then once more without. */
  | { type: "started"; chatId: string; runId: string; trigger: Trigger; queued: boolean }
  /** A run's end can be had. */
  | { type: "ended"; chatId: string; runId: string; persisted: boolean; superseded: boolean }
  | { type: "connection"; state: "connecting" | "live" }
  | { type: "connection"; state: "retrying"; attempt: number; delayMs: number };

// ---------------------------------------------------------------------------------------------------------------
// Errors

/** What a request is refused with, or how it failed. */
export class RejoinError extends Error {
  constructor(code: string, message: string, options?: { status?: number; details?: Record<string, unknown>; cause?: unknown });
  /** Stable; fit to choose a text in the reader's language. The server's code, or one of {@link OWN_CODES}. */
  readonly code: string;
  /** The answer's status; 0: there was none. */
  readonly status: number;
  /** The other members of the server's error, for example `outcome` with `already_answered`. */
  readonly details: Record<string, unknown>;
}

/** The codes that are the library's own. */
export const OWN_CODES: readonly ["lost", "unconfirmed", "unreachable", "malformed", "refused", "aborted"];

// ---------------------------------------------------------------------------------------------------------------
// The transcript: what a page shows of a run

/**
 * A plain view of a run: JSON throughout, never changed in place. Parts that an event does not touch stay the same
 * objects, so a page may compare with `===`. The same events give the same transcript, compacted or not.
 */
export interface Transcript {
  /** `empty`: nothing came yet. `interrupted`: RUN_FINISHED asks for a `resume`, see `interrupts`. */
  status: "empty" | "running" | "finished" | "interrupted" | "error";
  /** From RUN_ERROR. */
  error: { message: string; code: string | null } | null;
  /** In the order in which they began. */
  parts: Part[];
  /** From STATE_SNAPSHOT and STATE_DELTA. */
  state: unknown;
  /** From the last MESSAGES_SNAPSHOT. */
  messages: AgUiMessage[] | null;
  /** Open AG-UI interrupts. */
  interrupts: unknown[];
  /** RUN_FINISHED's result. */
  result: unknown;
  /** The reducer's own; don't rely on it. */
  readonly internal: unknown;
}

interface PartBase {
  /** Unique in the transcript, and the same after a replay. */
  key: string;
  /** Present on what a subagent wrote. */
  subagentRunId?: string;
}

export interface TextPart extends PartBase {
  kind: "text";
  messageId: string | null;
  role: string;
  text: string;
  done: boolean;
}

export interface ReasoningPart extends PartBase {
  kind: "reasoning";
  messageId: string | null;
  text: string;
  done: boolean;
}

export interface ToolPart extends PartBase {
  kind: "tool";
  toolCallId: string;
  name: string;
  parentMessageId: string | null;
  /** The arguments so far: JSON when `done`. */
  args: string;
  /** The arguments are complete. */
  done: boolean;
  /** From TOOL_CALL_RESULT. */
  result: unknown;
  hasResult: boolean;
}

export interface StepPart extends PartBase {
  kind: "step";
  name: string;
  done: boolean;
}

export interface PermissionPart extends PartBase {
  kind: "permission";
  requestId: string;
  /** ACP's tool call: `toolCallId`, `title`, `kind`, … */
  toolCall: Record<string, unknown>;
  options: { optionId: string; name: string; kind: string }[];
  /** Null while it can be answered. */
  resolved: { outcome: string; optionId?: string } | null;
}

export interface FormPart extends PartBase {
  kind: "form";
  requestId: string;
  message: string;
  /** A JSON schema. */
  schema: Record<string, unknown>;
  /** Null while it can be answered. */
  resolved: { outcome: string; content?: Record<string, unknown> } | null;
}

export interface ActivityPart extends PartBase {
  kind: "activity";
  messageId: string;
  activityType: string;
  content: unknown;
}

export interface SubagentPart extends PartBase {
  kind: "subagent";
  name: string;
  done: boolean;
  error: string | null;
}

/** Any other CUSTOM event, for example `acp.session_update`. */
export interface CustomPart extends PartBase {
  kind: "custom";
  name: string;
  value: unknown;
}

export type Part =
  | TextPart
  | ReasoningPart
  | ToolPart
  | StepPart
  | PermissionPart
  | FormPart
  | ActivityPart
  | SubagentPart
  | CustomPart;

/** A transcript of nothing. */
export function emptyTranscript(): Transcript;
/** The transcript after one more event. Events that say nothing to a page give the same object back. */
export function applyEvent(transcript: Transcript, event: AgUiEvent): Transcript;
/** The transcript of these events from an empty one, or on top of `from`. */
export function transcriptOf(events: Iterable<AgUiEvent>, from?: Transcript): Transcript;
/** The transcript after a notice of `attach`: a seed or snapshot replaces, an event is applied, all else changes nothing. */
export function applyNotice(transcript: Transcript, notice: Notice): Transcript;

// ---------------------------------------------------------------------------------------------------------------
// The layers below, for those who bring their own connection

/** Server-sent events, read incrementally: bytes may be cut anywhere. */
export class SseParser {
  constructor(options?: { charsMax?: number });
  /** The items that these bytes complete. `message`: the data lines, joined by line feeds. Throws RangeError beyond `charsMax`. */
  push(bytes: Uint8Array): ({ type: "message"; data: string } | { type: "comment" })[];
}

export type Frame =
  | { type: "snapshot"; runId: string; seq: number; events: AgUiEvent[] }
  | { type: "event"; runId: string; seq: number; event: AgUiEvent }
  | { type: "end"; runId: string; seq: number; persisted: boolean; superseded: boolean };

/** Reads the data of one message; null: it is no frame of protocol 1. */
export function readFrame(data: string): Frame | null;

/** Where an observer stands. Opaque. */
export interface FollowState {
  readonly cursor: Cursor | null;
}

export type FollowInput =
  | { type: "opened" }
  | { type: "frame"; frame: Frame }
  /** `earliestMs`: the server asks not to be asked before (`Retry-After`). */
  | { type: "lost"; reason: LossReason; online: boolean; earliestMs?: number }
  | { type: "nothing" }
  | { type: "refused"; error: RejoinError }
  | { type: "online" };

export type FollowAction =
  | { type: "ask"; delayMs: number; cursor: Cursor | null; waitMs: number }
  | { type: "read" }
  | { type: "await-online" }
  | { type: "stop" };

export interface FollowStep {
  state: FollowState;
  notices: Notice[];
  action: FollowAction;
}

/** The first step of an observer. */
export function startFollowing(options?: { cursor?: Cursor | null; waitMs?: number; follow?: boolean; backoff?: Partial<Backoff> }): FollowStep;
/** What follows from an input. Pure: `random`, from 0 to 1, says how much a delay is shortened. */
export function follow(state: FollowState, input: FollowInput, random: number): FollowStep;
