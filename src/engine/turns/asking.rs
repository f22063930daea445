//! Questions that an agent asks a person: parked with the run until somebody answers. The answer is in the run before
//! the agent has it, so that no replay opens an answered question again.

use crate::access::Right;
use crate::engine::routes::Refusal;
use crate::engine::timers::Timer;
use crate::engine::{Engine, LocalReply, Output};
use crate::limits::APPROVAL_MS;
use crate::proto::id::{ConnId, LocalId, RunId};
use crate::proto::registry::RunKey;
use crate::proto::turn::{Asked, Decision, Question, QuestionKind};
use crate::wire::{reply, turn};

impl Engine {
    /// A turn's agent asks.
    pub(in crate::engine) fn local_asks(&mut self, id: LocalId, question: Question) {
        self.local_event(id, &question.event);
        let Some(key) = self.local_run(id) else { return };
        let until_ms = self.now.mono_ms + APPROVAL_MS;
        let run = self.registry.run_mut(key);
        let Question { request, kind, .. } = question;
        run.asked.push(Asked { request, kind, decision: None, until_ms });
        let run = run.id;
        self.timers.set(until_ms, Timer::Asked(run));
    }

    pub(in crate::engine) fn respond_requested(&mut self, id: ConnId, body: &[u8]) -> Result<(), Refusal> {
        let turn::Respond { chat, request, decision } = turn::respond(body)?;
        self.permit(id, Right::Respond, &chat)?;
        self.evict();
        let key = self.registry.of_chat(&chat).ok_or_else(unknown_request)?;
        let asked = &self.registry.run(key).asked;
        let index = asked.iter().position(|asked| asked.request == request).ok_or_else(unknown_request)?;
        if let Some(decision) = &asked[index].decision {
            let body = reply::already_answered(&turn::decided(decision));
            self.answer(id, 409, &body);
            return Ok(());
        }
        check(&asked[index].kind, &decision)?;
        let body = reply::answered(&request, &turn::decided(&decision));
        self.decide(key, index, decision, true);
        self.answer(id, 200, &body);
        Ok(())
    }

    /// Records what was decided: first in the run, then for the agent.
    fn decide(&mut self, key: RunKey, index: usize, decision: Decision, speak: bool) {
        let Some(asked) = self.registry.run_mut(key).asked.get_mut(index) else { return };
        asked.decision = Some(decision.clone());
        let request = asked.request.clone();
        let event = turn::question_resolved(&request, &asked.kind, &decision);
        if speak {
            self.append_own(key, &event);
        }
        let run = self.registry.run(key).id;
        if let Some(local) = self.producers.get(&run).and_then(|producer| producer.local) {
            self.output(Output::Local(local, LocalReply::Answered { request, decision }));
        }
    }

    /// Nobody answered in time.
    pub(in crate::engine) fn questions_due(&mut self, run: RunId) {
        let now_ms = self.now.mono_ms;
        let Some(key) = self.registry.of_id(run) else { return };
        self.cancel_questions(key, true, |asked| asked.until_ms <= now_ms);
    }

    /// The run is over for those who could answer. `speak` says whether it still takes the events that say so.
    pub(in crate::engine) fn cancel_all_questions(&mut self, key: RunKey, speak: bool) {
        self.cancel_questions(key, speak, |_| true);
    }

    fn cancel_questions(&mut self, key: RunKey, speak: bool, which: impl Fn(&Asked) -> bool) {
        let asked = &self.registry.run(key).asked;
        let open: Vec<usize> = (0..asked.len())
            .filter(|index| asked[*index].decision.is_none() && which(&asked[*index]))
            .collect();
        for index in open {
            self.decide(key, index, Decision::Cancelled, speak);
        }
    }
}

/// Whether a question of this kind can be answered so.
fn check(kind: &QuestionKind, decision: &Decision) -> Result<(), Refusal> {
    let wrong = match (kind, decision) {
        (QuestionKind::Permission(options), Decision::Selected(option)) if options.contains(option) => {
            return Ok(());
        }
        (QuestionKind::Form, Decision::Accepted(_) | Decision::Declined) => return Ok(()),
        (_, Decision::Cancelled) => return Ok(()),
        (QuestionKind::Permission(options), _) => {
            format!("answer with \"option_id\", one of {}", options.join(", "))
        }
        (QuestionKind::Form, Decision::Selected(_)) => {
            "answer a form with \"action\": accept (with \"content\"), decline or cancel".to_owned()
        }
    };
    Err(Refusal::new(400, "bad_request", wrong))
}

fn unknown_request() -> Refusal {
    Refusal::new(404, "unknown_request", "the chat's run asked no such question")
}
