//! Why a turn with an ACP agent went wrong, in words for the person who reads the chat, or runs the agent.

use std::io;
use std::path::PathBuf;

use agent_client_protocol_schema::v1 as acp;

use super::process::{Farewell, LINE_BYTES_MAX};
use crate::turns::TurnMessage;

/// Characters of an agent's stderr that a person is shown.
const LAST_WORDS_CHARS_MAX: usize = 500;

/// What went wrong.
#[derive(Debug)]
pub(super) enum Failure {
    /// The agent's settings name no program.
    NoCommand,
    /// The folder it should work in is not there.
    NoFolder(PathBuf),
    /// Its program could not be started.
    NotStarted { program: String, error: io::Error },
    /// It speaks another version of ACP.
    Version(u16),
    /// It wants somebody to log in.
    LoggedOut(acp::Error),
    /// It refused what it was asked.
    Refused { method: &'static str, error: acp::Error },
    /// Its answer was not ACP.
    BadAnswer { method: &'static str, fault: String },
    /// It ended before it answered.
    Died(Farewell),
    /// It said nothing for this long, in milliseconds.
    Silent(u64),
    /// It wrote a line that is too long.
    LineTooLong,
}

impl Failure {
    /// What the error of a request means.
    pub(super) fn refused(method: &'static str, error: acp::Error) -> Failure {
        match error.code {
            acp::ErrorCode::AuthRequired => Failure::LoggedOut(error),
            _ => Failure::Refused { method, error },
        }
    }

    /// The agent is alive and knows its session: it can go on with the next turn.
    pub(super) fn spares_session(&self) -> bool {
        matches!(self, Failure::Refused { .. } | Failure::BadAnswer { .. }) && !self.forgets_session()
    }

    /// The agent does not know the session that it was asked to go on with.
    pub(super) fn forgets_session(&self) -> bool {
        matches!(self, Failure::Refused { error, .. } if error.code == acp::ErrorCode::ResourceNotFound)
    }

    /// The turn's last message.
    pub(super) fn message(self, agent: &str) -> TurnMessage {
        let code = if matches!(self, Failure::Silent(_)) { "timeout" } else { "agent_error" };
        TurnMessage::Failed { code, message: self.words(agent) }
    }

    fn words(self, agent: &str) -> String {
        match self {
            Failure::NoCommand => {
                format!("The agent {agent} has no command: name the program that speaks ACP in its settings.")
            }
            Failure::NoFolder(folder) => format!(
                "The folder {} of the agent {agent} does not exist: create it, or change the agent's settings.",
                folder.display()
            ),
            Failure::NotStarted { program, error } => not_started(agent, &program, &error),
            Failure::Version(version) => format!(
                "The agent {agent} speaks version {version} of ACP, not version 1: install a version of it that does."
            ),
            Failure::LoggedOut(error) => format!(
                "The agent {agent} is not logged in: log it in where the server runs, with its own command for it, \
                 then try again. It said: {}",
                said(&error)
            ),
            Failure::Refused { method, error } => format!(
                "The agent {agent} answered {method} with an error: {} (code {}). Its log may tell more.",
                said(&error),
                i32::from(error.code)
            ),
            Failure::BadAnswer { method, fault } => format!(
                "The agent {agent} answered {method} with something that is not ACP: {fault}. Check that its command \
                 starts an ACP agent of version 1."
            ),
            Failure::Died(farewell) => died(agent, farewell),
            Failure::Silent(ms) => format!(
                "The agent {agent} said nothing for {} s and was stopped. Try again; if its work takes that long, \
                 allow it more time in its settings.",
                ms.div_ceil(1000)
            ),
            Failure::LineTooLong => format!(
                "The agent {agent} wrote a line of more than {} MiB and was stopped: it should send large output in \
                 pieces.",
                LINE_BYTES_MAX >> 20
            ),
        }
    }
}

fn not_started(agent: &str, program: &str, error: &io::Error) -> String {
    let cause = match error.kind() {
        io::ErrorKind::NotFound => {
            "it was not found; install it, or give its full path in the agent's settings".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "it is not executable; check its permissions and the agent's settings".to_owned()
        }
        _ => format!("{error}; check the agent's settings"),
    };
    format!("The agent {agent} could not be started with the command {program}: {cause}.")
}

fn died(agent: &str, Farewell { status, last_words }: Farewell) -> String {
    let how = match status {
        Some(status) => format!("ended before it had answered ({status})"),
        None => "closed its output before it had answered".to_owned(),
    };
    match last_words {
        Some(words) => {
            let words: String = words.chars().take(LAST_WORDS_CHARS_MAX).collect();
            format!("The agent {agent} {how}. Its last words: {words}")
        }
        None => format!("The agent {agent} {how}, without a word on why. Try its command in a terminal."),
    }
}

/// The agent's message, with the details that some put beside a message that says nothing.
fn said(error: &acp::Error) -> String {
    let details = error.data.as_ref().and_then(|data| {
        let text = data.as_str().or_else(|| data.get("details").and_then(|details| details.as_str()));
        text.filter(|text| !text.is_empty())
    });
    match details {
        Some(details) => format!("{}: {details}", error.message),
        None => error.message.clone(),
    }
}
