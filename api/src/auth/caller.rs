//! The layer that finds out who asks and counts it, and the extractor that routes insist with.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::Extensions;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sidetone_model::access::{Permission, Principal, Scope};
use sidetone_model::ids::OrganisationId;

use crate::auth::address::client_address;
use crate::auth::api_key::authenticate;
use crate::auth::rate_limit::{Bucket, UNAUTHENTICATED_PER_MINUTE};
use crate::error::ApiError;
use crate::state::ApiState;

/// Who asks, known and allowed in.
pub(crate) struct Caller(Principal);

impl Caller {
    /// Refuses a caller without `permission`.
    pub(crate) fn require(&self, permission: Permission) -> Result<(), ApiError> {
        if self.may(permission) {
            return Ok(());
        }
        Err(ApiError::forbidden(format!("the caller lacks the permission {}", permission.as_str())))
    }

    /// Whether the caller holds `permission`.
    pub(crate) fn may(&self, permission: Permission) -> bool {
        self.principal().may(permission)
    }

    /// Whose rows the caller sees.
    pub(crate) fn scope(&self) -> Scope {
        self.principal().scope
    }

    /// Refuses to narrow to an organisation that the caller may not see, whether it exists or not.
    pub(crate) fn narrow(&self, organisation: Option<OrganisationId>) -> Result<(), ApiError> {
        match organisation {
            Some(organisation) if !self.scope().reaches(organisation) => {
                Err(ApiError::forbidden("organisation_id is outside the caller's scope"))
            }
            _ => Ok(()),
        }
    }

    /// Everything that is known of the caller.
    pub(crate) fn principal(&self) -> &Principal {
        &self.0
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        match parts.extensions.get::<Identity>() {
            Some(Identity(Ok(principal))) => Ok(Caller(principal.clone())),
            Some(Identity(Err(error))) => Err(error.clone()),
            // A route outside the layer: no way in.
            None => Err(ApiError::internal()),
        }
    }
}

/// What the layer found out about who sent a request; `None` outside of it.
pub(crate) fn identity(extensions: &Extensions) -> Option<&Result<Principal, ApiError>> {
    extensions.get::<Identity>().map(|Identity(found)| found)
}

/// What the layer found out.
#[derive(Debug, Clone)]
struct Identity(Result<Principal, ApiError>);

/// Finds out who asks and takes one request from their allowance; every answer says what is left.
///
/// Who is not let in counts against their address, so that guessing keys is slow and a stolen
/// key used from elsewhere cannot use up its owner's allowance.
pub(crate) async fn identify(State(state): State<ApiState>, mut request: Request, next: Next) -> Response {
    let peer = request
        .extensions()
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| peer.ip());
    let address = client_address(peer, request.headers(), &state.settings.current().trusted_proxies);
    let found = authenticate(state.keys.as_ref(), request.headers(), address).await;
    let now = (state.clock)();
    let quota = match &found {
        Ok(key) => state.limits.take(Bucket::Key(key.key), key.rate_per_minute, 1, now),
        Err(error) => {
            // Our own failure costs nobody anything.
            let cost = if error.is_internal() { 0 } else { 1 };
            state.limits.take(Bucket::of_address(address), UNAUTHENTICATED_PER_MINUTE, cost, now)
        }
    };
    let mut response = match quota.retry_after_s() {
        Some(seconds) => ApiError::rate_limited(seconds).into_response(),
        None => {
            request.extensions_mut().insert(Identity(found.map(|key| key.principal())));
            next.run(request).await
        }
    };
    quota.write(response.headers_mut());
    response
}
