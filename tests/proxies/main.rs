//! rejoin behind nginx and HAProxy, with the configurations of deploy/: what the protocol promises holds there, too.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod configuration;
mod conformance;
mod leaving;
mod many;
mod passing;
mod quiet;
#[path = "../support/server.rs"]
mod server;
mod tls;
mod upload;
mod ways;
