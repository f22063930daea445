//! JSON Web Tokens: what their claims have to say, and how they are verified and made.

use std::fmt;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use super::{Denied, Holder, Right, TokenId, crypto};
use crate::limits::{TOKEN_BYTES_MAX, TOKEN_SKEW_MS};

/// What a token for somebody else would name instead.
const AUDIENCE: &str = "rejoin";

/// A key that tokens are verified with.
pub(super) struct Key {
    algorithm: Algorithm,
    decoding: DecodingKey,
    /// If it can sign, too.
    encoding: Option<EncodingKey>,
}

/// The claims of a token.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Claims {
    /// When it ends, in seconds since 1970.
    pub exp: f64,
    /// From when on it is valid, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<f64>,
    /// Whom it is for; if there is any, `rejoin` has to be among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aud: Option<Audience>,
    /// Chats by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chats: Vec<String>,
    /// Chats by what their ids begin with; an empty one names all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chat_prefixes: Vec<String>,
    /// What may be done in them.
    pub rights: Vec<Right>,
}

/// The `aud` of a token.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    /// One name.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl Audience {
    fn names(&self, name: &str) -> bool {
        match self {
            Audience::One(one) => one == name,
            Audience::Many(many) => many.iter().any(|one| one == name),
        }
    }
}

impl Key {
    /// A secret that signs and verifies.
    pub(super) fn hs256(secret: &str) -> Option<Key> {
        Some(Key {
            algorithm: Algorithm::HS256,
            decoding: DecodingKey::from_secret(secret.as_bytes()).ok()?,
            encoding: EncodingKey::from_secret(secret.as_bytes()).ok(),
        })
    }

    /// A public key of 32 bytes.
    pub(super) fn ed25519(public: &[u8; 32]) -> Key {
        Key { algorithm: Algorithm::EdDSA, decoding: DecodingKey::from_ed_der(public), encoding: None }
    }
}

/// Reads a token that must be good now. Only keys of its algorithm are tried, so a public key is never taken for a secret.
pub(super) fn verify(keys: &[Key], token: &str, wall_ms: u64) -> Result<Holder, Denied> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(Denied::Invalid("the token is too long"));
    }
    let unknown = Denied::Invalid("the token is neither one of this server's secrets nor a JWT");
    let algorithm = jsonwebtoken::decode_header(token).map_err(|_| unknown)?.alg;
    let mut fault = "the token is signed with an algorithm, or a key, that this server does not take";
    for key in keys.iter().filter(|key| key.algorithm == algorithm) {
        match jsonwebtoken::decode::<Claims>(token, &key.decoding, &signature_only(algorithm)) {
            Ok(data) => return holder(data.claims, token, wall_ms).map_err(Denied::Invalid),
            Err(error) if matches!(error.kind(), ErrorKind::Json(_)) => {
                fault = "the token's claims must be \"exp\" (a number), \"rights\" (of observe, send, respond, produce, \
                         history), \"chats\" and \"chat_prefixes\" (lists of strings)";
            }
            Err(_) => {}
        }
    }
    Err(Denied::Invalid(fault))
}

/// Times and audience are looked at here, with the engine's clock.
fn signature_only(algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation
}

fn holder(claims: Claims, token: &str, wall_ms: u64) -> Result<Holder, &'static str> {
    if !claims.aud.is_none_or(|audience| audience.names(AUDIENCE)) {
        return Err("the token is for somebody else: its \"aud\" does not name rejoin");
    }
    let expires_wall_ms = millis(claims.exp).ok_or("the token's \"exp\" is no time")?;
    if expires_wall_ms <= wall_ms {
        return Err("the token has expired");
    }
    if let Some(from) = claims.nbf
        && millis(from).is_none_or(|from| from > wall_ms.saturating_add(TOKEN_SKEW_MS))
    {
        return Err("the token is not valid yet");
    }
    let signature = token.rsplit('.').next().and_then(|text| text.as_bytes().first_chunk());
    let id: TokenId = *signature.ok_or("the token's signature is too short")?;
    let Claims { chats, chat_prefixes: prefixes, rights, .. } = claims;
    Ok(Holder { chats, prefixes, rights, expires_wall_ms, id })
}

/// Seconds, which may have a fraction, as milliseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the bounds are looked at before, and parts of a millisecond don't matter"
)]
fn millis(seconds: f64) -> Option<u64> {
    let millis = seconds * 1_000.0;
    (millis.is_finite() && (0.0..1e18).contains(&millis)).then_some(millis as u64)
}

/// Why a token can't be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MintFault {
    /// There is no secret for HS256.
    NoSecret,
    /// The private key is none for Ed25519 in PKCS #8.
    BadKey,
}

impl fmt::Display for MintFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MintFault::NoSecret => {
                "the token file has no hs256 line to sign with; add one, or sign with a private key (--ed25519-key)"
            }
            MintFault::BadKey => {
                "the private key must be one for Ed25519 in PKCS #8, as `openssl genpkey -algorithm ed25519` makes it"
            }
        })
    }
}

impl std::error::Error for MintFault {}

pub(super) fn mint<'k>(keys: impl Iterator<Item = &'k Key>, claims: &Claims) -> Result<String, MintFault> {
    let mut signing = keys.filter_map(|key| key.encoding.as_ref());
    let key = signing.next().ok_or(MintFault::NoSecret)?;
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, key).map_err(|_| MintFault::NoSecret)
}

/// A token signed with a private key: the text of a PEM file.
pub fn mint_with_ed25519(pem: &str, claims: &Claims) -> Result<String, MintFault> {
    crypto::install();
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
    let der = super::token_file::base64(&body).ok_or(MintFault::BadKey)?;
    let key = EncodingKey::from_ed_der(&der);
    jsonwebtoken::encode(&Header::new(Algorithm::EdDSA), claims, &key).map_err(|_| MintFault::BadKey)
}
