import { AbstractAgent } from "@ag-ui/client";
import type { AgentConfig, BaseEvent, RunAgentInput } from "@ag-ui/client";
import type { Observable } from "rxjs";
import type { ClientOptions, Notice, RejoinClient } from "./index.js";

export interface RejoinAgentConfig extends AgentConfig {
  /** A client to use, or … */
  client?: RejoinClient;
  /** … where the server is, and whatever else `createClient` takes. */
  clientOptions?: ClientOptions;
  /** The name of the agent at the server. */
  runtime?: string;
  /** Sees every notice of the connection, for example to show that the answer was saved. */
  onNotice?: (notice: Notice) => void;
}

/** An AG-UI agent whose turns survive lost connections. `threadId` is the chat. */
export class RejoinAgent extends AbstractAgent {
  constructor(config?: RejoinAgentConfig);
  client: RejoinClient;
  runtime: string | undefined;
  onNotice: ((notice: Notice) => void) | undefined;
  /** Starts a turn with the last user message (or `resume`), and observes it. Unsubscribing does not stop the turn. */
  run(input: RunAgentInput): Observable<BaseEvent>;
  /** Emits the conversation, then the run that goes on, if there is one. */
  protected connect(input: RunAgentInput): Observable<BaseEvent>;
  /** Stops the turn at the server: one request. */
  abortRun(): void;
  clone(): RejoinAgent;
}
