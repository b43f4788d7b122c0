//! The URL that is requested for an organisation's answered calls.

use crate::directory::Secret;
use crate::ids::OrganisationId;
use crate::port_future::PortFuture;
use crate::rules::Rule;

/// An organisation's call-info URL, and the secret for signing the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallInfoTarget {
    /// `https` on a public address.
    pub url: String,
    /// The signing key is its UTF-8 bytes.
    pub secret: Secret,
}

/// The stored call-info URLs.
pub trait CallInfoTargets: Send + Sync {
    /// Returns the organisation's URL and secret, if it has them.
    fn target(&self, organisation: OrganisationId) -> PortFuture<'_, Option<CallInfoTarget>>;
}

/// Checks a shared secret, which is stored unchanged.
///
/// # Errors
/// The rule that the text breaks.
pub fn secret(text: &str) -> Result<Secret, Rule> {
    let length_fits = (SECRET_LEN_MIN..=SECRET_LEN_MAX).contains(&text.chars().count());
    if !length_fits || text.chars().any(char::is_control) {
        return Err(format!(
            "must be {SECRET_LEN_MIN} to {SECRET_LEN_MAX} characters on one line, without control characters"
        ));
    }
    Ok(Secret(text.to_owned()))
}

/// Minimum characters of a secret.
pub const SECRET_LEN_MIN: usize = 16;
/// Maximum characters of a secret.
pub const SECRET_LEN_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_a_length_and_is_kept_as_written() {
        for good in [" sixteen letters".to_owned(), "é".repeat(16), "x".repeat(256)] {
            assert_eq!(secret(&good), Ok(Secret(good)));
        }
        for bad in [String::new(), "é".repeat(15), "x".repeat(257), "a secret of two\nlines".to_owned()] {
            assert!(secret(&bad).unwrap_err().starts_with("must be 16 to 256 characters"), "{bad}");
        }
    }
}
