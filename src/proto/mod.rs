//! The protocol's core: sequence numbers, a run's life cycle, compaction, the replay log, observers' cursors and
//! the registry of retained runs.
//!
//! This room compares sequence numbers and decides who gets what. It spells no JSON key and no header, and knows
//! no clock, thread, socket or file: time is an argument, and what an event means was decided by `wire`.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod accumulator;
pub mod admission;
pub mod event;
pub mod history;
pub mod id;
pub mod log;
pub mod parts;
pub mod pool;
pub mod registry;
pub mod run;
pub mod turn;
