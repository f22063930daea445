//! What an operator relies on: readiness, metrics, logs, the doctor, and what is installed with the program.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod doctor;
mod expiry;
mod logs;
mod manual;
mod metrics;
mod packaging;
mod ready;
#[path = "../support/server.rs"]
mod server;
mod stage;
