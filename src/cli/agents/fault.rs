//! What is wrong with the agents that an operator names, and what to change.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::FIRST_NAME;
use super::url::UrlFault;

/// Why there is no list of agents.
#[derive(Debug)]
pub(crate) enum AgentsFault {
    /// An `--agent` behind the first one has no name.
    Unnamed {
        /// Which one, counted from 1.
        position: usize,
    },
    /// Two agents have one name.
    Twice { name: String },
    /// The file can't be read.
    Read { file: PathBuf, error: io::Error },
    /// It is not TOML, or has other keys or values than it may have.
    Toml { file: PathBuf, line: Option<usize>, message: String },
    /// One of its agents is at fault.
    Table { file: PathBuf, name: String, fault: SpecFault },
    /// Its default agent is none of its agents.
    UnknownDefault { file: PathBuf, name: String },
    /// Nothing tells which of its agents is the default one.
    NoDefault { file: PathBuf },
}

/// What is wrong with one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SpecFault {
    /// The text is neither a URL nor a command.
    Kind,
    /// The name has characters that no name may have, or none at all.
    Name { name: String },
    /// The URL is none that turns can be posted to.
    Url(UrlFault),
    /// A quote in the command is not closed.
    Quote,
    /// The command names no program.
    NoProgram,
    /// There are two ways to speak to the agent.
    UrlAndCommand,
    /// There is no way to speak to the agent.
    NeitherUrlNorCommand,
    /// A folder, for an agent that works elsewhere.
    FolderOfUrl,
    /// Headers, for an agent that gets no requests.
    HeadersOfCommand,
    /// No request can have a header of that name.
    HeaderName { name: String },
    /// No request can have this header's value.
    HeaderValue { name: String },
}

impl fmt::Display for AgentsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentsFault::Unnamed { position } => write!(
                f,
                "--agent number {position} has no name, which only the first may lack (it is called '{FIRST_NAME}'): \
                 write NAME= in front of it"
            ),
            AgentsFault::Twice { name } => {
                write!(f, "two agents are called '{name}': give one of them another name")
            }
            AgentsFault::Read { file, error } => {
                write!(f, "can't read {}: {error}; check the path behind --config", file.display())
            }
            AgentsFault::Toml { file, line: Some(line), message } => {
                write!(f, "{}, line {line}: {message}", file.display())
            }
            AgentsFault::Toml { file, line: None, message } => write!(f, "{}: {message}", file.display()),
            AgentsFault::Table { file, name, fault } => {
                write!(f, "{}, agent '{name}': {fault}", file.display())
            }
            AgentsFault::UnknownDefault { file, name } => write!(
                f,
                "{}: the default agent '{name}' is not in the file: add [agents.{name}], or name one of its agents",
                file.display()
            ),
            AgentsFault::NoDefault { file } => write!(
                f,
                "{} has several agents: say which one is the default, with default = \"NAME\" in its first line",
                file.display()
            ),
        }
    }
}

impl fmt::Display for SpecFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SpecFault::Kind => {
                "an agent is http://…, https://… or acp:COMMAND, with NAME= in front if it is to have a name"
            }
            SpecFault::Name { name } => {
                return write!(
                    f,
                    "'{name}' can't be an agent's name: use letters (a to z), digits, '-', '_' and '.'"
                );
            }
            SpecFault::Url(fault) => return fault.fmt(f),
            SpecFault::Quote => "a quote in the command is not closed: close it, or put a backslash before it",
            SpecFault::NoProgram => "the command is empty: name the program that speaks ACP",
            SpecFault::UrlAndCommand => "it has both a url and a command: remove one of them",
            SpecFault::NeitherUrlNorCommand => {
                "it has neither a url nor a command: add url for AG-UI over HTTP, or command for ACP over stdio"
            }
            SpecFault::FolderOfUrl => "folder is only for an agent with a command: remove it",
            SpecFault::HeadersOfCommand => "headers are only for an agent with a url: remove them",
            SpecFault::HeaderName { name } => {
                return write!(f, "'{name}' can't be a header's name: use letters, digits and '-'");
            }
            SpecFault::HeaderValue { name } => {
                return write!(f, "the header {name} may only hold printable ASCII characters");
            }
        })
    }
}

impl std::error::Error for AgentsFault {}
impl std::error::Error for SpecFault {}
