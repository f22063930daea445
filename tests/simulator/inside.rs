//! What goes on inside the server's process without a socket: agents of turns, and producers that are a part of it.

use rejoin::engine::{Input, LocalInput, LocalReply};
use rejoin::proto::id::LocalId;

use crate::locals::LocalProducer;
use crate::world::World;

impl World {
    /// Some agent goes on.
    pub fn agent_step(&mut self) {
        if !self.agents.is_empty() {
            let index = self.rng.below(self.agents.len());
            self.step_agent(index);
        }
    }

    /// Every agent goes on.
    pub fn agents_step(&mut self) {
        for index in (0..self.agents.len()).rev() {
            self.step_agent(index);
        }
    }

    fn step_agent(&mut self, index: usize) {
        let agent = &mut self.agents[index];
        let Some(input) = agent.step(&mut self.rng, self.calm) else { return };
        let turn = agent.turn;
        if matches!(input, LocalInput::Gone) {
            let agent = self.agents.swap_remove(index);
            self.spoken.push((agent.run, agent.plan, 0));
        }
        self.note(|| format!("agent {turn:?} {input:?}").chars().take(200).collect());
        self.input(Input::Local(turn, input));
    }

    /// A producer in the process begins.
    pub fn add_local(&mut self, chat: String) {
        self.locals_begun += 1;
        let id = LocalId(self.locals_begun);
        self.locals.push(LocalProducer::new(id, &mut self.rng, &self.swarm, chat));
    }

    /// Some producer in the process goes on.
    pub fn local_step(&mut self) {
        if !self.locals.is_empty() {
            let index = self.rng.below(self.locals.len());
            self.step_local(index);
        }
    }

    /// Every producer in the process goes on.
    pub fn locals_step(&mut self) {
        for index in (0..self.locals.len()).rev() {
            self.step_local(index);
        }
    }

    fn step_local(&mut self, index: usize) {
        let Some(input) = self.locals[index].step() else { return };
        let id = self.locals[index].id;
        if matches!(input, LocalInput::Gone) {
            let local = self.locals.swap_remove(index);
            self.spoken.extend(local.run.map(|run| (run, local.plan, local.acked)));
        }
        self.note(|| format!("local {id:?} {input:?}").chars().take(200).collect());
        self.input(Input::Local(id, input));
    }

    /// What the engine says to one of them.
    pub fn told(&mut self, id: LocalId, reply: &LocalReply) {
        if let Some(local) = self.locals.iter_mut().find(|local| local.id == id) {
            return local.told(reply, &mut self.checker);
        }
        let Some(agent) = self.agents.iter_mut().find(|agent| agent.turn == id) else { return };
        agent.told(reply);
        if let LocalReply::Answered { .. } = reply {
            self.checker.answered(&agent.run);
        }
    }
}
