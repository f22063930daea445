//! The event bus: every subscriber learns which runs begin and end, and with `chunks` also each event. A subscriber
//! is a cursor in a log that all share; one that falls out of its window gets end of file, never a gap.

use crate::engine::Engine;
use crate::engine::caps::Cap;
use crate::engine::conn::Role;
use crate::limits::BUS_WINDOW;
use crate::proto::id::{ConnId, Seq};
use crate::proto::log::Log;
use crate::proto::registry::RunKey;
use crate::proto::run::{Cause, End, State};
use crate::wire::frame::{self, Flavour};
use crate::wire::reply;

/// The logs of the bus, and who reads them.
#[derive(Debug)]
pub(super) struct Bus {
    plain: Channel,
    chunks: Channel,
}

#[derive(Debug)]
struct Channel {
    log: Log,
    subscribers: Vec<ConnId>,
    /// Whether subscribers have yet to be told of news.
    news: bool,
}

/// A subscriber's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) chunks: bool,
    /// Everything up to here is written.
    pub(super) at: Seq,
    pub(super) place: usize,
}

impl Bus {
    pub(super) fn new() -> Bus {
        let channel = || Channel { log: Log::new(BUS_WINDOW), subscribers: Vec::new(), news: false };
        Bus { plain: channel(), chunks: channel() }
    }

    pub(super) fn log(&self, chunks: bool) -> &Log {
        if chunks { &self.chunks.log } else { &self.plain.log }
    }

    /// Whether anyone wants each event.
    pub(super) fn wants_chunks(&self) -> bool {
        !self.chunks.subscribers.is_empty()
    }

    fn channel(&mut self, chunks: bool) -> &mut Channel {
        if chunks { &mut self.chunks } else { &mut self.plain }
    }
}

impl Engine {
    pub(super) fn subscribe(&mut self, id: ConnId, chunks: bool) {
        self.evict();
        if self.token_full(id) {
            return self.refuse(id, &Cap::Token.refusal(&self.config.limits));
        }
        self.count_stream(id);
        self.begin_stream_answer(id, Flavour::Get);
        let open = self.registry.retained().map(|(_, run)| run);
        let open = open.filter(|run| !matches!(run.state, State::Over(_)));
        let snapshot = reply::bus_snapshot(open);
        let channel = self.bus.channel(chunks);
        let seat = Seat { chunks, at: channel.log.head(), place: channel.subscribers.len() };
        channel.subscribers.push(id);
        if let Some(conn) = self.conn_mut(id) {
            frame::message(&[&snapshot], conn.chunked, conn.out.tail());
            conn.role = Role::Bus(seat);
        }
        self.mark(id);
        self.arm(id);
    }

    pub(super) fn unsubscribe(&mut self, _: ConnId, seat: Seat) {
        let subscribers = &mut self.bus.channel(seat.chunks).subscribers;
        subscribers.swap_remove(seat.place);
        if let Some(moved) = subscribers.get(seat.place).copied()
            && let Some(conn) = self.conn_mut(moved)
            && let Role::Bus(other) = &mut conn.role
        {
            other.place = seat.place;
        }
    }

    /// A run was registered, or its turn waits for a thread no longer.
    pub(super) fn publish_started(&mut self, key: RunKey) {
        let run = self.registry.run(key);
        let message = reply::bus_started(&run.chat, run.id, run.trigger, run.queued);
        self.publish(&message);
    }

    /// A run's end can be had.
    pub(super) fn publish_ended(&mut self, key: RunKey, end: End) {
        let run = self.registry.run(key);
        let message = reply::bus_ended(&run.chat, run.id, end.persisted, end.cause == Cause::Superseded);
        self.publish(&message);
    }

    /// An event was appended, and somebody wants each of them.
    pub(super) fn publish_chunk(&mut self, key: RunKey, event: &[u8]) {
        let run = self.registry.run(key);
        let message = reply::bus_chunk(&run.chat, run.id, run.head(), event);
        self.publish_to(true, &message);
    }

    fn publish(&mut self, message: &[u8]) {
        self.publish_to(false, message);
        self.publish_to(true, message);
    }

    fn publish_to(&mut self, chunks: bool, message: &[u8]) {
        let channel = self.bus.channel(chunks);
        if channel.subscribers.is_empty() {
            return;
        }
        channel.news = true;
        let mut framed = Vec::with_capacity(message.len() + 16);
        frame::message(&[message], true, &mut framed);
        channel.log.append(&mut self.pool, framed.len(), 0, |out| out.extend_from_slice(&framed));
    }

    /// Marks the subscribers of what was published. Returns whether there were any.
    pub(super) fn spread_bus_news(&mut self) -> bool {
        let mut any = false;
        for chunks in [false, true] {
            let channel = self.bus.channel(chunks);
            if !std::mem::take(&mut channel.news) {
                continue;
            }
            for place in 0..channel.subscribers.len() {
                let id = self.bus.channel(chunks).subscribers[place];
                self.mark(id);
                any = true;
            }
        }
        any
    }

    /// What a subscriber whose outbound bytes are all written gets next. Returns whether it has anything to write.
    pub(super) fn advance_subscriber(&mut self, id: ConnId, seat: Seat) -> bool {
        let log = self.bus.log(seat.chunks);
        if seat.at >= log.head() {
            return false;
        }
        if !log.covers(seat.at) {
            self.end_stream(id);
            if let Some(conn) = self.conn_mut(id) {
                conn.keep_alive = false;
            }
            return true;
        }
        if self.conn(id).is_some_and(|conn| !conn.chunked) {
            self.render_bus_frame(id, seat);
        }
        true
    }

    /// HTTP/1.0 has no chunks: the next frame is copied without its chunk's envelope.
    fn render_bus_frame(&mut self, id: ConnId, seat: Seat) {
        let mut plain = Vec::new();
        if let Some(frame) = self.bus.log(seat.chunks).frame(seat.at.next()) {
            frame::render_bus(frame.bytes, &mut plain);
        }
        if let Some(conn) = self.conn_mut(id) {
            conn.out.push(plain);
            conn.role = Role::Bus(Seat { at: seat.at.next(), ..seat });
        }
    }
}
