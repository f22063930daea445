//! One agent process with the conversation that is open in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use crossbeam_channel::Receiver;
use serde::Serialize;

use super::failure::Failure;
use super::process::{Farewell, Output, Process};
use super::rpc;
use crate::turns::{Agent, AgentKind};

/// One agent process for one chat, kept between its turns. Dropping it ends the process, with all it has started; that
/// can take 200 ms, so it is nothing for a thread that others wait for.
#[derive(Debug)]
pub struct AcpSession {
    /// Whose process it is.
    pub(super) agent: Arc<Agent>,
    /// Where it works; always absolute.
    pub(super) folder: PathBuf,
    /// The conversation; none until the agent has opened it.
    pub(super) opened: Option<Opened>,
    process: Process,
    /// Ids are never used twice, so that a late answer can't be taken for another.
    pub(super) last_request: u64,
}

/// A conversation that is open in an agent.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) id: acp::SessionId,
    /// What a prompt may hold.
    pub(super) can: acp::PromptCapabilities,
}

impl AcpSession {
    /// Starts an agent's process.
    pub(super) fn start(agent: &Arc<Agent>) -> Result<AcpSession, Failure> {
        let AgentKind::Acp { command, folder } = &agent.kind else { return Err(Failure::NoCommand) };
        let Some((program, arguments)) = command.split_first() else { return Err(Failure::NoCommand) };
        let not_started = |error| Failure::NotStarted { program: program.clone(), error };
        let folder = std::path::absolute(folder.as_deref().unwrap_or(Path::new("."))).map_err(not_started)?;
        if !folder.is_dir() {
            return Err(Failure::NoFolder(folder));
        }
        let process =
            Process::start(&agent.name, OsStr::new(program), arguments, &folder).map_err(not_started)?;
        tracing::info!(agent = agent.name, pid = process.pid(), "started an ACP agent");
        Ok(AcpSession { agent: agent.clone(), folder, opened: None, process, last_request: 0 })
    }

    /// Whether the process runs.
    pub fn is_alive(&self) -> bool {
        self.process.is_alive()
    }

    /// The process's id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The agent's id of the conversation, once it is open.
    pub fn last_session_id(&self) -> Option<&str> {
        self.opened.as_ref().map(|opened| &*opened.id.0)
    }

    /// Sends a request; its id.
    pub(super) fn request(&mut self, method: &str, params: &impl Serialize) -> u64 {
        self.last_request += 1;
        self.send(rpc::request(self.last_request, method, params));
        self.last_request
    }

    /// Sends a line.
    pub(super) fn send(&self, line: Vec<u8>) {
        self.process.send(line);
    }

    /// What the agent writes.
    pub(super) fn output(&self) -> &Receiver<Output> {
        &self.process.stdout
    }

    /// After the end of its output: how the agent ended.
    pub(super) fn farewell(&mut self) -> Farewell {
        self.process.farewell()
    }
}
