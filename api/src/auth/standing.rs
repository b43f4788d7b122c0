//! Checks whether the caller of an unending answer is still authenticated.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use sidetone_model::access::Principal;
use sidetone_model::ids::ExtensionId;

use crate::auth::caller::{ClientAddress, identity};
use crate::auth::credential::{admit, bearer};
use crate::auth::own_extensions::own_extensions;
use crate::error::ApiError;
use crate::state::ApiState;

/// The caller's credential, to be checked again.
pub(crate) struct Standing {
    /// Contains `Authorization` only.
    headers: HeaderMap,
    address: IpAddr,
    principal: Principal,
}

/// The result of checking again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Still {
    /// The caller has the same access as at first.
    LetIn,
    /// The token has expired, or the caller has another role, other permissions or extensions.
    Refused,
    /// The check failed; the result is not known.
    Unknown,
}

impl Standing {
    /// Repeats the authentication, and checks that the caller still has `extensions`. It counts against no rate.
    pub(crate) async fn ask(&self, state: &ApiState, extensions: &[ExtensionId]) -> Still {
        let token = match bearer(&self.headers) {
            Ok(token) => token,
            Err(_) => return Still::Refused,
        };
        match admit(state, token, self.address, (state.clock)()).await {
            Ok(admitted) if admitted.principal == self.principal => {
                match own_extensions(&self.principal, state).await {
                    Ok(own) if own == extensions => Still::LetIn,
                    Ok(_) => Still::Refused,
                    Err(_) => Still::Unknown,
                }
            }
            Err(error) if error.is_internal() => Still::Unknown,
            Ok(_) | Err(_) => Still::Refused,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Standing {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let principal = match identity(&parts.extensions) {
            Some(Ok(principal)) => principal.clone(),
            Some(Err(error)) => return Err(error.clone()),
            None => return Err(ApiError::internal()),
        };
        let Some(ClientAddress(address)) = parts.extensions.get::<ClientAddress>().copied() else {
            return Err(ApiError::internal());
        };
        let mut headers = HeaderMap::new();
        for value in parts.headers.get_all(AUTHORIZATION) {
            headers.append(AUTHORIZATION, value.clone());
        }
        Ok(Self { headers, address, principal })
    }
}
