//! Observing: who follows which run, from where, and which snapshot they wait for.

use std::sync::Arc;

use crate::engine::caps::Cap;
use crate::engine::conn::{Role, Wait};
use crate::engine::{Engine, Output};
use crate::limits;
use crate::proto::admission::{Admission, Cursor, admit};
use crate::proto::id::{ChatId, ConnId, Seq, Ticket};
use crate::proto::registry::RunKey;
use crate::proto::run::{Cause, SnapshotSlot, Stage, State};
use crate::wire::frame::{self, Flavour, Form};
use crate::wire::request::Live;
use crate::wire::snapshot::{Snapshot, SnapshotJob};

/// One response that follows a run: a cursor that always stands between two frames.
#[derive(Debug)]
pub(super) struct Observer {
    pub(super) run: RunKey,
    /// Its place in the run's list of observers.
    place: usize,
    /// Everything up to here is written or waits in the connection's outbound bytes.
    pub(super) at: Seq,
    pub(super) form: Form,
    /// Snapshots it was reset with since it last had everything.
    resets: u8,
    /// Whether it waits for a snapshot to be serialised.
    pub(super) awaits: bool,
    /// The snapshot it is being sent.
    holds: Option<Arc<Snapshot>>,
    /// Its client asked for the turn in the legacy format: if it leaves, the turn is stopped.
    pub(super) stops: bool,
}

impl Engine {
    /// Answers a request to follow a chat's run.
    pub(super) fn observe(&mut self, id: ConnId, live: Live) {
        self.evict();
        let key = self.registry.of_chat(&live.chat);
        let admission = admit(live.cursor, key.map(|key| self.registry.run(key)));
        if let Some(cap) = self.cap_for(id, &live, &admission) {
            return self.refuse(id, &cap.refusal(&self.config.limits));
        }
        match (admission, key) {
            (Admission::Resume(after), Some(key)) => self.attach(id, key, live.flavour, after),
            (Admission::Snapshot(after), Some(key)) => {
                self.note_cursor(live.cursor, key);
                self.attach(id, key, live.flavour, after);
                self.send_snapshot(id);
            }
            (Admission::Idle, _) if live.wait_ms > 0 => {
                let until = self.now.mono_ms + live.wait_ms;
                self.waiters.entry(live.chat.clone()).or_default().insert(id);
                self.waiting_len += 1;
                self.count_stream(id);
                if let Some(conn) = self.conn_mut(id) {
                    conn.role = Role::Waiting(Wait::Run(Box::new(live), until));
                }
                self.arm(id);
            }
            (Admission::Idle | Admission::Done | Admission::Resume(_) | Admission::Snapshot(_), _) => {
                self.answer_nothing(id);
            }
        }
    }

    /// What there is no room for in this answer.
    fn cap_for(&self, id: ConnId, live: &Live, admission: &Admission) -> Option<Cap> {
        let waits = matches!(admission, Admission::Idle) && live.wait_ms > 0;
        let follows = matches!(admission, Admission::Resume(_) | Admission::Snapshot(_));
        if waits && self.waiting_full() {
            return Some(Cap::Waiting);
        }
        if (waits || follows) && self.token_full(id) {
            return Some(Cap::Token);
        }
        ((waits || follows) && self.observers_full(&live.chat)).then_some(Cap::Observers)
    }

    /// Counts what an observer gets a snapshot in the place of.
    fn note_cursor(&mut self, cursor: Cursor, key: RunKey) {
        match cursor {
            Cursor::At(run, _) if run == self.registry.run(key).id => self.totals.expired += 1,
            Cursor::At(..) | Cursor::Foreign => self.totals.foreign += 1,
            Cursor::None | Cursor::Ended(_) => {}
        }
    }

    /// A run was registered: all that wait for one of its chat follow it from seq 0 on.
    pub(super) fn attach_waiters(&mut self, chat: &ChatId, key: RunKey) {
        let waiting = self.waiters.remove(chat).unwrap_or_default();
        self.waiting_len -= waiting.len();
        for id in waiting {
            let Some(conn) = self.conn_mut(id) else { continue };
            let Role::Waiting(Wait::Run(live, _)) = &conn.role else { continue };
            let flavour = live.flavour;
            self.attach(id, key, flavour, Seq::ZERO);
            self.send_snapshot(id);
        }
    }

    /// A wait has lasted long enough.
    pub(super) fn stop_waiting(&mut self, id: ConnId) {
        self.leave(id);
        self.answer_nothing(id);
    }

    pub(super) fn forget_waiter(&mut self, id: ConnId, chat: &ChatId) {
        if let Some(waiting) = self.waiters.get_mut(chat) {
            self.waiting_len -= usize::from(waiting.remove(&id));
            if waiting.is_empty() {
                self.waiters.remove(chat);
            }
        }
    }

    /// Begins the response and puts the observer's cursor behind `after`.
    pub(super) fn attach(&mut self, id: ConnId, key: RunKey, flavour: Flavour, after: Seq) {
        self.totals.attached += 1;
        self.count_stream(id);
        let form = self.begin_stream_answer(id, flavour);
        let run = self.registry.run_mut(key);
        let place = run.observers.len();
        run.observers.push(id);
        let observer = Observer {
            run: key,
            place,
            at: after,
            form,
            resets: 0,
            awaits: false,
            holds: None,
            stops: false,
        };
        if let Some(conn) = self.conn_mut(id) {
            conn.role = Role::Observer(Box::new(observer));
        }
        self.mark(id);
        self.arm(id);
    }

    /// An observer leaves its run.
    pub(super) fn unobserve(&mut self, observer: &Observer) {
        let run = self.registry.run_mut(observer.run);
        run.observers.swap_remove(observer.place);
        if let Some(moved) = run.observers.get(observer.place).copied()
            && let Some(other) = self.observer_mut(moved)
        {
            other.place = observer.place;
        }
        self.release(observer.run);
    }

    pub(super) fn observer(&self, id: ConnId) -> Option<&Observer> {
        let Role::Observer(observer) = &self.conn(id)?.role else { return None };
        Some(observer)
    }

    pub(super) fn observer_mut(&mut self, id: ConnId) -> Option<&mut Observer> {
        let Role::Observer(observer) = &mut self.conn_mut(id)?.role else { return None };
        Some(observer)
    }

    /// The observer's cursor fell out of the window: it starts again from a snapshot, unless it has needed that too
    /// often without ever catching up.
    fn reset(&mut self, id: ConnId) {
        let Some(observer) = self.observer_mut(id) else { return };
        observer.resets += 1;
        // The legacy format has no frame that could say "forget what you have".
        let cut = observer.resets >= limits::RESETS_MAX || observer.form.flavour == Flavour::Legacy;
        if cut {
            self.note_cut(id);
            return self.cut_stream(id);
        }
        self.totals.resets += 1;
        self.log_reset(id);
        self.send_snapshot(id);
    }

    /// An observer is disconnected because it reads too slowly.
    pub(super) fn note_cut(&mut self, id: ConnId) {
        self.totals.cut += 1;
        self.log_cut(id);
    }

    /// In this one step the observer gets its cursor at the snapshot's seq; what follows it is sent behind it,
    /// however long serialising takes.
    pub(super) fn send_snapshot(&mut self, id: ConnId) {
        let Some(observer) = self.observer(id) else { return };
        let (key, after) = (observer.run, observer.at);
        let legacy = observer.form.flavour == Flavour::Legacy;
        let behind_max = limits::SNAPSHOT_SHARED_EVENTS.min(self.config.limits.window_events as u64 / 2);
        let run = self.registry.run_mut(key);
        let (seq, ready) = match run.shared_snapshot(legacy, after, behind_max) {
            Some(slot) => (slot.seq, slot.wait(id)),
            None => {
                let seq = run.head();
                self.make_snapshot(id, key, legacy);
                (seq, None)
            }
        };
        let Some(observer) = self.observer_mut(id) else { return };
        observer.at = seq;
        match ready {
            Some(snapshot) => self.give_snapshot(id, snapshot),
            None => observer.awaits = true,
        }
    }

    fn make_snapshot(&mut self, id: ConnId, key: RunKey, legacy: bool) {
        let ticket = self.ticket();
        self.totals.snapshots += 1;
        let run = self.registry.run_mut(key);
        let oldest = run.drop_stale_snapshots(limits::SNAPSHOTS_PER_RUN_MAX - 1);
        let seq = run.head();
        let job = SnapshotJob { ticket, run: run.id, seq, events: run.text.capture(), legacy };
        run.snapshots.push(SnapshotSlot { ticket, seq, legacy, stage: Stage::Making(vec![id]) });
        self.jobs.insert(ticket, key);
        self.output(Output::Serialize(job));
        if let Some(oldest) = oldest {
            self.cut_holders(key, &oldest);
        }
    }

    /// Too many snapshots of a run are in memory: those who still take the oldest are disconnected.
    fn cut_holders(&mut self, key: RunKey, oldest: &Arc<Snapshot>) {
        let holders: Vec<ConnId> = self
            .registry
            .run(key)
            .observers
            .iter()
            .copied()
            .filter(|id| {
                let held = self.observer(*id).and_then(|observer| observer.holds.as_ref());
                held.is_some_and(|held| Arc::ptr_eq(held, oldest))
            })
            .collect();
        for id in holders {
            self.note_cut(id);
            self.close(id, crate::engine::Close::Reset);
        }
    }

    /// A snapshot job is done.
    pub(super) fn serialized(&mut self, ticket: Ticket, snapshot: Option<Snapshot>) {
        let snapshot = snapshot.map(Arc::new);
        let Some(key) = self.jobs.remove(&ticket) else { return };
        let run = self.registry.run_mut(key);
        let Some(index) = run.snapshots.iter().position(|slot| slot.ticket == ticket) else { return };
        let waiting = match &mut run.snapshots[index].stage {
            Stage::Making(waiting) => std::mem::take(waiting),
            Stage::Ready(_) => return,
        };
        match &snapshot {
            Some(snapshot) => run.snapshots[index].stage = Stage::Ready(snapshot.clone()),
            None => {
                run.snapshots.remove(index);
            }
        }
        for id in waiting {
            let waits = self.observer(id).is_some_and(|observer| observer.awaits && observer.run == key);
            match &snapshot {
                Some(snapshot) if waits => self.give_snapshot(id, snapshot.clone()),
                // The job failed: the client comes again and gets another.
                None if waits => self.cut_stream(id),
                Some(_) | None => {}
            }
        }
    }

    fn give_snapshot(&mut self, id: ConnId, snapshot: Arc<Snapshot>) {
        let Some(conn) = self.conn_mut(id) else { return };
        let Role::Observer(observer) = &mut conn.role else { return };
        debug_assert_eq!(
            observer.at, snapshot.seq,
            "the cursor was put at the snapshot's seq when it was captured"
        );
        observer.awaits = false;
        for piece in snapshot.pieces(observer.form) {
            conn.out.push_shared(piece, 0);
        }
        observer.holds = Some(snapshot);
        self.mark(id);
    }

    /// What an observer whose outbound bytes are all written gets next. Returns whether it has anything to write.
    pub(super) fn advance_observer(&mut self, id: ConnId) -> bool {
        let Some(observer) = self.observer_mut(id) else { return false };
        observer.holds = None;
        if observer.awaits {
            return false;
        }
        let (key, at, form) = (observer.run, observer.at, observer.form);
        let run = self.registry.run(key);
        if at < run.head() {
            if run.log.covers(at) {
                if form != Form::LOG {
                    self.render(key, at, form);
                }
                return true;
            }
            self.reset(id);
            return self.conn(id).is_some_and(|conn| !conn.out.is_empty());
        }
        let state = run.state;
        if let Some(observer) = self.observer_mut(id) {
            observer.resets = 0;
        }
        match state {
            State::Over(end) => {
                self.send_end(id, end);
                true
            }
            State::Registered | State::Active | State::Finalizing => false,
        }
    }

    fn send_end(&mut self, id: ConnId, end: crate::proto::run::End) {
        let Some(observer) = self.observer(id) else { return };
        let (form, run) = (observer.form, self.registry.run(observer.run));
        let (run_id, head) = (run.id, run.head());
        if form.flavour == Flavour::Legacy && end.cause != Cause::Finalized {
            return self.cut_stream(id);
        }
        let superseded = end.cause == Cause::Superseded;
        let mut last = Vec::new();
        frame::end(run_id, head, end.persisted, superseded, form, &mut last);
        self.leave(id);
        let Some(conn) = self.conn_mut(id) else { return };
        conn.out.push(last);
        conn.role = Role::Answered;
        self.mark(id);
    }
}

impl SnapshotSlot<Snapshot> {
    /// The snapshot if it is ready; else the observer is put on the list of those who wait for it.
    fn wait(&mut self, id: ConnId) -> Option<Arc<Snapshot>> {
        match &mut self.stage {
            Stage::Ready(snapshot) => Some(snapshot.clone()),
            Stage::Making(waiting) => {
                waiting.push(id);
                None
            }
        }
    }
}
