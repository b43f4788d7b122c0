//! Integration keys: `Authorization: Bearer <prefix>_<id>_<secret>`.

use std::net::IpAddr;

use sha2::{Digest, Sha256};
use sidetone_model::ports::{ApiKey, ApiKeys};
use subtle::ConstantTimeEq;

use crate::auth::key_form::parse;
use crate::error::ApiError;

/// Returns the stored key for `token`, if it may be used from `address`.
///
/// An unknown id and a wrong secret take the same path and get the same 401 from any address: only a client
/// that has the whole key learns whether the address is allowed.
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

/// The answer to every token that is not valid, whatever is wrong with it.
pub(super) fn refused() -> ApiError {
    ApiError::unauthenticated("the token is not valid")
}
