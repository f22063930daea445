//! Intake: what a client sends becomes requests, and each request goes to what answers it.

use crate::access::Right;
use crate::engine::caps::Cap;
use crate::engine::conn::{Role, Wait};
use crate::engine::cross::{self, Caller};
use crate::engine::routes::{self, Refusal, Route};
use crate::engine::{Close, Engine, Output};
use crate::http::head::{BodyFraming, Head, Method};
use crate::http::request::Step;
use crate::http::response::CONTINUE;
use crate::limits;
use crate::proto::id::ConnId;
use crate::wire::{reply, request};

impl Engine {
    pub(super) fn received(&mut self, id: ConnId, bytes: &[u8]) {
        self.totals.received_bytes += bytes.len() as u64;
        let Some(conn) = self.conn_mut(id) else { return };
        if !conn.pending.is_empty() {
            conn.pending.extend_from_slice(bytes);
            return;
        }
        self.feed(id, bytes);
    }

    /// Takes bytes through the request machine until they are used up or a request has to be answered first.
    fn feed(&mut self, id: ConnId, mut bytes: &[u8]) {
        loop {
            let now_ms = self.now.mono_ms;
            let Some(conn) = self.conn_mut(id) else { return };
            match conn.role {
                Role::Reading | Role::Body(_) | Role::Push(_) => {}
                Role::Closing(_) | Role::Gone => return,
                Role::Waiting(_) | Role::Observer(_) | Role::Bus(_) | Role::Control(_) | Role::Answered => {
                    conn.pending.extend_from_slice(bytes);
                    return;
                }
            }
            let step = conn.requests.next(bytes);
            let (taken, step) = match step {
                Ok(step) => step,
                Err(reject) => {
                    let refusal = Refusal::new(reject.status, reject.code, reject.message);
                    return self.break_off(id, refusal);
                }
            };
            bytes = &bytes[taken..];
            match step {
                Step::NeedMore => {
                    if conn.requests.mid_request() && conn.request_ms.is_none() {
                        conn.request_ms = Some(now_ms);
                    }
                    return self.arm(id);
                }
                Step::Head(head) => {
                    conn.request_ms.get_or_insert(now_ms);
                    self.head(id, &head);
                }
                Step::Body(piece) => self.body(id, piece),
                Step::End => self.request_complete(id),
            }
        }
    }

    fn head(&mut self, id: ConnId, head: &Head) {
        let caller = cross::caller(head, &self.config.origins);
        let route = routes::route(head, &self.config.hosts, &caller);
        let admitted = route.and_then(|route| {
            self.admit(head, &route).map(|grant| {
                self.note_grant(id, grant);
                route
            })
        });
        let route = match admitted {
            Ok(route) if route.is_about_the_server() => Ok(route),
            Ok(_) if self.stopping => {
                Err(Refusal::new(503, "shutting_down", "the server is being shut down; try again later"))
            }
            Ok(_) if self.is_surplus(id) => Err(Cap::Connections.refusal(&self.config.limits)),
            route => route,
        };
        let Some(conn) = self.conn_mut(id) else { return };
        conn.version = head.version;
        conn.origin = if let Caller::Allowed(origin) = caller { Some(origin) } else { None };
        conn.keep_alive = head.keep_alive && !conn.surplus;
        conn.head_only = head.method == Method::Head;
        conn.chunked = false;
        conn.requests.set_body_max(match route {
            Ok(Route::Turn { .. }) => limits::TURN_BODY_BYTES_MAX,
            _ => limits::REQUEST_BODY_BYTES_MAX,
        });
        let has_body = !matches!(head.body, BodyFraming::None | BodyFraming::Length(0));
        match route {
            Err(refusal) if has_body => return self.refuse_and_close(id, &refusal),
            Ok(Route::Append { run, from_seq, format }) => {
                conn.requests.set_body_max(u64::MAX);
                self.begin_append(id, run, from_seq, format);
            }
            Ok(Route::Stream { chat, start, format }) => {
                conn.requests.set_body_max(u64::MAX);
                self.begin_stream(id, chat, start, format);
            }
            route => conn.role = Role::Body(Box::new((route, Vec::new()))),
        }
        if head.expect_continue {
            self.say_continue(id, head.body);
        }
    }

    /// A client waits to be told to send its body. If there will be a refusal, it is told that instead.
    fn say_continue(&mut self, id: ConnId, body: BodyFraming) {
        let Some(conn) = self.conn_mut(id) else { return };
        let wanted = match (&conn.role, body) {
            (_, BodyFraming::None) => false,
            (Role::Body(_), BodyFraming::Length(bytes)) => bytes <= limits::REQUEST_BODY_BYTES_MAX,
            (role, _) => matches!(role, Role::Body(_) | Role::Push(_) | Role::Waiting(_)),
        };
        if wanted {
            conn.out.tail().extend_from_slice(CONTINUE);
            self.mark(id);
        }
    }

    fn body(&mut self, id: ConnId, piece: &[u8]) {
        let memory_full = self.memory_full();
        let Some(conn) = self.conn_mut(id) else { return };
        if let Role::Body(body) = &mut conn.role {
            let before = body.1.capacity();
            if memory_full && body.1.len() + piece.len() > limits::SMALL_BODY_BYTES_MAX {
                return self.break_off(id, Cap::Memory.refusal(&self.config.limits));
            }
            body.1.extend_from_slice(piece);
            self.bodies_bytes += (body.1.capacity() - before) as u64;
        } else if matches!(conn.role, Role::Push(_)) {
            self.push_bytes(id, piece);
        }
    }

    fn request_complete(&mut self, id: ConnId) {
        let Some(conn) = self.conn_mut(id) else { return };
        conn.request_ms = None;
        match std::mem::replace(&mut conn.role, Role::Answered) {
            Role::Body(body) => {
                let (route, bytes) = *body;
                self.bodies_bytes -= bytes.capacity() as u64;
                match route {
                    Ok(route) => self.dispatch(id, route, &bytes),
                    Err(refusal) => self.refuse(id, &refusal),
                }
            }
            Role::Push(body) => self.push_end(id, *body),
            // Already answered: what was left of its body was read and dropped.
            other @ (Role::Reading
            | Role::Waiting(_)
            | Role::Observer(_)
            | Role::Bus(_)
            | Role::Control(_)
            | Role::Answered
            | Role::Closing(_)
            | Role::Gone) => conn.role = other,
        }
        self.arm(id);
    }

    fn dispatch(&mut self, id: ConnId, route: Route, body: &[u8]) {
        let done = match route {
            Route::LiveBody => match request::live(body) {
                Ok(live) => self.permit(id, Right::Observe, &live.chat).map(|()| self.observe(id, live)),
                Err(bad) => Err(bad.into()),
            },
            Route::Live(live) => {
                self.observe(id, live);
                Ok(())
            }
            Route::Bus { chunks } => {
                self.subscribe(id, chunks);
                Ok(())
            }
            Route::Start { chat } => self.start_requested(id, chat, body),
            Route::Turn { route, boundary } => self.turn_requested(id, route, boundary.as_deref(), body),
            Route::Stop => self.stop_requested(id, body),
            Route::Respond => self.respond_requested(id, body),
            Route::RunState { run } => self.run_state(id, run),
            Route::Control { run } => self.control(id, run),
            Route::Finish { run } => self.finish_requested(id, run, body),
            Route::Chats { after } => {
                self.list_chats(id, after);
                Ok(())
            }
            Route::Chat { chat, after_turn } => {
                self.read_chat(id, chat, after_turn);
                Ok(())
            }
            Route::Delete { chat } => {
                self.delete_chat(id, chat);
                Ok(())
            }
            Route::Health => {
                self.answer(id, 200, &reply::health());
                Ok(())
            }
            Route::Ready => match self.unready() {
                Some(refusal) => Err(refusal),
                None => {
                    self.answer(id, 200, &reply::ready());
                    Ok(())
                }
            },
            Route::Status => {
                let body = self.status();
                self.answer(id, 200, &body);
                Ok(())
            }
            Route::Metrics => {
                let body = self.metrics();
                self.answer_metrics(id, &body);
                Ok(())
            }
            Route::Page(file, known) => {
                self.answer_file(id, file, known);
                Ok(())
            }
            Route::Methods { methods, preflight } => {
                self.answer_methods(id, methods, preflight);
                Ok(())
            }
            Route::Append { .. } | Route::Stream { .. } => unreachable!("these begin with their head"),
        };
        if let Err(refusal) = done {
            self.refuse(id, &refusal);
        }
    }

    /// The client sends nothing more: what it was sending is broken off, what it is being sent goes on.
    pub(super) fn half_closed(&mut self, id: ConnId) {
        let Some(conn) = self.conn_mut(id) else { return };
        conn.half_closed = true;
        if matches!(conn.role, Role::Reading) && conn.out.is_empty() {
            self.close(id, Close::Linger);
        } else if matches!(conn.role, Role::Body(_) | Role::Push(_)) {
            let message = "the connection ended before the body was complete";
            self.break_off(id, Refusal::new(400, "incomplete_body", message));
        } else if matches!(conn.role, Role::Waiting(Wait::Run(..))) {
            self.stop_waiting(id);
        } else {
            self.sender_left(id);
        }
    }

    /// The request being read can't be completed: tell its producer's run, answer, close.
    pub(super) fn break_off(&mut self, id: ConnId, refusal: Refusal) {
        self.leave(id);
        self.refuse_and_close(id, &refusal);
    }

    /// Bytes that came while a request waited are taken now.
    pub(super) fn take_pending(&mut self, id: ConnId) {
        let Some(conn) = self.conn_mut(id) else { return };
        let pending = std::mem::take(&mut conn.pending);
        if pending.len() >= limits::PIPELINE_BYTES_MAX {
            self.output(Output::Resume(id));
        }
        self.feed(id, &pending);
        let Some(conn) = self.conn(id) else { return };
        if conn.half_closed && matches!(conn.role, Role::Reading | Role::Body(_) | Role::Push(_)) {
            // The end came while these bytes waited.
            self.half_closed(id);
        }
    }
}
