//! What jsonwebtoken signs and verifies with: the two algorithms that tokens may have, from ring, which is here for TLS
//! anyway. No other algorithm can be asked for.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind, Result};
use jsonwebtoken::signature::{Error as SignatureError, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, EncodingKey};
use ring::hmac;
use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Lets jsonwebtoken use it, unless the program that this library is part of has chosen another.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

struct Hmac(hmac::Key);

struct EdPublic(UnparsedPublicKey<Vec<u8>>);

struct EdPair(Ed25519KeyPair);

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    match (algorithm, key.family()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => {
            Ok(Box::new(Hmac(hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()))))
        }
        (Algorithm::EdDSA, AlgorithmFamily::Ed) => {
            let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.as_bytes());
            Ok(Box::new(EdPair(pair.map_err(|_| Error::from(ErrorKind::InvalidEddsaKey))?)))
        }
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let bytes = key.try_get_as_bytes()?;
    match (algorithm, key.family()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => {
            Ok(Box::new(Hmac(hmac::Key::new(hmac::HMAC_SHA256, bytes))))
        }
        (Algorithm::EdDSA, AlgorithmFamily::Ed) => {
            Ok(Box::new(EdPublic(UnparsedPublicKey::new(&ED25519, bytes.to_vec()))))
        }
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

impl Signer<Vec<u8>> for Hmac {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, SignatureError> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hmac {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), SignatureError> {
        hmac::verify(&self.0, message, signature).map_err(|_| SignatureError::new())
    }
}

impl Signer<Vec<u8>> for EdPair {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, SignatureError> {
        Ok(self.0.sign(message).as_ref().to_vec())
    }
}

impl Verifier<Vec<u8>> for EdPublic {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), SignatureError> {
        self.0.verify(message, signature).map_err(|_| SignatureError::new())
    }
}

impl JwtSigner for Hmac {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hmac {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtSigner for EdPair {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

impl JwtVerifier for EdPublic {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}
