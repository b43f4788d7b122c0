//! The layer that finds out who asks and counts it, and the extractors that routes insist with.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::Extensions;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sidetone_model::access::{Permission, Principal, Scope, Who};
use sidetone_model::ids::{OrganisationId, UserId};

use crate::auth::address::client_address;
use crate::auth::attempts::Key;
use crate::auth::credential::{Admitted, admit};
use crate::auth::rate_limit::{Bucket, UNAUTHENTICATED_PER_MINUTE};
use crate::auth::token::Session;
use crate::error::ApiError;
use crate::state::ApiState;

/// Who asks, known and allowed in.
pub(crate) struct Caller(Admitted);

impl Caller {
    /// Refuses a caller without `permission`.
    pub(crate) fn require(&self, permission: Permission) -> Result<(), ApiError> {
        if self.may(permission) {
            return Ok(());
        }
        Err(ApiError::forbidden(format!("the caller lacks the permission {}", permission.as_str())))
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

    /// The organisation that something new belongs to: the one that the request names, or the caller's own.
    pub(crate) fn organisation(&self, requested: Option<OrganisationId>) -> Result<OrganisationId, ApiError> {
        self.narrow(requested)?;
        Ok(requested.unwrap_or(self.principal().organisation_id))
    }

    /// Whether the caller holds `permission`.
    pub(crate) fn may(&self, permission: Permission) -> bool {
        self.principal().may(permission)
    }

    /// Whose rows the caller sees.
    pub(crate) fn scope(&self) -> Scope {
        self.principal().scope
    }

    /// Everything that is known of the caller.
    pub(crate) fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// The user and the session of somebody who logged in; a key is no such thing.
    pub(crate) fn session(&self) -> Result<(UserId, &Session), ApiError> {
        match (self.principal().who, &self.0.session) {
            (Who::User(user), Some(session)) => Ok((user, session)),
            _ => Err(ApiError::forbidden("this is for users who logged in, not for keys")),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        match parts.extensions.get::<Identity>() {
            Some(Identity(Ok(admitted))) => Ok(Caller(admitted.clone())),
            Some(Identity(Err(error))) => Err(error.clone()),
            // A route outside the layer: no way in.
            None => Err(ApiError::internal()),
        }
    }
}

/// What the layer found out about who sent a request; `None` outside of it.
pub(crate) fn identity(extensions: &Extensions) -> Option<Result<&Principal, &ApiError>> {
    extensions.get::<Identity>().map(|Identity(found)| found.as_ref().map(|admitted| &admitted.principal))
}

/// What the layer found out.
#[derive(Debug, Clone)]
struct Identity(Result<Admitted, ApiError>);

/// Where a request comes from, whoever sent it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    bucket: Bucket,
    address: IpAddr,
}

impl Client {
    /// The address.
    pub(crate) fn address(self) -> IpAddr {
        self.address
    }

    /// The tries of the password of `account` from here.
    pub(crate) fn attempts_at(self, account: &str) -> Key {
        Key::new(account, self.bucket)
    }
}

/// The address that a request comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientAddress(pub(super) IpAddr);

impl<S: Sync> FromRequestParts<S> for Client {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Client>().copied().ok_or_else(ApiError::internal)
    }
}

/// Finds out who asks and takes one request from their allowance; every answer says what is left.
///
/// Who is not let in counts against their address, so that guessing keys is slow and a stolen
/// key used from elsewhere cannot use up its owner's allowance. So does every login, with whatever token:
/// having an account is no help in guessing the passwords of others.
pub(crate) async fn identify(State(state): State<ApiState>, mut request: Request, next: Next) -> Response {
    let peer = request
        .extensions()
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| peer.ip());
    let address = client_address(peer, request.headers(), &state.settings.current().trusted_proxies);
    let now = (state.clock)();
    let found = if request.uri().path() == LOGIN_PATH {
        // Nobody yet. All that a login can be refused for before it is read is what it would have one read.
        Err(ApiError::payload_too_large())
    } else {
        admit(&state, request.headers(), address, now).await
    };
    let client = Bucket::of_address(address);
    let quota = match &found {
        Ok(admitted) => {
            let bucket = Bucket::Caller(admitted.principal.who);
            state.limits.take(bucket, admitted.rate_per_minute, 1, now)
        }
        Err(error) => {
            // Our own failure costs nobody anything.
            let cost = if error.is_internal() { 0 } else { 1 };
            state.limits.take(client, UNAUTHENTICATED_PER_MINUTE, cost, now)
        }
    };
    let mut response = match quota.retry_after_s() {
        Some(seconds) => ApiError::rate_limited(seconds).into_response(),
        None => {
            request.extensions_mut().insert(Client { bucket: client, address });
            request.extensions_mut().insert(ClientAddress(address));
            request.extensions_mut().insert(Identity(found));
            next.run(request).await
        }
    };
    quota.write(response.headers_mut());
    response
}

/// Within `/api/v1`.
const LOGIN_PATH: &str = "/auth/login";
