//! Every bound of the server, named with its unit and its reason.

// Memory of a run.

/// Sizes of the blocks of a run's text and of its log, in bytes; a frame larger than the last gets a block of its own.
pub const BLOCK_BYTES: [usize; 7] = [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

/// A new block may be this part of what the text or the log already holds: a small run stays small, a large one has
/// few pieces.
pub const BLOCK_SHARE: usize = 8;

/// Free blocks of the largest size, of logs and texts, kept for later, at most: 64 MiB.
pub const POOL_BLOCKS_MAX: usize = 1024;

/// Such blocks with touched pages at the start: 16 MiB hold one run of 10 MiB with its window, or some dozen usual ones.
pub const POOL_BLOCKS_WARM: usize = 256;

/// Levels of nesting in an event. Common JSON readers stop at 128; the envelope around an event needs a few of them.
pub const JSON_DEPTH_MAX: usize = 120;

// Snapshots.

/// A serialised snapshot serves attaching observers up to this many events behind the head; a later one gets a new
/// snapshot, so that it does not drag the whole window behind it.
pub const SNAPSHOT_SHARED_EVENTS: u64 = 256;

/// Distinct snapshots of one run in memory, at most; beyond it, who stalls on the oldest is disconnected.
pub const SNAPSHOTS_PER_RUN_MAX: usize = 4;

/// A piece up to this size, in bytes, is glued to its neighbours when a snapshot is serialised: small pieces cost a
/// system call's slot each.
pub const SNAPSHOT_GLUE_BYTES: usize = 4 << 10;

/// Resets by a snapshot without reaching live in between; at the third the observer is disconnected.
pub const RESETS_MAX: u8 = 3;

// Work of one reactor turn.

/// Bytes read from a connection per turn: one reader can't starve the others.
pub const READ_BYTES_PER_TURN: usize = 64 << 10;

/// Bytes written to an observer per turn.
pub const WRITE_BYTES_PER_TURN: usize = 256 << 10;

/// Microseconds of writing per turn before reading goes on.
pub const WRITE_US_PER_TURN: u64 = 500;

/// Slices per write.
pub const SLICES_PER_WRITE: usize = 16;

/// Bytes rendered for an observer whose format differs from the log's, per turn.
pub const RENDER_BYTES_PER_TURN: usize = 64 << 10;

/// Ranges rendered in other formats that are kept for other observers, per turn.
pub const RENDERED_MAX: usize = 64;

// Time.

/// An idle stream gets a comment after this long, in milliseconds.
pub const KEEP_ALIVE_MS: u64 = 15_000;

/// Longest wait for a run to be registered, in milliseconds: no byte can be sent meanwhile, and proxies give up at
/// 30–60 s.
pub const WAIT_MS_MAX: u64 = 25_000;

/// After a producer's body broke off, the next one has to come within this time, in milliseconds.
pub const GRACE_MS: u64 = 30_000;

/// A run without body and control stream is given up after this long, in milliseconds.
pub const PRODUCER_IDLE_MS: u64 = 600_000;

/// The store's outcome is awaited this long, in milliseconds, before a run ends unsaved.
pub const COMMIT_MS: u64 = 30_000;

/// A store that owes answers and gives none for this long, in milliseconds, is stuck: twice as long as a locked database
/// and a slow disk take together.
pub const STORE_SILENT_MS: u64 = 10_000;

/// History is read within this time, in milliseconds, or the answer is 503.
pub const HISTORY_MS: u64 = 30_000;

/// An agent's question that nobody answers counts as cancelled after this long, in milliseconds.
pub const APPROVAL_MS: u64 = 600_000;

/// A reader with data waiting has to take [`STALL_BYTES_MIN`] in this time, in milliseconds.
pub const STALL_MS: u64 = 60_000;

/// Least progress of a reader with data waiting, in bytes per [`STALL_MS`].
pub const STALL_BYTES_MIN: u64 = 64 << 10;

/// A request's head and a short body have to be complete this long after their first byte, in milliseconds.
pub const REQUEST_MS: u64 = 30_000;

/// Browsers may remember for this long, in seconds, what a page of another origin may send; Chromium remembers no longer.
pub const PREFLIGHT_AGE_S: u64 = 7_200;

/// A token, in bytes: what else a head holds has room beside it.
pub const TOKEN_BYTES_MAX: usize = 8 << 10;

/// A token may be valid only from this much later on, in milliseconds: the clock of whoever made it may be ahead.
pub const TOKEN_SKEW_MS: u64 = 60_000;

/// A token in a query is valid for this long at most, in milliseconds: addresses get into logs.
pub const QUERY_TOKEN_MS_MAX: u64 = 3_600_000;

/// A connection without request is closed after this long, in milliseconds.
pub const IDLE_MS: u64 = 75_000;

/// What a client still sends to a connection that is being closed is read for this long, in milliseconds, so that
/// it can read its answer.
pub const LINGER_MS: u64 = 2_000;

/// Bytes read and dropped on a connection that is being closed.
pub const LINGER_BYTES_MAX: usize = 1 << 20;

/// Runs that `GET /status` lists, at most: listing one costs the reactor about a microsecond.
pub const STATUS_RUNS_MAX: usize = 500;

/// Between two tries to accept when descriptors ran out, in milliseconds.
pub const ACCEPT_RETRY_MS: u64 = 100;

/// Open runs are closed and saved within this time, in milliseconds, when the server is told to stop.
pub const SHUTDOWN_MS: u64 = 10_000;

// What peers may send.

/// A JSON request body, in bytes.
pub const REQUEST_BODY_BYTES_MAX: u64 = 64 << 10;

/// A request body up to this size, in bytes, is taken also when memory is used up: what ends or follows a run is that
/// short. All connections together can hold no more of them than some dozen MiB.
pub const SMALL_BODY_BYTES_MAX: usize = 4 << 10;

/// The body of a request for a turn, in bytes: it may hold files, in base64.
pub const TURN_BODY_BYTES_MAX: u64 = 32 << 20;

/// Bytes kept of requests that wait for the answer to the one before them; then the connection isn't read further.
pub const PIPELINE_BYTES_MAX: usize = 16 << 10;

/// One event, in bytes, by default.
pub const EVENT_BYTES_MAX: usize = 1 << 20;

/// All text of a run, in bytes, by default: one `data:` line of more freezes browsers.
pub const RUN_BYTES_MAX: u64 = 64 << 20;

/// Bytes of runs, snapshots and waiting data, by default; beyond it, new runs are refused.
pub const MEMORY_BYTES_MAX: u64 = 4 << 30;

/// Connections, by default; beyond it, new ones are only told so.
pub const CONNECTIONS_MAX: usize = 20_000;

/// Connections beyond the cap that are accepted to be told so, at the same time; further ones wait to be accepted.
pub const SURPLUS_CONNECTIONS_MAX: usize = 256;

/// A connection beyond the cap has to send its request within this time, in milliseconds, or is told without it.
pub const SURPLUS_MS: u64 = 2_000;

/// Observers of one chat, by default: one chat can't take all connections.
pub const OBSERVERS_PER_CHAT_MAX: usize = 10_000;

/// Streams and waiting requests with the same JWT, by default: one person's pages can't take all connections.
pub const OBSERVERS_PER_TOKEN_MAX: usize = 100;

/// Requests that wait for a run, by default: pages without a run can't take all connections.
pub const WAITING_MAX: usize = 10_000;

/// Who is refused with 503 is told to come back after that many seconds at least, …
pub const RETRY_AFTER_S_MIN: u64 = 1;

/// … and this many at most. The range is as wide as a herd needs to be spread, and as short as a client with five
/// attempts can stand.
pub const RETRY_AFTER_S_MAX: u64 = 8;

/// Bytes that a producer in this process may have under way to the reactor.
pub const PRODUCER_BYTES_MAX: usize = 256 << 10;

// Agents that are spoken to over HTTP.

/// An agent's connection has to be there, TLS included, within this time, in milliseconds; a thread that waits for it
/// can't be called off, so it may not be long.
pub const AGENT_CONNECT_MS: u64 = 10_000;

/// The head of an agent's answer, in bytes.
pub const AGENT_HEAD_BYTES_MAX: usize = 16 << 10;

/// Bytes read from an agent at once.
pub const AGENT_CHUNK_BYTES: usize = 16 << 10;

/// Pieces of an agent's answer between the thread that reads it and the turn's: a fast agent is held back.
pub const AGENT_CHUNKS_MAX: usize = 8;

/// Bytes of an agent's answer under way in this process, but for one unfinished event: the pieces that wait, one on
/// each side of them, and what is buffered at the socket and behind TLS, each with room for twice the head.
pub const AGENT_BYTES_MAX: usize =
    AGENT_CHUNK_BYTES * (AGENT_CHUNKS_MAX + 2) + 2 * (2 * AGENT_HEAD_BYTES_MAX);

/// Stack of a thread that reads from an agent, in bytes. A TLS handshake in an unoptimised build was seen to need more
/// than 128 KiB and less than 160; a longer chain of certificates may need more. Only what is touched takes memory.
pub const AGENT_STACK_BYTES: usize = 512 << 10;

/// Characters of an agent's refusal that are shown.
pub const AGENT_REFUSAL_CHARS: usize = 200;

// What is kept.

/// Frames in the replay window of a run, by default.
pub const WINDOW_EVENTS: usize = 4_096;

/// An ended run is retained this long, in milliseconds, by default.
pub const RETENTION_MS: u64 = 300_000;

/// Ended runs that are retained, by default.
pub const RETENTION_CHATS: usize = 64;

/// Runs that are over and gone, of which the state is still told to late producers.
pub const TOMBSTONES_MAX: usize = 1_024;

/// Frames of the event bus a subscriber may fall behind before it gets end of file.
pub const BUS_WINDOW: usize = 4_096;

/// Turns with a thread, by default; further ones wait in order.
pub const TURNS_MAX: usize = 256;

/// Stack of a turn's thread, in bytes; only what is touched is memory.
pub const TURN_STACK_BYTES: usize = 512 << 10;

/// Processes of ACP agents that wait for their chat's next turn, at most; then the one that waited longest ends.
pub const ACP_IDLE_MAX: usize = 64;

/// Chats whose ACP session is remembered, at most.
pub const ACP_REMEMBERED_MAX: usize = 4_096;

/// Jobs that wait for the store, at most.
pub const STORE_JOBS_MAX: usize = 4_096;

/// Rows on a page of chats, and turns on a page of a chat's history.
pub const PAGE_ROWS: u32 = 100;

const _: () = {
    assert!(SNAPSHOT_SHARED_EVENTS < WINDOW_EVENTS as u64 / 2);
    assert!(BLOCK_SHARE > 1 && SNAPSHOT_GLUE_BYTES < BLOCK_BYTES[BLOCK_BYTES.len() - 1]);
    assert!(KEEP_ALIVE_MS * 2 < STALL_MS);
    assert!(WAIT_MS_MAX < 30_000);
    assert!(POOL_BLOCKS_WARM <= POOL_BLOCKS_MAX);
    assert!((EVENT_BYTES_MAX as u64) < RUN_BYTES_MAX && RUN_BYTES_MAX < MEMORY_BYTES_MAX);
    assert!(RENDER_BYTES_PER_TURN <= WRITE_BYTES_PER_TURN);
    assert!(AGENT_BYTES_MAX <= 256 << 10);
    assert!(0 < RETRY_AFTER_S_MIN && RETRY_AFTER_S_MIN < RETRY_AFTER_S_MAX);
    assert!(OBSERVERS_PER_CHAT_MAX < CONNECTIONS_MAX && WAITING_MAX < CONNECTIONS_MAX);
    assert!(SURPLUS_MS < REQUEST_MS && SURPLUS_MS < IDLE_MS);
};

/// The limits that an operator can set.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Frames in the replay window of a run.
    pub window_events: usize,
    /// How long an ended run is retained, in milliseconds.
    pub retention_ms: u64,
    /// Ended runs that are retained.
    pub retention_chats: usize,
    /// One event, in bytes.
    pub event_bytes_max: usize,
    /// All text of a run, in bytes.
    pub run_bytes_max: u64,
    /// Bytes of runs, snapshots and waiting data.
    pub memory_bytes_max: u64,
    /// Connections.
    pub connections_max: usize,
    /// Observers of one chat.
    pub observers_per_chat_max: usize,
    /// Streams and waiting requests with the same JWT.
    pub observers_per_token_max: usize,
    /// Requests that wait for a run.
    pub waiting_max: usize,
    /// How long the store's outcome is awaited, in milliseconds.
    pub commit_ms: u64,
    /// Turns with a thread.
    pub turns_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            window_events: WINDOW_EVENTS,
            retention_ms: RETENTION_MS,
            retention_chats: RETENTION_CHATS,
            event_bytes_max: EVENT_BYTES_MAX,
            run_bytes_max: RUN_BYTES_MAX,
            memory_bytes_max: MEMORY_BYTES_MAX,
            connections_max: CONNECTIONS_MAX,
            observers_per_chat_max: OBSERVERS_PER_CHAT_MAX,
            observers_per_token_max: OBSERVERS_PER_TOKEN_MAX,
            waiting_max: WAITING_MAX,
            commit_ms: COMMIT_MS,
            turns_max: TURNS_MAX,
        }
    }
}
