//! The two signatures of a webhook, both over the exact bytes that are sent.
//!
//! `X-Service-Signature` is that of the call-info request: HMAC-SHA256, keyed with the text of the secret, in
//! lower-case hexadecimal. It has space for one signature, which is the newest secret's. `webhook-signature` is that
//! of Standard Webhooks 1.0: HMAC-SHA256 over `<id>.<timestamp>.<body>`, in base64, keyed with the part of the secret
//! after `whsec_`, decoded from base64; after a rotation both secrets sign for a day, and the two signatures are
//! separated by a space.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use rand::Rng;
use sha2::Sha256;
use sidetone_model::directory::Secret;

/// A new secret: `whsec_` and 32 random bytes in base64.
pub fn new_secret(rng: &mut impl Rng) -> Secret {
    let mut key = [0; KEY_LEN];
    rng.fill_bytes(&mut key);
    Secret(format!("{PREFIX}{}", STANDARD.encode(key)))
}

/// The value of `X-Service-Signature` for `body`: `sha256=` and the digest in hexadecimal.
pub fn service_signature(secret: &Secret, body: &[u8]) -> String {
    let digest = digest(secret.0.as_bytes(), &[body]);
    digest.iter().fold("sha256=".to_owned(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The value of `webhook-signature` for the message `id` with `body`, sent at `timestamp_s`: one signature for each
/// of `secrets`, newest first.
pub fn standard_signatures(secrets: &[Secret], id: &str, timestamp_s: i64, body: &[u8]) -> String {
    let head = format!("{id}.{timestamp_s}.");
    let signatures: Vec<String> = secrets
        .iter()
        .map(|secret| format!("v1,{}", STANDARD.encode(digest(&key(secret), &[head.as_bytes(), body]))))
        .collect();
    signatures.join(" ")
}

/// The key bytes of a secret; a text that is not base64 is used as it is.
fn key(secret: &Secret) -> Vec<u8> {
    let text = secret.0.strip_prefix(PREFIX).unwrap_or(&secret.0);
    STANDARD.decode(text).unwrap_or_else(|_| secret.0.as_bytes().to_vec())
}

fn digest(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC takes keys of any length (RFC 2104 §2).
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

const PREFIX: &str = "whsec_";
const KEY_LEN: usize = 32;

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn a_new_secret_is_32_bytes_in_base64() {
        let mut rng = StdRng::seed_from_u64(1);
        let (first, second) = (new_secret(&mut rng), new_secret(&mut rng));
        assert!(first.0.starts_with("whsec_") && first != second);
        assert_eq!(key(&first).len(), 32);
        assert_eq!(format!("{first:?}"), "Secret(..)");
    }

    /// The example of the Standard Webhooks specification.
    #[test]
    fn the_published_example_holds() {
        let secret = Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let body = br#"{"test": 2432232314}"#;
        let signed = standard_signatures(&[secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn every_secret_signs_newest_first() {
        let secrets = [Secret("whsec_AAAA".to_owned()), Secret("whsec_BBBB".to_owned())];
        let both = standard_signatures(&secrets, "id", 1, b"");
        let (first, second) = both.split_once(' ').unwrap();
        assert_eq!(first, standard_signatures(&secrets[..1], "id", 1, b""));
        assert_eq!(second, standard_signatures(&secrets[1..], "id", 1, b""));
    }

    /// RFC 4231 §4.3, with the key as text.
    #[test]
    fn the_service_signature_is_the_digest_in_hexadecimal() {
        let signed = service_signature(&Secret("Jefe".to_owned()), b"what do ya want for nothing?");
        let digest = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signed, format!("sha256={digest}"));
    }
}
