//! An agent in one word of the command line: `[NAME=]http://…`, `[NAME=]https://…` or `[NAME=]acp:COMMAND ARGS`.

use rejoin::turns::AgentKind;

use super::fault::SpecFault;
use super::url;

/// An agent as the command line names it.
#[derive(Clone, Debug)]
pub(super) struct AgentSpec {
    pub(super) name: Option<String>,
    pub(super) kind: AgentKind,
}

impl AgentSpec {
    pub(super) fn parse(text: &str) -> Result<AgentSpec, SpecFault> {
        // A URL and a command may hold equals signs themselves.
        if let Some(kind) = kind(text) {
            return Ok(AgentSpec { name: None, kind: kind? });
        }
        let (name, behind) = text.split_once('=').ok_or(SpecFault::Kind)?;
        let kind = kind(behind).ok_or(SpecFault::Kind)??;
        check_name(name)?;
        Ok(AgentSpec { name: Some(name.to_owned()), kind })
    }
}

/// What can be an agent's name: it goes into requests, tables and logs without quotes.
pub(super) fn check_name(name: &str) -> Result<(), SpecFault> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(fits) {
        return Err(SpecFault::Name { name: name.to_owned() });
    }
    Ok(())
}

/// The kind of agent that a text without a name means, if it means one at all.
fn kind(text: &str) -> Option<Result<AgentKind, SpecFault>> {
    match text.strip_prefix("acp:") {
        Some(command) => Some(acp(command)),
        None => url::has_scheme(text).then(|| native(text)),
    }
}

fn acp(command: &str) -> Result<AgentKind, SpecFault> {
    let command = shell_words::split(command).map_err(|_| SpecFault::Quote)?;
    check_command(&command)?;
    Ok(AgentKind::Acp { command, folder: None })
}

fn native(url: &str) -> Result<AgentKind, SpecFault> {
    url::check(url).map_err(SpecFault::Url)?;
    Ok(AgentKind::Native { url: url.to_owned(), headers: Vec::new() })
}

/// Whether there is a program in a command.
pub(super) fn check_command(command: &[String]) -> Result<(), SpecFault> {
    match command.first() {
        Some(program) if !program.is_empty() => Ok(()),
        Some(_) | None => Err(SpecFault::NoProgram),
    }
}
