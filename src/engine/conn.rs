//! One connection as the engine sees it: the request being read, what is being answered, and what waits to be
//! written.

use crate::access::Grant;
use crate::engine::caps::Cap;
use crate::engine::observe::Observer;
use crate::engine::outbound::Outbound;
use crate::engine::produce::PushBody;
use crate::engine::routes::{Refusal, Route};
use crate::engine::timers::Timer;
use crate::engine::{Close, Engine, Output, bus};
use crate::http::head::Version;
use crate::http::origin::Origin;
use crate::http::request::Requests;
use crate::limits;
use crate::proto::id::{ChatId, ConnId, Now, RunId, Ticket};
use crate::wire::frame::{self, KEEP_ALIVE};
use crate::wire::request::Live;

/// A connection.
pub(super) struct Conn {
    pub(super) generation: u32,
    /// Reads requests.
    pub(super) requests: Requests,
    /// Bytes behind the request that is being answered.
    pub(super) pending: Vec<u8>,
    pub(super) out: Outbound,
    pub(super) role: Role,
    /// Of the request being answered.
    pub(super) version: Version,
    /// Whose page made it, if that is one of another origin that may.
    pub(super) origin: Option<Origin>,
    /// What whoever made it may do.
    pub(super) grant: Grant,
    /// When that ends, in milliseconds of the monotonic clock.
    pub(super) expires_ms: u64,
    /// Whether it counts among the streams of its token.
    pub(super) counted: bool,
    /// Whether another request may follow the one being answered.
    pub(super) keep_alive: bool,
    /// Whether the answer goes without its body.
    pub(super) head_only: bool,
    /// Whether the answer is a stream in the chunked coding.
    pub(super) chunked: bool,
    /// The client sends nothing more.
    pub(super) half_closed: bool,
    /// There was no room for it: it gets one answer that says so.
    pub(super) surplus: bool,
    /// Whether it stands in the list of those with something to write.
    pub(super) dirty: bool,
    /// The socket takes nothing at the moment.
    pub(super) blocked: bool,
    /// Data has been waiting since then, and this much of it was taken.
    stall: Option<(u64, u64)>,
    /// When bytes were last written, or when the current state began.
    used_ms: u64,
    /// When the request being read began.
    pub(super) request_ms: Option<u64>,
    /// When its timer is set.
    armed_ms: u64,
}

/// What a connection is busy with.
pub(super) enum Role {
    /// Waits for a request or reads its head.
    Reading,
    /// Reads the short body of a request.
    Body(Box<(Result<Route, Refusal>, Vec<u8>)>),
    /// Reads a producer's events.
    Push(Box<PushBody>),
    /// The request is here, the answer needs something else first.
    Waiting(Wait),
    /// Follows a run.
    Observer(Box<Observer>),
    /// Follows the event bus.
    Bus(bus::Seat),
    /// Follows what the producer of a run is told.
    Control(RunId),
    /// The answer is complete; when it is written, the next request is read.
    Answered,
    /// The answer is complete; when it is written, the connection is closed.
    Closing(Close),
    /// The shell was told to close it.
    Gone,
}

/// What an answer waits for.
pub(super) enum Wait {
    /// A run of the chat, until then.
    Run(Box<Live>, u64),
    /// The end of the chat's finalization.
    Start(ChatId),
    /// The outcome of the run's commit.
    Outcome(RunId),
    /// The store.
    Store(Ticket),
    /// The message of the run's turn to be in the history.
    Opening(RunId),
}

impl Conn {
    fn new(generation: u32, now_ms: u64, surplus: bool) -> Conn {
        Conn {
            generation,
            requests: Requests::new(),
            pending: Vec::new(),
            out: Outbound::default(),
            role: Role::Reading,
            version: Version::Http11,
            origin: None,
            grant: Grant::All,
            expires_ms: u64::MAX,
            counted: false,
            keep_alive: true,
            head_only: false,
            chunked: false,
            half_closed: false,
            surplus,
            dirty: false,
            blocked: false,
            stall: None,
            used_ms: now_ms,
            request_ms: None,
            armed_ms: u64::MAX,
        }
    }

    pub(super) fn id(&self, slot: usize) -> ConnId {
        ConnId { slot: u32::try_from(slot).expect("slots come as u32"), generation: self.generation }
    }

    /// Whether its answer is a stream that stays open.
    fn streams(&self) -> bool {
        matches!(self.role, Role::Observer(_) | Role::Bus(_) | Role::Control(_))
    }

    /// Whether what its token allows goes on: an answer that takes as long as it takes.
    fn needs_token(&self) -> bool {
        self.streams() || matches!(self.role, Role::Waiting(Wait::Run(..)))
    }

    /// When it has to be looked at.
    fn due(&self) -> Option<u64> {
        let stall = self.stall.map(|(since, _)| since + limits::STALL_MS);
        let (request_ms, idle_ms) = match self.surplus {
            true => (limits::SURPLUS_MS, limits::SURPLUS_MS),
            false => (limits::REQUEST_MS, limits::IDLE_MS),
        };
        let role = match &self.role {
            Role::Reading => match self.request_ms {
                Some(since) => Some(since + request_ms),
                None => Some(self.used_ms + idle_ms),
            },
            Role::Body(_) => self.request_ms.map(|since| since + request_ms),
            Role::Observer(_) | Role::Bus(_) | Role::Control(_) => Some(self.used_ms + limits::KEEP_ALIVE_MS),
            Role::Waiting(Wait::Run(_, until)) => Some(*until),
            Role::Waiting(Wait::Start(_) | Wait::Outcome(_) | Wait::Store(_) | Wait::Opening(_)) => None,
            Role::Push(_) | Role::Answered | Role::Closing(_) | Role::Gone => None,
        };
        let expiry = (self.expires_ms < u64::MAX && self.needs_token()).then_some(self.expires_ms);
        [stall, role, expiry].into_iter().flatten().min()
    }

    /// Takes note of a write: what was taken, and whether more is waiting.
    pub(super) fn note_sent(&mut self, now_ms: u64, bytes: u64, waiting: bool) {
        if bytes > 0 {
            self.used_ms = now_ms;
        }
        self.stall = match (waiting, self.stall) {
            (false, _) => None,
            (true, None) => Some((now_ms, 0)),
            (true, Some((since, taken))) => Some((since, taken + bytes)),
        };
    }
}

impl Engine {
    pub(super) fn opened(&mut self, id: ConnId) {
        let slot = id.slot as usize;
        if self.conns.len() <= slot {
            self.conns.resize_with(slot + 1, || None);
        }
        debug_assert!(
            self.conns[slot].is_none(),
            "the shell uses a slot again only when its connection is gone"
        );
        let surplus = self.connections_full();
        self.conns[slot] = Some(Box::new(Conn::new(id.generation, self.now.mono_ms, surplus)));
        self.conns_len += 1;
        self.surplus_len += usize::from(surplus);
        self.totals.connections += 1;
        if self.stopping {
            return self.close(id, Close::Linger);
        }
        self.arm(id);
    }

    pub(super) fn closed(&mut self, id: ConnId) {
        if self.conn(id).is_none() {
            return;
        }
        self.sender_left(id);
        self.leave(id);
        if let Some(conn) = self.conns.get_mut(id.slot as usize).and_then(Option::take) {
            self.conns_len -= 1;
            self.surplus_len -= usize::from(conn.surplus);
            self.timers.unset(conn.armed_ms, Timer::Conn(id));
        }
    }

    /// Takes a connection out of whatever it takes part in.
    pub(super) fn leave(&mut self, id: ConnId) {
        self.uncount_stream(id);
        let Some(conn) = self.conn_mut(id) else { return };
        match std::mem::replace(&mut conn.role, Role::Answered) {
            Role::Push(body) => self.push_broken(id, &body),
            Role::Observer(observer) => self.unobserve(&observer),
            Role::Bus(seat) => self.unsubscribe(id, seat),
            Role::Control(run) => self.control_left(id, run),
            Role::Waiting(Wait::Run(live, _)) => self.forget_waiter(id, &live.chat),
            Role::Waiting(Wait::Start(chat)) => self.forget_starter(id, &chat),
            Role::Waiting(Wait::Outcome(run)) => self.forget_outcome(id, run),
            Role::Waiting(Wait::Store(ticket)) => self.forget_question(ticket),
            Role::Waiting(Wait::Opening(run)) => self.forget_opening(id, run),
            Role::Body(body) => self.bodies_bytes -= body.1.capacity() as u64,
            Role::Reading | Role::Answered | Role::Closing(_) | Role::Gone => {}
        }
    }

    /// Everything of an answer is written: close, or read the next request.
    pub(super) fn answer_written(&mut self, id: ConnId) {
        let now_ms = self.now.mono_ms;
        let Some(conn) = self.conn_mut(id) else { return };
        match conn.role {
            Role::Closing(how) => self.close(id, how),
            Role::Answered if !conn.keep_alive => self.close(id, Close::Linger),
            Role::Answered => {
                conn.role = Role::Reading;
                conn.origin = None;
                conn.used_ms = now_ms;
                self.take_pending(id);
            }
            Role::Reading if conn.half_closed => self.close(id, Close::Linger),
            Role::Reading
            | Role::Body(_)
            | Role::Push(_)
            | Role::Waiting(_)
            | Role::Observer(_)
            | Role::Bus(_)
            | Role::Control(_)
            | Role::Gone => {}
        }
    }

    /// Closes a connection; the shell answers with [`crate::engine::Input::Closed`].
    pub(super) fn close(&mut self, id: ConnId, how: Close) {
        self.leave(id);
        if let Some(conn) = self.conn_mut(id) {
            if matches!(how, Close::Reset) {
                conn.out.clear();
            }
            conn.pending = Vec::new();
            conn.stall = None;
            conn.role = Role::Gone;
            self.output(Output::Close(id, how));
        }
    }

    /// Sets the connection's timer if it has to be looked at earlier than it would be.
    pub(super) fn arm(&mut self, id: ConnId) {
        let Some(conn) = self.conn_mut(id) else { return };
        let Some(due) = conn.due() else { return };
        if due < conn.armed_ms {
            let before = std::mem::replace(&mut conn.armed_ms, due);
            self.timers.unset(before, Timer::Conn(id));
            self.timers.set(due, Timer::Conn(id));
        }
    }

    pub(super) fn conn_due(&mut self, id: ConnId) {
        let now_ms = self.now.mono_ms;
        let Some(conn) = self.conn_mut(id) else { return };
        conn.armed_ms = u64::MAX;
        if conn.due().is_some_and(|due| due <= now_ms) {
            self.overdue(id);
        }
        self.arm(id);
    }

    fn overdue(&mut self, id: ConnId) {
        let now_ms = self.now.mono_ms;
        let Some(conn) = self.conn_mut(id) else { return };
        if let Some((since, taken)) = conn.stall
            && since + limits::STALL_MS <= now_ms
        {
            if taken < limits::STALL_BYTES_MIN {
                if matches!(conn.role, Role::Observer(_)) {
                    self.note_cut(id);
                }
                return self.close(id, Close::Reset);
            }
            conn.stall = Some((now_ms, 0));
            return;
        }
        if conn.needs_token() && conn.expires_ms <= now_ms {
            return self.expire(id);
        }
        match &conn.role {
            Role::Reading | Role::Body(_) if conn.surplus => {
                self.break_off(id, Cap::Connections.refusal(&self.config.limits));
            }
            Role::Reading if conn.request_ms.is_none() => self.close(id, Close::Linger),
            Role::Reading | Role::Body(_) => {
                let message = "the request did not arrive in time; send it in one go";
                self.break_off(id, Refusal::new(408, "request_timeout", message));
            }
            Role::Waiting(Wait::Run(..)) => self.stop_waiting(id),
            Role::Observer(_) | Role::Bus(_) | Role::Control(_) => self.keep_alive(id),
            Role::Push(_) | Role::Waiting(_) | Role::Answered | Role::Closing(_) | Role::Gone => {}
        }
    }

    fn keep_alive(&mut self, id: ConnId) {
        let Now { mono_ms: now_ms, wall_ms } = self.now;
        let Some(conn) = self.conn_mut(id) else { return };
        conn.used_ms = now_ms;
        // The monotonic clock may have stood still while the machine slept.
        if conn.grant.expires_wall_ms().is_some_and(|expires| expires <= wall_ms) {
            return self.expire(id);
        }
        if conn.streams() && conn.out.is_empty() && !conn.blocked {
            frame::message(&[KEEP_ALIVE], conn.chunked, conn.out.tail());
            self.mark(id);
        }
    }

    /// A server that is to stop: idle connections are closed, the others when they are answered.
    pub(super) fn wind_up(&mut self, id: ConnId) {
        let Some(conn) = self.conn_mut(id) else { return };
        conn.keep_alive = false;
        if matches!(conn.role, Role::Reading) && conn.out.is_empty() {
            self.close(id, Close::Linger);
        } else if matches!(conn.role, Role::Bus(_) | Role::Control(_)) {
            self.end_stream(id);
        }
    }
}
