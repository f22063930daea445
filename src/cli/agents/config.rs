//! The file of `--config`: agents as TOML.
//!
//! ```toml
//! default = "helper"
//!
//! [agents.helper]
//! url = "http://127.0.0.1:8901/"
//! headers = { Authorization = "Bearer …" }
//! timeout = 120                             # seconds of silence
//!
//! [agents.coder]
//! command = ["node", "agent.mjs"]
//! folder = "/srv/work"
//! ```

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use rejoin::turns::{Agent, AgentKind};
use serde::Deserialize;

use super::fault::{AgentsFault, SpecFault};
use super::{millis, spec, url};

/// What a file says.
pub(super) struct Config {
    /// Its agents: the default one first, the others by name.
    pub(super) agents: Vec<Agent>,
    /// Whether it is clear which one is the default.
    pub(super) has_default: bool,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    default: Option<String>,
    #[serde(default)]
    agents: BTreeMap<String, Table>,
}

/// One agent as it is written. Headers may hold secrets, so this is not for logs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    url: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    command: Option<Vec<String>>,
    folder: Option<PathBuf>,
    timeout: Option<NonZeroU64>,
}

impl Config {
    /// Reads a file. An agent that names no timeout gets this one, in seconds.
    pub(super) fn read(file: &Path, timeout: u64) -> Result<Config, AgentsFault> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| AgentsFault::Read { file: file.to_owned(), error })?;
        let tables: Tables = toml::from_str(&text).map_err(|error| malformed(file, &text, &error))?;
        let mut agents = Vec::new();
        for (name, table) in tables.agents {
            let agent = agent(&name, table, timeout);
            agents.push(agent.map_err(|fault| AgentsFault::Table { file: file.to_owned(), name, fault })?);
        }
        let has_default = tables.default.is_some() || agents.len() <= 1;
        if let Some(default) = tables.default {
            match agents.iter().position(|agent| agent.name == default) {
                Some(place) => agents[..=place].rotate_right(1),
                None => return Err(AgentsFault::UnknownDefault { file: file.to_owned(), name: default }),
            }
        }
        Ok(Config { agents, has_default })
    }
}

fn agent(name: &str, table: Table, timeout: u64) -> Result<Agent, SpecFault> {
    spec::check_name(name)?;
    let timeout = table.timeout.map_or(timeout, NonZeroU64::get);
    let kind = match (table.url, table.command) {
        (Some(_), Some(_)) => return Err(SpecFault::UrlAndCommand),
        (None, None) => return Err(SpecFault::NeitherUrlNorCommand),
        (Some(_), None) if table.folder.is_some() => return Err(SpecFault::FolderOfUrl),
        (None, Some(_)) if table.headers.is_some() => return Err(SpecFault::HeadersOfCommand),
        (Some(url), None) => native(url, table.headers.unwrap_or_default())?,
        (None, Some(command)) => {
            spec::check_command(&command)?;
            AgentKind::Acp { command, folder: table.folder }
        }
    };
    Ok(Agent { name: name.to_owned(), kind, silence_ms: millis(timeout) })
}

fn native(url: String, headers: BTreeMap<String, String>) -> Result<AgentKind, SpecFault> {
    url::check(&url).map_err(SpecFault::Url)?;
    for (name, value) in &headers {
        // The characters of RFC 9110, sections 5.1 and 5.5, without those that no client can be relied on to send.
        let named = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(named) {
            return Err(SpecFault::HeaderName { name: name.clone() });
        }
        if !value.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
            return Err(SpecFault::HeaderValue { name: name.clone() });
        }
    }
    Ok(AgentKind::Native { url, headers: headers.into_iter().collect() })
}

/// Tells where the file is wrong. The line itself is not shown: it may hold a secret.
fn malformed(file: &Path, text: &str, error: &toml::de::Error) -> AgentsFault {
    let before = error.span().and_then(|span| text.get(..span.start));
    AgentsFault::Toml {
        file: file.to_owned(),
        line: before.map(|before| before.matches('\n').count() + 1),
        message: error.message().to_owned(),
    }
}
