//! `rejoin token`: makes a JWT for whoever is to use a few chats for a while.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;

use rejoin::access::{Claims, Right, mint_with_ed25519};
use rejoin::proto::id::ChatId;

use super::access;

/// What the token is to say.
#[derive(Args, Debug)]
#[command(after_help = "For a page that reads one chat along:\n  \
    rejoin token --token-file tokens --chat my-chat --right observe --right history")]
pub(crate) struct TokenArgs {
    /// The server's token file, whose first hs256 line signs
    #[arg(long, value_name = "FILE", required_unless_present = "ed25519_key")]
    token_file: Option<PathBuf>,

    /// Sign with this private key instead (PEM); the server has the public one
    #[arg(long, value_name = "FILE", conflicts_with = "token_file")]
    ed25519_key: Option<PathBuf>,

    /// A chat (can be given more than once)
    #[arg(long = "chat", value_name = "CHAT", value_parser = super::chat_id)]
    chats: Vec<ChatId>,

    /// All chats whose ids begin so (can be given more than once); '' for all
    #[arg(long = "chat-prefix", value_name = "PREFIX")]
    chat_prefixes: Vec<String>,

    /// What may be done: observe, send, respond, produce or history (can be given more than once)
    #[arg(long = "right", value_name = "RIGHT", required = true, value_parser = right)]
    rights: Vec<Right>,

    /// Seconds that it is valid
    #[arg(long, default_value_t = 3_600, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    valid: u32,
}

fn right(name: &str) -> Result<Right, String> {
    Right::parse(name).ok_or_else(|| "a right is observe, send, respond, produce or history".to_owned())
}

/// Prints a token.
pub(crate) fn token(args: &TokenArgs) -> ExitCode {
    if args.chats.is_empty() && args.chat_prefixes.is_empty() {
        return super::fail(&"name chats with --chat or --chat-prefix");
    }
    match mint(args) {
        Ok(token) => {
            super::say(&token);
            ExitCode::SUCCESS
        }
        Err(message) => super::fail(&message),
    }
}

fn mint(args: &TokenArgs) -> Result<String, String> {
    let claims = Claims {
        exp: (now() + Duration::from_secs(args.valid.into())).as_secs_f64().floor(),
        chats: args.chats.iter().map(|chat| chat.as_str().to_owned()).collect(),
        chat_prefixes: args.chat_prefixes.clone(),
        rights: args.rights.clone(),
        ..Claims::default()
    };
    match (&args.token_file, &args.ed25519_key) {
        (Some(file), _) => {
            let access = access::read(file).map_err(|fault| fault.to_string())?;
            access.mint(&claims).map_err(|fault| fault.to_string())
        }
        (None, Some(file)) => {
            let pem = std::fs::read_to_string(file)
                .map_err(|error| format!("can't read {}: {error}", file.display()))?;
            mint_with_ed25519(&pem, &claims).map_err(|fault| fault.to_string())
        }
        (None, None) => Err("give --token-file or --ed25519-key".to_owned()),
    }
}

/// Since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "a token ends at a time of day; nothing of the server calls it"
)]
fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
