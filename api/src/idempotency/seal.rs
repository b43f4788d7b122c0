//! Stored answers are encrypted with a key derived from a secret of the caller.
//!
//! An answer may contain a key or a password that is shown once and not stored. The secret of an integration is its key,
//! of which the database has only a hash: a copy of the database does not reveal the answer.
//!
//! A user who has logged in again has another token and still gets the answer of the earlier session, so the secret of a
//! user is derived from the key that signs sessions. That key is in the database: a copy of it reveals a user's answers
//! of the last 24 hours. The same copy lets its holder sign a session of that user, and so replace every such secret.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use uuid::Uuid;

/// Encrypts answers to one request of one caller.
pub(super) struct Seal {
    secret: Vec<u8>,
    claim: [u8; 32],
}

impl Seal {
    /// The seal of the request that `claim` identifies, for the caller with this secret.
    pub(super) fn new(secret: impl Into<Vec<u8>>, claim: [u8; 32]) -> Self {
        Self { secret: secret.into(), claim }
    }

    /// Returns `body` encrypted; `None` only if the cipher fails, which does not happen.
    pub(super) fn close(&self, body: &[u8]) -> Option<String> {
        // A separate key for every answer, so that the nonce can be constant.
        let attempt = Uuid::new_v4();
        let mut text = body.to_vec();
        self.key(attempt)?.seal_in_place_append_tag(nonce(), Aad::from(self.claim), &mut text).ok()?;
        let mut sealed = attempt.as_bytes().to_vec();
        sealed.extend(text);
        Some(STANDARD.encode(sealed))
    }

    /// Returns the decrypted body; `None` for a body of another caller.
    pub(super) fn open(&self, sealed: &str) -> Option<Vec<u8>> {
        let sealed = STANDARD.decode(sealed).ok()?;
        let (attempt, text) = sealed.split_first_chunk::<16>()?;
        let mut text = text.to_vec();
        let key = self.key(Uuid::from_bytes(*attempt))?;
        let body = key.open_in_place(nonce(), Aad::from(self.claim), &mut text).ok()?;
        Some(body.to_vec())
    }

    fn key(&self, attempt: Uuid) -> Option<LessSafeKey> {
        let secret = Salt::new(HKDF_SHA256, SALT).extract(&self.secret);
        let info: [&[u8]; 2] = [&self.claim, attempt.as_bytes()];
        let material = secret.expand(&info, &CHACHA20_POLY1305).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(material)))
    }
}

fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

const SALT: &[u8] = b"sidetone idempotent answer 1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_caller_and_request_open_it() {
        let seal = Seal::new("tel_a_secret", [1; 32]);
        let sealed = seal.close(b"{\"key\":\"shown once\"}").unwrap();
        assert!(!sealed.contains("shown"));
        assert_eq!(seal.open(&sealed).unwrap(), b"{\"key\":\"shown once\"}");
        assert_ne!(seal.close(b"{\"key\":\"shown once\"}").unwrap(), sealed);
        assert_eq!(Seal::new("tel_b_secret", [1; 32]).open(&sealed), None);
        assert_eq!(Seal::new("tel_a_secret", [2; 32]).open(&sealed), None);
        assert_eq!(seal.open("AAAA"), None);
        assert_eq!(seal.open("no base64!"), None);
        let empty = seal.close(b"").unwrap();
        assert_eq!(seal.open(&empty).unwrap(), b"");
    }
}
