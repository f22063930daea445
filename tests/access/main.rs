//! Who may use the server: pages of other origins, and holders of tokens. Rows of raw bytes against the real binary; what
//! time has a part in is tested on a clock that the test sets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a token for the real server ends at a real time")]

mod commands;
mod expiry;
mod origins;
#[path = "../support/server.rs"]
mod server;
#[path = "../operate/stage.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod stage;
mod tokens;
