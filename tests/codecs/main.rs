//! Codecs: what turns bytes into meaning and back. However the network cuts the same bytes, they are read in the same
//! way; no bytes are a reason to panic; and on what is JSON, or a server-sent event, a second reader agrees.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod appended;
mod body;
mod client;
mod event;
mod frame;
#[path = "../support/generate.rs"]
mod generate;
mod http;
mod json;
mod material;
mod opinion;
