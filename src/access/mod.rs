//! Access: who may do what in which chat.
//!
//! Pure: a token and the time go in, a [`Grant`] or the reason against it comes out. It knows no request and no
//! connection. Tokens come in two kinds: secrets out of a file, for producers and administration, and JWTs (RFC 7519),
//! which name chats, rights and an expiry.

mod crypto;
mod jwt;
mod token_file;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::proto::id::ChatId;

pub use jwt::{Claims, MintFault, mint_with_ed25519};
pub use token_file::TokenFileFault;

/// What may be done in a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// Follow its runs.
    Observe,
    /// Ask agents, and stop them.
    Send,
    /// Answer agents' questions.
    Respond,
    /// Write runs.
    Produce,
    /// Read what was saved.
    History,
}

impl Right {
    /// All of them.
    pub const ALL: [Right; 5] = [Right::Observe, Right::Send, Right::Respond, Right::Produce, Right::History];

    /// Its name in tokens.
    pub fn name(self) -> &'static str {
        match self {
            Right::Observe => "observe",
            Right::Send => "send",
            Right::Respond => "respond",
            Right::Produce => "produce",
            Right::History => "history",
        }
    }

    /// The right of this name.
    pub fn parse(name: &str) -> Option<Right> {
        Right::ALL.into_iter().find(|right| right.name() == name)
    }
}

/// What whoever made a request may do.
#[derive(Clone, Debug)]
pub enum Grant {
    /// Everything.
    All,
    /// Write runs of all chats.
    Producer,
    /// What a JWT says.
    Holder(Arc<Holder>),
}

/// What a JWT says.
#[derive(Debug)]
pub struct Holder {
    chats: Vec<String>,
    prefixes: Vec<String>,
    rights: Vec<Right>,
    /// The first token's second at which it is no longer valid, in milliseconds since 1970.
    expires_wall_ms: u64,
    /// Tells tokens apart.
    id: TokenId,
}

/// The beginning of a token's signature: enough to tell tokens apart.
pub type TokenId = [u8; 16];

impl Grant {
    /// Whether it gives this right in some chat.
    pub fn has(&self, right: Right) -> bool {
        match self {
            Grant::All => true,
            Grant::Producer => right == Right::Produce,
            Grant::Holder(holder) => holder.rights.contains(&right),
        }
    }

    /// Whether it gives this right in this chat.
    pub fn covers(&self, right: Right, chat: &ChatId) -> bool {
        self.has(right) && self.holder().is_none_or(|holder| holder.names(chat.as_str()))
    }

    /// Whether it gives this right in all chats.
    pub fn covers_all_chats(&self, right: Right) -> bool {
        let all = |holder: &Holder| holder.prefixes.iter().any(String::is_empty);
        self.has(right) && self.holder().is_none_or(all)
    }

    /// Whether it lets administer the server.
    pub fn administers(&self) -> bool {
        matches!(self, Grant::All)
    }

    /// What tells the token apart, if it is a JWT.
    pub fn token(&self) -> Option<TokenId> {
        self.holder().map(|holder| holder.id)
    }

    /// When it ends, in milliseconds since 1970.
    pub fn expires_wall_ms(&self) -> Option<u64> {
        self.holder().map(|holder| holder.expires_wall_ms)
    }

    fn holder(&self) -> Option<&Holder> {
        match self {
            Grant::All | Grant::Producer => None,
            Grant::Holder(holder) => Some(holder),
        }
    }
}

impl Holder {
    fn names(&self, chat: &str) -> bool {
        self.chats.iter().any(|named| named == chat)
            || self.prefixes.iter().any(|prefix| chat.starts_with(prefix.as_str()))
    }
}

/// Why a request is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// It has no token.
    Missing,
    /// Its token is not good: why.
    Invalid(&'static str),
}

/// The secrets and keys of a server. Without any, everybody may do everything.
#[derive(Clone, Default)]
pub struct Access(Option<Arc<Tokens>>);

/// What the lines of a token file say.
#[derive(Default)]
struct Tokens {
    /// Secrets of producers.
    producers: Vec<String>,
    /// Secrets of administrators.
    admins: Vec<String>,
    keys: Vec<jwt::Key>,
}

/// Secrets are not for logs.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_open() { "Access(open)" } else { "Access(by token)" })
    }
}

impl Access {
    /// Reads the text of a token file.
    pub fn parse(text: &str) -> Result<Access, TokenFileFault> {
        crypto::install();
        token_file::parse(text).map(|tokens| Access(Some(Arc::new(tokens))))
    }

    /// Whether everybody may do everything.
    pub fn is_open(&self) -> bool {
        self.0.is_none()
    }

    /// What the bearer of this token may do at this time, in milliseconds since 1970.
    pub fn grant(&self, bearer: Option<&str>, wall_ms: u64) -> Result<Grant, Denied> {
        let Some(tokens) = &self.0 else { return Ok(Grant::All) };
        let bearer = bearer.ok_or(Denied::Missing)?;
        if is_among(&tokens.admins, bearer) {
            return Ok(Grant::All);
        }
        if is_among(&tokens.producers, bearer) {
            return Ok(Grant::Producer);
        }
        jwt::verify(&tokens.keys, bearer, wall_ms).map(|holder| Grant::Holder(Arc::new(holder)))
    }

    /// What the bearer of a JWT may do: a secret is no JWT.
    pub fn grant_jwt(&self, bearer: &str, wall_ms: u64) -> Result<Grant, Denied> {
        let Some(tokens) = &self.0 else { return Ok(Grant::All) };
        jwt::verify(&tokens.keys, bearer, wall_ms).map(|holder| Grant::Holder(Arc::new(holder)))
    }

    /// A token signed with the first secret for HS256.
    pub fn mint(&self, claims: &Claims) -> Result<String, MintFault> {
        let keys = self.0.iter().flat_map(|tokens| &tokens.keys);
        jwt::mint(keys, claims)
    }
}

/// Compares with all of them, each in a time that does not depend on where they differ.
fn is_among(secrets: &[String], bearer: &str) -> bool {
    let equal = |secret: &String| secret.as_bytes().ct_eq(bearer.as_bytes());
    secrets.iter().fold(subtle::Choice::from(0), |found, secret| found | equal(secret)).into()
}

#[cfg(test)]
mod tests;
