//! Integration keys: `Authorization: Bearer <prefix>_<id>_<secret>`.

use std::net::IpAddr;

use sha2::{Digest, Sha256};
use sidetone_model::ports::{ApiKey, ApiKeys};
use subtle::ConstantTimeEq;

use crate::auth::credential::refused;
use crate::error::ApiError;

/// The stored key that `token` is, when it may be used from `address`.
///
/// An unknown id and a wrong secret take the same path and answer the same 401 from anywhere:
/// only who knows the whole key learns whether the address is allowed.
pub(super) async fn authenticate(
    keys: &dyn ApiKeys,
    token: &str,
    address: IpAddr,
) -> Result<ApiKey, ApiError> {
    let (id, secret) = parse(token).ok_or_else(refused)?;
    let found = keys.find(id).await?;
    let presented: [u8; 32] = Sha256::digest(secret.as_bytes()).into();
    let stored = found.as_ref().map_or([0; 32], |key| key.secret_sha256);
    let same = bool::from(presented.ct_eq(&stored));
    let key = found.filter(|_| same).ok_or_else(refused)?;
    if key.allow.is_empty() {
        return Err(ApiError::ip_allowlist_required());
    }
    if !key.allows(address) {
        return Err(ApiError::ip_not_allowed());
    }
    Ok(key)
}

/// The id and the secret of a key's text; the prefix may hold underscores itself.
fn parse(token: &str) -> Option<(&str, &str)> {
    let (front, secret) = token.rsplit_once('_')?;
    let (prefix, id) = front.rsplit_once('_')?;
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (!prefix.is_empty() && plain(id) && plain(secret)).then_some((id, secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_prefix_id_secret() {
        let cases = [
            ("tel_ABC_def", Some(("ABC", "def"))),
            ("tel_test_ABC_def", Some(("ABC", "def"))),
            ("_ABC_def", None),
            ("ABC_def", None),
            ("tel__def", None),
            ("tel_ABC_", None),
            ("tel_A'C_def", None),
            ("", None),
        ];
        for (token, expected) in cases {
            assert_eq!(parse(token), expected, "{token}");
        }
    }
}
