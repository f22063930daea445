//! The reactor's side of turns: a thread for each, the channel on which it is told things, and the agents' processes
//! between the turns of their chats.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::engine::{LocalInput, LocalReply};
use crate::limits::{ACP_IDLE_MAX, ACP_REMEMBERED_MAX, TURN_STACK_BYTES};
use crate::proto::id::{ChatId, LocalId};
use crate::reactor::locals::{Allowance, Budget, budget};
use crate::reactor::{Mailbox, Message};
use crate::turns::acp::{self, TurnEnd};
use crate::turns::sink::TurnSink;
use crate::turns::{AgentKind, TurnControl, TurnMessage, TurnOrder, native};

/// All turns that have a thread.
#[derive(Debug, Default)]
pub(super) struct Turns {
    running: BTreeMap<LocalId, Running>,
    chats: BTreeMap<ChatId, AcpChat>,
    /// Turns of ACP agents that ended so far: the clock by which their chats age.
    ended: u64,
}

#[derive(Debug)]
struct Running {
    control: Sender<TurnControl>,
    budget: Budget,
    /// The chat whose process it uses.
    chat: Option<ChatId>,
}

/// A chat with an ACP agent.
#[derive(Debug)]
struct AcpChat {
    /// What its last turn left; none while a turn has it.
    left: Option<TurnEnd>,
    /// Turns that wait for the one before them to let go of the process.
    next: VecDeque<Ready>,
    /// When its last turn ended.
    used: u64,
}

/// A turn that could start.
#[derive(Debug)]
struct Ready {
    order: TurnOrder,
    control: Receiver<TurnControl>,
    allowance: Allowance,
}

impl Turns {
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Starts a turn. One process serves one turn at a time: a second one waits for the first to let go.
    pub(super) fn start(&mut self, order: TurnOrder, mailbox: &Mailbox) {
        let (budget, allowance) = budget();
        let (sender, control) = unbounded();
        let chat = matches!(order.agent.kind, AgentKind::Acp { .. }).then(|| order.chat.clone());
        self.running.insert(order.turn, Running { control: sender, budget, chat: chat.clone() });
        let ready = Ready { order, control, allowance };
        let Some(chat) = chat else { return spawn(ready, None, mailbox) };
        let fresh = AcpChat {
            left: Some(TurnEnd { session: None, remembered: None }),
            next: VecDeque::new(),
            used: 0,
        };
        let held = self.chats.entry(chat).or_insert(fresh);
        match held.left.take() {
            Some(left) => spawn(ready, Some(left), mailbox),
            None => held.next.push_back(ready),
        }
    }

    pub(super) fn tell(&self, id: LocalId, reply: LocalReply) {
        let Some(running) = self.running.get(&id) else { return };
        let control = match reply {
            LocalReply::Cancelled(_) => TurnControl::Cancel,
            LocalReply::Answered { request, decision } => TurnControl::Answer { request, answer: decision },
            LocalReply::Started(_) | LocalReply::Refused { .. } | LocalReply::Finished { .. } => return,
        };
        // A thread that is through has no use for it.
        let _ = running.control.send(control);
    }

    /// An event was taken.
    pub(super) fn taken(&self, id: LocalId, bytes: usize) {
        if let Some(running) = self.running.get(&id) {
            running.budget.take(bytes);
        }
    }

    /// A turn's thread is through, and leaves its agent's process to the next turn of its chat.
    pub(super) fn over(&mut self, id: LocalId, left: Option<TurnEnd>, mailbox: &Mailbox) {
        let chat = self.running.remove(&id).and_then(|running| running.chat);
        let Some(chat) = chat else { return };
        self.ended += 1;
        let Some(held) = self.chats.get_mut(&chat) else { return };
        held.used = self.ended;
        let left = left.unwrap_or(TurnEnd { session: None, remembered: None });
        match held.next.pop_front() {
            Some(ready) => spawn(ready, Some(left), mailbox),
            None => held.left = Some(left),
        }
        self.tidy();
    }

    /// Ends the processes that waited longest when there are too many, and forgets the chats that did.
    fn tidy(&mut self) {
        let idle = |chat: &AcpChat| chat.left.as_ref().is_some_and(|left| left.session.is_some());
        if self.chats.values().filter(|chat| idle(chat)).count() > ACP_IDLE_MAX
            && let Some(oldest) =
                self.chats.values_mut().filter(|chat| idle(chat)).min_by_key(|chat| chat.used)
            && let Some(left) = &mut oldest.left
        {
            end(left.session.take());
        }
        let resting = |chat: &AcpChat| chat.left.as_ref().is_some_and(|left| left.session.is_none());
        if self.chats.len() > ACP_REMEMBERED_MAX {
            let oldest =
                self.chats.iter().filter(|(_, chat)| resting(chat)).min_by_key(|(_, chat)| chat.used);
            if let Some(oldest) = oldest.map(|(chat, _)| chat.clone()) {
                self.chats.remove(&oldest);
            }
        }
    }

    /// A chat is deleted: its agent's process ends, and nothing is remembered of it.
    pub(super) fn forget(&mut self, chat: &ChatId) {
        if self.chats.get(chat).is_some_and(|held| held.left.is_some())
            && let Some(held) = self.chats.remove(chat)
        {
            end(held.left.and_then(|left| left.session));
        }
    }

    /// Ends all processes that wait for a turn, together, and waits for that.
    pub(super) fn close(self) {
        let sessions = self.chats.into_values().filter_map(|chat| chat.left?.session);
        let ends: Vec<_> = sessions.filter_map(|session| end(Some(session))).collect();
        for thread in ends {
            // A thread that panicked has dropped its session as well.
            let _ = thread.join();
        }
    }
}

/// Ends a process on a thread of its own: it is given a moment to end by itself.
fn end(session: Option<acp::AcpSession>) -> Option<std::thread::JoinHandle<()>> {
    let session = session?;
    let thread = std::thread::Builder::new().name("agent-end".to_owned());
    // Without a thread the closure is dropped here and now, and the session with it.
    thread.spawn(move || drop(session)).ok()
}

fn spawn(ready: Ready, left: Option<TurnEnd>, mailbox: &Mailbox) {
    let id = ready.order.turn;
    let own = mailbox.clone();
    let thread =
        std::thread::Builder::new().name(format!("turn {}", ready.order.chat)).stack_size(TURN_STACK_BYTES);
    let spawned = thread.spawn(move || {
        // The reactor must hear of the end whatever happens.
        let left = catch_unwind(AssertUnwindSafe(|| carry_out(ready, left, &own))).unwrap_or_else(|_| {
            tracing::error!("a turn's thread panicked; this is a defect of the server");
            None
        });
        own.send(Message::TurnOver(id, left));
    });
    if let Err(error) = spawned {
        tracing::error!(%error, "the system refused a thread for a turn");
        let message = "the server could not start a thread for this turn; try again later".to_owned();
        mailbox.send(Message::Local(id, LocalInput::Failed("agent_error", message)));
        mailbox.send(Message::TurnOver(id, None));
    }
}

fn carry_out(ready: Ready, left: Option<TurnEnd>, mailbox: &Mailbox) -> Option<TurnEnd> {
    let Ready { order, control, allowance } = ready;
    let (id, own) = (order.turn, mailbox.clone());
    let mut sink = TurnSink::new(
        move |message| {
            let input = match message {
                TurnMessage::Event(event) => {
                    allowance.add(event.len());
                    LocalInput::Event(event)
                }
                TurnMessage::Ask(question) => {
                    allowance.add(question.event.len());
                    LocalInput::Ask(question)
                }
                TurnMessage::Done => LocalInput::Finish(None),
                TurnMessage::Failed { code, message } => LocalInput::Failed(code, message),
            };
            own.send(Message::Local(id, input)) && allowance.wait()
        },
        control,
    );
    match left {
        None => {
            native::run_turn(&order, &mut sink);
            None
        }
        Some(left) => Some(acp::run_turn(&order, left.session, left.remembered, &mut sink)),
    }
}
