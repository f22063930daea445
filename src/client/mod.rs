//! The recovering client: what is on the other end of the wire, for Rust programs and for the `rejoin` command.
//!
//! An [`Observer`] follows a chat's run over `POST /chat/live` and survives every cut; a [`Pusher`] writes a run
//! and doubles nothing when a connection is lost. Both block the thread that they are used on. Neither ever repeats
//! a request that starts a turn, and neither calls anything complete or saved unless the server said so.
//!
//! ```
//! use rejoin::client::{Notice, Observer, ObserverOptions, Pusher, PusherOptions, ServerUrl};
//! use rejoin::proto::id::ChatId;
//! use rejoin::wire::request::Start;
//! use rejoin::{Server, ServerConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::start(ServerConfig::default())?;
//! let url = ServerUrl::parse(&format!("http://{}", server.address()))?;
//! let chat = ChatId::parse("my-chat").ok_or("no chat id")?;
//!
//! let mut run = Pusher::start(&url, &chat, Start::default(), PusherOptions::default())?;
//! let mut observer = Observer::new(url, chat, ObserverOptions::default());
//! assert!(matches!(observer.next(), Some(Notice::Snapshot(_))));
//!
//! run.append(br#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#)?;
//! run.append(br#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#)?;
//! assert!(run.finish()?.persisted);
//!
//! let last = observer.last();
//! assert!(matches!(last, Some(Notice::Ended(end)) if end.persisted));
//! server.stop()?;
//! # Ok(())
//! # }
//! ```
//!
//! The rules of recovery are in [`follow`], a state machine without clock or socket; the layers below it read
//! [`frame`]s out of [`sse`].

#![warn(clippy::indexing_slicing, clippy::expect_used)]
#![cfg_attr(test, allow(clippy::indexing_slicing, reason = "a test may panic"))]

mod backlog;
pub mod backoff;
pub mod follow;
pub mod frame;
pub(crate) mod http;
mod observer;
mod pusher;
pub mod sse;
mod url;

use std::time::Duration;

use crate::limits::{COMMIT_MS, GRACE_MS, KEEP_ALIVE_MS, RETRY_AFTER_S_MAX, WAIT_MS_MAX};

pub use backoff::{Backoff, Jitter};
pub use follow::{Cursor, Loss, Notice};
pub use observer::{Observer, ObserverOptions};
pub use pusher::{Ended, PushError, Pusher, PusherOptions, Refusal};
pub use url::{ServerUrl, UrlFault};

/// A stream that is silent for this long, in milliseconds, is lost: three keep-alives are missing.
pub const SILENCE_MS: u64 = 3 * KEEP_ALIVE_MS;

/// An answer has to begin within this time, in milliseconds: the server may wait that long for its store.
pub const ANSWER_MS: u64 = 45_000;

/// A connection has to be made within this time, in milliseconds, at each of the server's addresses.
pub const CONNECT_MS: u64 = 5_000;

/// What was sent has to be acknowledged by the other machine within this time, in milliseconds, where the system
/// can watch over it: a producer has to notice a dead connection before its grace is over.
pub const UNACKNOWLEDGED_MS: u64 = 10_000;

/// A server that says when to come back is believed up to this, in milliseconds: a producer that waits longer is given
/// up meanwhile.
pub const RETRY_AFTER_MS_MAX: u64 = 15_000;

/// A producer with nothing to say sends a blank line after this long, in milliseconds: proxies cut what is quiet.
pub const QUIET_MS: u64 = KEEP_ALIVE_MS;

/// Bytes of events that a producer keeps until the server has acknowledged them.
pub const BACKLOG_BYTES_MAX: usize = 1 << 20;

/// One frame, in bytes: a snapshot holds a whole run, 64 MiB by default, and an operator may allow more.
pub const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// An answer that is no stream, in bytes: the largest is a refusal with its message.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;

const _: () = {
    assert!(WAIT_MS_MAX < SILENCE_MS && COMMIT_MS < ANSWER_MS);
    assert!(UNACKNOWLEDGED_MS < GRACE_MS);
    assert!(RETRY_AFTER_S_MAX * 1_000 <= RETRY_AFTER_MS_MAX && RETRY_AFTER_MS_MAX < GRACE_MS);
    assert!(ANSWER_BYTES_MAX < BACKLOG_BYTES_MAX && BACKLOG_BYTES_MAX < MESSAGE_BYTES_MAX);
};

/// A random number for the next delay. Without randomness the delays are at their longest, which is no fault.
fn jitter() -> Jitter {
    let mut bytes = [0xff; 4];
    let _ = getrandom::fill(&mut bytes);
    Jitter(u32::from_le_bytes(bytes))
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}
