//! Integration keys: `Authorization: Bearer <prefix>_<id>_<secret>`.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use sidetone_model::ports::{ApiKey, ApiKeys};
use subtle::ConstantTimeEq;

use crate::error::ApiError;

/// The stored key that the request presents, when it may be used from `address`.
///
/// An unknown id and a wrong secret take the same path and answer the same 401 from anywhere:
/// only who knows the whole key learns whether the address is allowed.
pub(super) async fn authenticate(
    keys: &dyn ApiKeys,
    headers: &HeaderMap,
    address: IpAddr,
) -> Result<ApiKey, ApiError> {
    let token =
        bearer(headers).ok_or_else(|| ApiError::unauthenticated("send Authorization: Bearer <key>"))?;
    let refused = || ApiError::unauthenticated("the token is not valid");
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

/// The token of the one `Authorization` header; the scheme's name is case-insensitive.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        return None;
    }
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= TOKEN_LEN_MAX)
        .then_some(token)
}

/// The id and the secret of a key's text; the prefix may hold underscores itself.
fn parse(token: &str) -> Option<(&str, &str)> {
    let (front, secret) = token.rsplit_once('_')?;
    let (prefix, id) = front.rsplit_once('_')?;
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (!prefix.is_empty() && plain(id) && plain(secret)).then_some((id, secret))
}

const TOKEN_LEN_MAX: usize = 512;

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

    #[test]
    fn one_bearer_header_counts() {
        let cases: [(&[&str], Option<&str>); 7] = [
            (&["Bearer x"], Some("x")),
            (&["bearer  x "], Some("x")),
            (&["Basic x"], None),
            (&["Bearer"], None),
            (&["Bearer "], None),
            (&["Bearer x", "Bearer y"], None),
            (&[], None),
        ];
        for (values, expected) in cases {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().unwrap());
            }
            assert_eq!(bearer(&headers), expected, "{values:?}");
        }
    }
}
