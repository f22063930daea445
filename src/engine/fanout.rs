//! Fan-out: which connections have something to write, and what. Writing is pulled: the shell asks who is next,
//! writes what it is given, and says how much was taken. Nothing is queued per observer; a short write copies the
//! rest of one frame.

use std::io::IoSlice;
use std::sync::Arc;

use crate::engine::bus::Seat;
use crate::engine::conn::Role;
use crate::engine::{Engine, Rendered};
use crate::limits::{RENDER_BYTES_PER_TURN, RENDERED_MAX, SLICES_PER_WRITE, WRITE_BYTES_PER_TURN};
use crate::proto::id::{ConnId, Now, Seq};
use crate::proto::log::Rest;
use crate::proto::registry::RunKey;
use crate::proto::run::State;
use crate::wire::frame::{self, Form};

impl Engine {
    /// The next connection with something to write. Each change gives a connection its turn once, however many
    /// events it was.
    pub fn next_dirty(&mut self) -> Option<ConnId> {
        loop {
            let Some(id) = self.dirty.pop_front() else {
                if self.spread_news() {
                    continue;
                }
                self.rendered.clear();
                return None;
            };
            let Some(conn) = self.conn_mut(id) else { continue };
            conn.dirty = false;
            if conn.blocked {
                continue;
            }
            if self.refill(id) {
                return Some(id);
            }
        }
    }

    /// What to write to a connection that [`Engine::next_dirty`] named. Returns how many slices were filled.
    pub fn outgoing<'a>(&'a self, id: ConnId, slices: &mut [IoSlice<'a>; SLICES_PER_WRITE]) -> usize {
        let Some(conn) = self.conn(id) else { return 0 };
        let (filled, bytes) = conn.out.slices(WRITE_BYTES_PER_TURN, slices);
        let budget = WRITE_BYTES_PER_TURN - bytes;
        if budget == 0 {
            return filled;
        }
        let free = slices.get_mut(filled..).unwrap_or_default();
        let more = if let Role::Observer(observer) = &conn.role {
            if observer.awaits {
                0
            } else if observer.form == Form::LOG {
                self.registry.run(observer.run).log.slices(observer.at, budget, free)
            } else if conn.out.is_empty() {
                self.rendered_slice(observer.run, observer.form, observer.at, free)
            } else {
                0
            }
        } else if let Role::Bus(seat) = &conn.role
            && conn.chunked
        {
            self.bus.log(seat.chunks).slices(seat.at, budget, free)
        } else {
            0
        };
        filled + more
    }

    /// Takes note of a write of `bytes`; `blocked` says that the connection takes no more for now.
    pub fn sent(&mut self, now: Now, id: ConnId, bytes: usize, blocked: bool) {
        self.now = now;
        self.totals.sent_bytes += bytes as u64;
        let Some(conn) = self.conn_mut(id) else { return };
        conn.blocked = blocked;
        let beyond = conn.out.sent(bytes as u64);
        if beyond > 0 {
            if let Role::Bus(seat) = &conn.role {
                let seat = *seat;
                self.advance_seat(id, seat, beyond);
            } else {
                self.advance_cursor(id, beyond);
            }
        }
        let waiting = blocked || self.has_more(id);
        let Some(conn) = self.conn_mut(id) else { return };
        conn.note_sent(now.mono_ms, bytes as u64, waiting);
        let drained = conn.out.is_empty();
        if waiting {
            self.arm(id);
            if !blocked {
                self.mark(id);
            }
        } else if drained {
            self.answer_written(id);
        }
    }

    pub(super) fn writable(&mut self, id: ConnId) {
        if let Some(conn) = self.conn_mut(id) {
            conn.blocked = false;
            self.mark(id);
        }
    }

    /// Puts a connection on the list of those with something to write.
    pub(super) fn mark(&mut self, id: ConnId) {
        if let Some(conn) = self.conn_mut(id)
            && !conn.dirty
        {
            conn.dirty = true;
            self.dirty.push_back(id);
        }
    }

    /// A run has news: its observers are told once per turn.
    pub(super) fn changed(&mut self, key: RunKey) {
        let run = self.registry.run_mut(key);
        if !run.news {
            run.news = true;
            self.news.push(key);
        }
    }

    /// Marks the observers of the runs that changed. Returns whether there were any.
    fn spread_news(&mut self) -> bool {
        let mut any = false;
        while let Some(key) = self.news.pop() {
            self.registry.run_mut(key).news = false;
            let observers = self.registry.run(key).observers.len();
            for place in 0..observers {
                let id = self.registry.run(key).observers[place];
                self.mark(id);
            }
            any |= observers > 0;
        }
        any | self.spread_bus_news()
    }

    /// Finds something to write; returns whether there is any.
    fn refill(&mut self, id: ConnId) -> bool {
        let Some(conn) = self.conn(id) else { return false };
        if !conn.out.is_empty() {
            return true;
        }
        if matches!(conn.role, Role::Observer(_)) {
            self.advance_observer(id)
        } else if let Role::Bus(seat) = &conn.role {
            let seat = *seat;
            self.advance_subscriber(id, seat)
        } else {
            self.answer_written(id);
            self.conn(id).is_some_and(|conn| !conn.out.is_empty())
        }
    }

    fn has_more(&self, id: ConnId) -> bool {
        let Some(conn) = self.conn(id) else { return false };
        if !conn.out.is_empty() {
            return true;
        }
        if let Role::Observer(observer) = &conn.role {
            let run = self.registry.run(observer.run);
            !observer.awaits && (observer.at < run.head() || matches!(run.state, State::Over(_)))
        } else if let Role::Bus(seat) = &conn.role {
            seat.at < self.bus.log(seat.chunks).head()
        } else {
            false
        }
    }

    /// An observer took `bytes` of the frames behind its cursor.
    fn advance_cursor(&mut self, id: ConnId, bytes: u64) {
        let Some(observer) = self.observer(id) else { return };
        let (key, at, form) = (observer.run, observer.at, observer.form);
        let (seq, rest) = if form == Form::LOG {
            self.registry.run(key).log.advance(at, bytes)
        } else {
            self.advance_rendered(key, form, at, bytes)
        };
        if let Some(observer) = self.observer_mut(id) {
            observer.at = seq;
        }
        self.keep_rest(id, rest);
    }

    fn advance_seat(&mut self, id: ConnId, seat: Seat, bytes: u64) {
        let (seq, rest) = self.bus.log(seat.chunks).advance(seat.at, bytes);
        if let Some(conn) = self.conn_mut(id) {
            conn.role = Role::Bus(Seat { at: seq, ..seat });
        }
        self.keep_rest(id, rest);
    }

    fn keep_rest(&mut self, id: ConnId, rest: Option<Rest>) {
        let Some(conn) = self.conn_mut(id) else { return };
        match rest {
            Some(Rest::Copied(bytes)) => conn.out.push(bytes),
            Some(Rest::Shared(bytes, from)) => conn.out.push_shared(bytes, from),
            None => {}
        }
    }

    /// Renders the frames behind `at` in another form, for all observers that stand there.
    pub(super) fn render(&mut self, key: RunKey, at: Seq, form: Form) {
        let run = self.registry.run(key);
        if self.rendered.contains_key(&(run.id, form, at)) {
            return;
        }
        if self.rendered.len() >= RENDERED_MAX {
            self.rendered.clear();
        }
        let run = self.registry.run(key);
        let mut bytes = Vec::new();
        let mut to = at;
        while let Some(frame) = run.log.frame(to.next()) {
            if !bytes.is_empty() && bytes.len() + frame.bytes.len() > RENDER_BYTES_PER_TURN {
                break;
            }
            to = to.next();
            frame::render(frame.bytes, frame.event_offset, run.id, to, form, &mut bytes);
        }
        let rendered = Rendered { bytes: Arc::new(bytes), to };
        self.rendered.insert((run.id, form, at), rendered);
    }

    fn rendered_slice<'a>(&'a self, key: RunKey, form: Form, at: Seq, slices: &mut [IoSlice<'a>]) -> usize {
        let rendered = self.rendered.get(&(self.registry.run(key).id, form, at));
        match (rendered, slices.first_mut()) {
            (Some(rendered), Some(slot)) => {
                *slot = IoSlice::new(&rendered.bytes);
                1
            }
            (Some(_) | None, _) => 0,
        }
    }

    /// As [`crate::proto::log::Log::advance`], for frames in another form.
    fn advance_rendered(&mut self, key: RunKey, form: Form, at: Seq, bytes: u64) -> (Seq, Option<Rest>) {
        let run = self.registry.run(key);
        let Some(rendered) = self.rendered.get(&(run.id, form, at)) else { return (at, None) };
        if bytes == rendered.bytes.len() as u64 {
            return (rendered.to, None);
        }
        let mut one = Vec::new();
        let mut end = 0;
        let mut seq = at;
        while end < bytes
            && let Some(frame) = run.log.frame(seq.next())
        {
            seq = seq.next();
            one.clear();
            frame::render(frame.bytes, frame.event_offset, run.id, seq, form, &mut one);
            end += one.len() as u64;
        }
        let left = usize::try_from(end - bytes).expect("less than one frame");
        let rest = one.split_off(one.len() - left);
        (seq, if rest.is_empty() { None } else { Some(Rest::Copied(rest)) })
    }
}
