//! Password hashing: argon2id (RFC 9106), stored as a PHC string.
//!
//! Deliberately slow: about 20 ms and 19 MiB each. Request handlers use
//! [`Passwords`](crate::accounts::Passwords).

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};

/// Bytes of the salt (RFC 9106 §3.1).
pub const SALT_LEN: usize = 16;

/// A password could not be hashed.
#[derive(Debug, thiserror::Error)]
#[error("hash a password: {0}")]
pub struct HashError(String);

/// Returns the hash of `password` with a salt that must be random.
///
/// # Errors
/// When there is no memory for it.
pub fn hash(password: &str, salt: &[u8; SALT_LEN]) -> Result<String, HashError> {
    let failed = |error: &dyn std::fmt::Display| HashError(error.to_string());
    let hash: PasswordHash =
        argon2()?.hash_password_with_salt(password.as_bytes(), salt).map_err(|error| failed(&error))?;
    Ok(hash.to_string())
}

/// Returns whether `password` has that hash; a text that is not a hash matches no password.
///
/// The parameters are those of the hash: older hashes stay valid when the defaults are raised.
pub fn verify(password: &str, hash: &str) -> bool {
    let (Ok(argon2), Ok(hash)) = (argon2(), PasswordHash::new(hash)) else { return false };
    argon2.verify_password(password.as_bytes(), &hash).is_ok()
}

fn argon2() -> Result<Argon2<'static>, HashError> {
    let params =
        Params::new(MEMORY_KIB, PASSES, LANES, None).map_err(|error| HashError(error.to_string()))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

/// The first parameters in OWASP's Password Storage Cheat Sheet.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_knows_its_password_alone() {
        let stored = hash("correct horse", &[1; SALT_LEN]).unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        assert!(verify("correct horse", &stored));
        for wrong in ["", "correct hors", "Correct horse", "correct horse "] {
            assert!(!verify(wrong, &stored), "{wrong}");
        }
        assert_ne!(hash("correct horse", &[2; SALT_LEN]).unwrap(), stored);
        for text in ["", "correct horse", "$argon2id$", "$2b$12$abcdefghijklmnopqrstuv"] {
            assert!(!verify("correct horse", text), "{text}");
        }
    }
}
