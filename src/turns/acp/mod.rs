//! An ACP agent: a program that speaks the Agent Client Protocol, version 1, over its stdin and stdout.
//!
//! A turn is one `session/prompt`; what the agent says meanwhile becomes AG-UI events. The process lives on between the
//! turns of its chat. It gets neither files nor terminals from here: it works in its own folder, with its own tools.
//!
//! ACP's types are those of the official schema crate, but for what passes through from the agent to the observers:
//! that stays as it was written.

mod events;
mod failure;
mod mapping;
mod process;
mod prompt;
mod questions;
mod rpc;
mod session;
mod tools;
mod turn;

#[cfg(test)]
mod tests;

pub use session::AcpSession;

use crate::turns::sink::TurnSink;
use crate::turns::{TurnMessage, TurnOrder};
use turn::{Stop, Turn};

/// What a turn leaves for the next one of its chat.
#[derive(Debug)]
pub struct TurnEnd {
    /// The agent's process, if it lives and can go on.
    pub session: Option<AcpSession>,
    /// The agent's id of the conversation, which a later process may know how to load.
    pub remembered: Option<String>,
}

/// Runs a turn to its end and hands on what the agent says. `session` is what the chat's last turn left; `remembered`
/// the id of its conversation, for an agent that has to be started again.
///
/// A cancelled turn ends without a further message, within about two seconds.
pub fn run_turn(
    order: &TurnOrder,
    session: Option<AcpSession>,
    remembered: Option<String>,
    sink: &mut TurnSink,
) -> TurnEnd {
    let mut end = TurnEnd { session, remembered };
    let last = match Turn::new(order, sink).run(&mut end) {
        Ok(()) => TurnMessage::Done,
        Err(Stop::Failed(failure)) => failure.message(&order.agent.name),
        Err(Stop::Cancelled) => return end,
    };
    // Who does not want the last message knows that the turn is over.
    let _ = sink.send(last);
    end
}
