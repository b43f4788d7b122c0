//! The bearer token of a request, and its verification.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use sidetone_model::access::Principal;
use sidetone_model::time::Timestamp;

use crate::auth::api_key::{self, refused};
use crate::auth::rate_limit::USER_PER_MINUTE;
use crate::auth::token::Session;
use crate::error::ApiError;
use crate::state::ApiState;

/// An authenticated caller.
#[derive(Debug, Clone)]
pub(super) struct Admitted {
    pub(super) principal: Principal,
    pub(super) rate_per_minute: u32,
    /// The session of a user.
    pub(super) session: Option<Session>,
}

/// Authenticates `token` from `address`.
pub(super) async fn admit(
    state: &ApiState,
    token: &str,
    address: IpAddr,
    now: Timestamp,
) -> Result<Admitted, ApiError> {
    // No key has a dot and every session has two.
    if !token.contains('.') {
        let key = api_key::authenticate(state.keys.as_ref(), token, address).await?;
        let (principal, rate_per_minute) = (key.principal(), key.rate_per_minute);
        return Ok(Admitted { principal, rate_per_minute, session: None });
    }
    let panel = state.panel.as_ref().ok_or_else(refused)?;
    let session = panel.token_key.verify(token, now).ok_or_else(refused)?;
    let account = panel.accounts.session(session.user, session.id).await?;
    let account = account.filter(|account| session.fits(account)).ok_or_else(refused)?;
    Ok(Admitted {
        principal: account.user.principal(),
        rate_per_minute: USER_PER_MINUTE,
        session: Some(session),
    })
}

/// The bearer token of the request.
///
/// # Errors
/// 401 without a bearer token.
pub(super) fn bearer(headers: &HeaderMap) -> Result<&str, ApiError> {
    token(headers).ok_or_else(|| ApiError::unauthenticated("send Authorization: Bearer <token>"))
}

/// The token of the `Authorization` header, if there is exactly one; the scheme's name is case-insensitive.
fn token(headers: &HeaderMap) -> Option<&str> {
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

/// The longest key and the longest session fit.
const TOKEN_LEN_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(token(&headers), expected, "{values:?}");
        }
    }
}
