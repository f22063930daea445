//! rejoin keeps the output of AI agents alive between the agent and its reader.
//!
//! A *producer* writes a *run*; any number of *observers* follow it over HTTP. Who comes back after a lost
//! connection gets a compact snapshot and then live events, with nothing lost and nothing doubled, and a
//! terminal frame that tells whether the answer was saved.
//!
//! The crate has a pure half ([`proto`], [`wire`], [`http`], [`engine`]) that takes every decision and knows no
//! socket, clock, thread or file, and a shell that turns the outside world into its inputs.

pub mod access;
pub mod client;
pub mod conformance;
pub mod engine;
pub mod histogram;
pub mod http;
pub mod limits;
pub mod page;
pub mod producer;
pub mod proto;
pub mod reactor;
pub mod rope;
pub mod server;
pub mod store;
pub mod turns;
pub mod wire;
pub mod workers;

pub use server::{Server, ServerConfig, StartError};
