//! The agents that an operator names, on the command line and in a file.
//!
//! What is wrong with a name, a URL or a command is said before the server starts. Whether an agent is there is not
//! looked at: it may come later.

mod config;
mod fault;
mod spec;
#[cfg(test)]
mod tests;
mod url;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use rejoin::turns::Agent;

use config::Config;
pub(crate) use fault::AgentsFault;
use spec::AgentSpec;

/// Seconds of silence after which an agent is given up: a model may think for minutes before it says a word.
const TIMEOUT_S: u64 = 300;

/// What the first agent on the command line is called if it has no name.
const FIRST_NAME: &str = "default";

/// The options that name agents.
#[derive(Args, Debug)]
pub(crate) struct AgentArgs {
    /// Agent to answer turns: http(s)://… speaks AG-UI, acp:COMMAND speaks ACP over stdio; NAME= in front names it
    /// (can be given more than once, the first is the default)
    #[arg(long = "agent", value_name = "SPEC", value_parser = AgentSpec::parse)]
    specs: Vec<AgentSpec>,

    /// TOML file that names agents
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Seconds of silence after which an agent is given up
    #[arg(long, default_value_t = TIMEOUT_S, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    agent_timeout: u64,
}

impl AgentArgs {
    /// All agents, the default one first, and none if none is named. The command line stands above the file: its first
    /// agent is the default one, whatever the file says.
    pub(crate) fn agents(&self) -> Result<Vec<Arc<Agent>>, AgentsFault> {
        let mut agents = self.on_command_line()?;
        if let Some(file) = &self.config {
            let config = Config::read(file, self.agent_timeout)?;
            if agents.is_empty() && !config.has_default {
                return Err(AgentsFault::NoDefault { file: file.clone() });
            }
            agents.extend(config.agents);
        }
        for (index, agent) in agents.iter().enumerate() {
            if agents.iter().take(index).any(|other| other.name == agent.name) {
                return Err(AgentsFault::Twice { name: agent.name.clone() });
            }
        }
        Ok(agents.into_iter().map(Arc::new).collect())
    }

    fn on_command_line(&self) -> Result<Vec<Agent>, AgentsFault> {
        let agent = |(index, spec): (usize, &AgentSpec)| {
            let name = match &spec.name {
                Some(name) => name.clone(),
                None if index == 0 => FIRST_NAME.to_owned(),
                None => return Err(AgentsFault::Unnamed { position: index + 1 }),
            };
            Ok(Agent { name, kind: spec.kind.clone(), silence_ms: millis(self.agent_timeout) })
        };
        self.specs.iter().enumerate().map(agent).collect()
    }
}

fn millis(seconds: u64) -> u64 {
    seconds.saturating_mul(1000)
}
