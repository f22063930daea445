//! JSON as it crosses the wire: what a peer's bytes mean, and how the server's values are spelled.
//!
//! This room spells JSON keys and keeps an event's bytes as they came. It holds no state beyond a call and knows no
//! socket, clock, thread or file.

pub mod history;
pub mod messages;
