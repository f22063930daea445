//! The wire: JSON and SSE as bytes, to and from the protocol's typed values.
//!
//! This room spells every JSON key. It keeps no state beyond a call (but for a body that is being cut into
//! events), sees no socket, and takes hostile bytes without panicking.
#![warn(clippy::indexing_slicing, clippy::expect_used)]
#![cfg_attr(test, allow(clippy::indexing_slicing, reason = "a test may panic"))]

pub mod body;
pub mod event;
pub mod frame;
pub mod history;
pub mod json;
pub mod messages;
pub mod metrics;
pub mod reply;
pub mod request;
mod scan;
pub mod snapshot;
pub mod status;
pub mod turn;
