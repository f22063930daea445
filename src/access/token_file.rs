//! The token file: a line per secret or key, so that it can be written with `echo` and read by a person.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::Tokens;
use super::jwt::Key;

/// Characters of a secret, at least: about 95 bits if it is random base64.
const SECRET_CHARS_MIN: usize = 16;

/// Bytes of a secret for HS256, at least (RFC 7518, section 3.2).
const HS256_BYTES_MIN: usize = 32;

/// What stands before the 32 bytes of an Ed25519 public key in DER (RFC 8410).
const ED25519_DER: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// A line that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFileFault {
    /// Its number, from 1; 0: the file has no line that says anything.
    pub line: usize,
    what: &'static str,
}

impl fmt::Display for TokenFileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

impl std::error::Error for TokenFileFault {}

pub(super) fn parse(text: &str) -> Result<Tokens, TokenFileFault> {
    let mut tokens = Tokens::default();
    let mut any = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        take(&mut tokens, line).map_err(|what| TokenFileFault { line: index + 1, what })?;
        any = true;
    }
    let what = "the token file is empty: nobody could do anything; add a line such as 'admin SECRET'";
    if any { Ok(tokens) } else { Err(TokenFileFault { line: 0, what }) }
}

fn take(tokens: &mut Tokens, line: &str) -> Result<(), &'static str> {
    let mut words = line.split_ascii_whitespace();
    let (Some(kind), Some(value), None) = (words.next(), words.next(), words.next()) else {
        return Err("write 'admin', 'producer', 'hs256' or 'ed25519', a space, and its secret or key");
    };
    match kind {
        "admin" => tokens.admins.push(secret(value)?),
        "producer" => tokens.producers.push(secret(value)?),
        "hs256" if value.len() < HS256_BYTES_MIN => return Err("a secret for HS256 needs 32 bytes at least"),
        "hs256" => tokens.keys.push(Key::hs256(value).ok_or("this can't be a secret for HS256")?),
        "ed25519" => tokens.keys.push(Key::ed25519(&public_key(value)?)),
        _ => return Err("the first word must be 'admin', 'producer', 'hs256' or 'ed25519'"),
    }
    Ok(())
}

/// A secret can be sent as it is (RFC 6750, section 2.1), and is not short.
fn secret(value: &str) -> Result<String, &'static str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    if value.len() < SECRET_CHARS_MIN {
        return Err("a secret needs 16 characters at least; `openssl rand -hex 32` makes a good one");
    }
    if !value.bytes().all(fits) {
        return Err("a secret has letters, digits and -._~+/= only; `openssl rand -hex 32` makes a good one");
    }
    Ok(value.to_owned())
}

fn public_key(value: &str) -> Result<[u8; 32], &'static str> {
    let wrong =
        "an Ed25519 key is the base64 between the lines of its public PEM file, or the \"x\" of its JWK";
    let bytes = base64(value).ok_or(wrong)?;
    let key = bytes.strip_prefix(&ED25519_DER).unwrap_or(&bytes);
    key.try_into().map_err(|_| wrong)
}

/// Base64 in one of its two spellings.
pub(super) fn base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).or_else(|_| URL_SAFE_NO_PAD.decode(text)).ok()
}
