//! A turn with an AG-UI agent: one POST over HTTP or HTTPS, whose answer's events are handed on as they come.
//!
//! The turn thread waits for the agent and for the server at once, so a cancel is prompt however silent the agent is;
//! the waiting for the socket is done by a thread of its own, in an *exchange*. An agent is asked once: nothing is
//! tried again and no redirect is followed. It is spoken to directly: a proxy that the environment names is not used.

mod exchange;
mod fault;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crossbeam_channel::{after, select_biased};
use ureq::tls::RootCerts;

use crate::limits::EVENT_BYTES_MAX;
use crate::turns::sink::{Cancelled, TurnSink};
use crate::turns::{TurnControl, TurnMessage, TurnOrder};
use crate::wire::body::{EventReader, Format, Item};
use crate::wire::event;
use exchange::{Exchange, Said};
use fault::Fault;

/// Asks the agent and hands on what it answers, up to `Done` or `Failed`; after a cancel, nothing more. The order's
/// agent must be a native one.
pub fn run_turn(order: &TurnOrder, sink: &mut TurnSink) {
    converse(order, sink, RootCerts::PlatformVerifier);
}

/// Why a turn stops before the agent is done.
enum Stop {
    Cancelled,
    Fault(Fault),
}

impl From<Cancelled> for Stop {
    fn from(_: Cancelled) -> Stop {
        Stop::Cancelled
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

fn converse(order: &TurnOrder, sink: &mut TurnSink, roots: RootCerts) {
    let last = match listen(order, sink, roots) {
        Ok(()) => TurnMessage::Done,
        Err(Stop::Cancelled) => return,
        Err(Stop::Fault(fault)) => {
            TurnMessage::Failed { code: fault.code(), message: fault.message(&order.agent) }
        }
    };
    // Who no longer wants the turn does not want its end.
    let _ = sink.send(last);
}

/// Up to the end of the body, whatever runs it holds. The exchange is dropped on every way out, which closes the
/// connection.
fn listen(order: &TurnOrder, sink: &mut TurnSink, roots: RootCerts) -> Result<(), Stop> {
    let silence = Duration::from_millis(order.agent.silence_ms);
    let exchange = Exchange::begin(order, roots)?;
    let mut answer = match hear(&exchange, sink, silence)? {
        Said::Head(format) => Answer::new(format),
        Said::End(end) => return Ok(end?),
        Said::Bytes(_) => unreachable!("the head comes before the body"),
    };
    loop {
        match hear(&exchange, sink, silence)? {
            Said::Bytes(bytes) => answer.read(&bytes, sink)?,
            Said::End(Ok(())) => return answer.finish(sink),
            Said::End(Err(fault)) => return Err(fault.into()),
            Said::Head(_) => unreachable!("an answer has one head"),
        }
    }
}

/// What comes next. Each call grants the agent the whole silence anew: the time for which the reactor takes no events
/// is not the agent's.
fn hear(exchange: &Exchange, sink: &TurnSink, silence: Duration) -> Result<Said, Stop> {
    let silent = after(silence);
    loop {
        select_biased! {
            recv(sink.control()) -> told => match told {
                // A native agent asks nothing: nobody waits for this.
                Ok(TurnControl::Answer { .. }) => {}
                Ok(TurnControl::Cancel) | Err(_) => return Err(Stop::Cancelled),
            },
            recv(exchange.said) -> said => return said.map_err(|_| Fault::Reader.into()),
            recv(silent) -> _ => return Err(Fault::Silent(silence).into()),
        }
    }
}

/// An answer's body, as far as it was read.
struct Answer {
    reader: EventReader,
    /// Events handed on.
    events: u64,
    scratch: Vec<u8>,
}

impl Answer {
    fn new(format: Format) -> Answer {
        Answer { reader: EventReader::new(format, EVENT_BYTES_MAX), events: 0, scratch: Vec::new() }
    }

    /// Hands on each event that these bytes complete.
    fn read(&mut self, mut bytes: &[u8], sink: &mut TurnSink) -> Result<(), Stop> {
        while let Some(item) = self.reader.next(&mut bytes) {
            let number = self.events + 1;
            let item = item.map_err(|fault| Fault::Body { number, fault })?;
            let event = line(item, &mut self.scratch).map_err(|fault| Fault::Event { number, fault })?;
            hand_on(event, sink)?;
            self.events = number;
        }
        Ok(())
    }

    /// Hands on what the body's end completes. An event that only the end cuts off is taken if it is whole.
    fn finish(&mut self, sink: &mut TurnSink) -> Result<(), Stop> {
        if let Some(item) = self.reader.finish() {
            let number = self.events + 1;
            let item = item.map_err(|fault| Fault::Body { number, fault })?;
            let event = line(item, &mut self.scratch).map_err(|_| Fault::HalfEvent { number })?;
            hand_on(event, sink)?;
        }
        Ok(())
    }
}

fn line<'a>(item: Item<'a>, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], event::EventFault> {
    event::read(item.bytes, scratch).map(|event| event.line)
}

/// One piece of a body may hold many events: the server's word is asked for before each.
fn hand_on(event: &[u8], sink: &mut TurnSink) -> Result<(), Cancelled> {
    match sink.told() {
        Some(TurnControl::Cancel) => Err(Cancelled),
        Some(TurnControl::Answer { .. }) | None => sink.send(TurnMessage::Event(event.to_vec())),
    }
}
