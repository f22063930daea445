//! History: questions to the store, and their answers.

use crate::engine::Engine;
use crate::engine::Output;
use crate::engine::conn::{Role, Wait};
use crate::engine::routes::Refusal;
use crate::engine::timers::Timer;
use crate::limits::{HISTORY_MS, PAGE_ROWS};
use crate::proto::history::{Answer, Job, Page, PageMark};
use crate::proto::id::{ChatId, ConnId, Ticket};
use crate::proto::run::{Cause, End, State};

impl Engine {
    pub(super) fn list_chats(&mut self, id: ConnId, after: Option<PageMark>) {
        let ticket = self.ask(id);
        self.output(Output::Store(Job::Chats { ticket, rows_max: PAGE_ROWS, after }));
    }

    pub(super) fn read_chat(&mut self, id: ConnId, chat: ChatId, after_turn: u64) {
        let ticket = self.ask(id);
        self.output(Output::Store(Job::Chat { ticket, chat, turns_max: PAGE_ROWS, after_turn }));
    }

    /// Deletes a chat: an active run is cut off, nothing is retained, and the store forgets what it has.
    pub(super) fn delete_chat(&mut self, id: ConnId, chat: ChatId) {
        self.evict();
        let mut cut = None;
        if let Some(key) = self.registry.of_chat(&chat) {
            let run = self.registry.run(key);
            let (run, state) = (run.id, run.state);
            match state {
                State::Registered | State::Active => {
                    let over = State::Over(End { persisted: false, cause: Cause::Deleted });
                    self.dismiss_producer(run, over, Some("deleted"));
                    self.cut_off(key, Cause::Deleted);
                    cut = Some(run);
                }
                State::Finalizing => {
                    self.withdraw(run);
                    self.cut_off(key, Cause::Deleted);
                }
                State::Over(_) => {
                    self.registry.forget(key);
                    self.release(key);
                }
            }
        }
        let ticket = self.ask(id);
        let wall_ms = self.now.wall_ms;
        self.output(Output::Store(Job::Delete { ticket, chat: chat.clone(), cut, wall_ms }));
        self.start_waiting(&chat);
    }

    pub(super) fn stored(&mut self, answer: Answer) {
        self.store_watch.answered(self.now);
        match answer {
            Answer::Finalized { run, outcome } => self.finalized(run, outcome),
            Answer::Opened { run, opened } => self.opened_turn(run, opened),
            Answer::RetryPoint { ticket, point } => self.retry_found(ticket, point),
            Answer::Deleted { ticket, done } => {
                let Some(id) = self.question_answered(ticket) else { return };
                if done { self.answer_nothing(id) } else { self.store_failed(id) }
            }
            Answer::Page { ticket, page } => {
                let Some(id) = self.question_answered(ticket) else { return };
                match page {
                    Page::Found(body) => self.answer(id, 200, &body),
                    Page::Missing => {
                        self.refuse(
                            id,
                            &Refusal::new(404, "unknown_chat", "there is no history of this chat"),
                        );
                    }
                    Page::Failed => self.store_failed(id),
                }
            }
        }
    }

    /// The store did not answer in time.
    pub(super) fn question_due(&mut self, ticket: Ticket) {
        self.retries.remove(&ticket);
        if let Some(id) = self.question_answered(ticket) {
            self.store_failed(id);
        }
    }

    pub(super) fn forget_question(&mut self, ticket: Ticket) {
        self.retries.remove(&ticket);
        self.question_answered(ticket);
    }

    pub(super) fn ask(&mut self, id: ConnId) -> Ticket {
        let ticket = self.ticket();
        let until_ms = self.now.mono_ms + HISTORY_MS;
        self.questions.insert(ticket, (id, until_ms));
        self.timers.set(until_ms, Timer::Question(ticket));
        if let Some(conn) = self.conn_mut(id) {
            conn.role = Role::Waiting(Wait::Store(ticket));
        }
        ticket
    }

    pub(super) fn question_answered(&mut self, ticket: Ticket) -> Option<ConnId> {
        let (id, until_ms) = self.questions.remove(&ticket)?;
        self.timers.unset(until_ms, Timer::Question(ticket));
        Some(id)
    }

    pub(super) fn store_failed(&mut self, id: ConnId) {
        let message = "the history can't be reached at the moment; try again later";
        self.refuse(id, &Refusal::new(503, "store_failed", message));
    }
}
