//! Who may use the server: pages of other origins, and holders of tokens. Rows of raw bytes against the real binary;
//! tokens that expire meanwhile are tested in `operate/`, on a clock that the test sets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a token for the real server ends at a real time")]

mod commands;
mod origins;
#[path = "../support/server.rs"]
mod server;
mod tokens;
