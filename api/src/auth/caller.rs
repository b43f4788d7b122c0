//! The layer that authenticates callers and counts requests, and the extractors with which routes require a
//! caller.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sidetone_model::access::{Permission, Principal, Scope, Who};
use sidetone_model::ids::{OrganisationId, UserId};
use sidetone_model::time::Timestamp;

use crate::auth::address::client_address;
use crate::auth::attempts::{Key, TokenRefusal};
use crate::auth::credential::{Admitted, admit, bearer};
use crate::auth::known::Token;
use crate::auth::rate_limit::{Bucket, Place, Quota, UNAUTHENTICATED_PER_MINUTE};
use crate::auth::token::Session;
use crate::error::ApiError;
use crate::from_peer::FromPeer;
use crate::state::ApiState;

/// An authenticated caller.
pub(crate) struct Caller(Admitted);

impl Caller {
    /// Refuses a caller without `permission`.
    pub(crate) fn require(&self, permission: Permission) -> Result<(), ApiError> {
        if self.may(permission) {
            return Ok(());
        }
        Err(ApiError::forbidden(format!("the caller lacks the permission {}", permission.as_str())))
    }

    /// Refuses to filter by an organisation that the caller may not see, whether it exists or not.
    pub(crate) fn narrow(&self, organisation: Option<OrganisationId>) -> Result<(), ApiError> {
        match organisation {
            Some(organisation) if !self.scope().reaches(organisation) => {
                Err(ApiError::forbidden("organisation_id is outside the caller's scope"))
            }
            _ => Ok(()),
        }
    }

    /// The organisation of a new resource: the one in the request, or the caller's own.
    pub(crate) fn organisation(&self, requested: Option<OrganisationId>) -> Result<OrganisationId, ApiError> {
        self.narrow(requested)?;
        Ok(requested.unwrap_or(self.principal().organisation_id))
    }

    /// Whether the caller holds `permission`.
    pub(crate) fn may(&self, permission: Permission) -> bool {
        self.principal().may(permission)
    }

    /// The caller's scope.
    pub(crate) fn scope(&self) -> Scope {
        self.principal().scope
    }

    /// The caller as authenticated.
    pub(crate) fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// The user and the session of a user who logged in; not available to a key.
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
            // A route outside the layer: access is refused.
            None => Err(ApiError::internal()),
        }
    }
}

/// The result of the layer: the caller or the reason for refusal; `None` outside of the layer.
pub(crate) fn identity(extensions: &Extensions) -> Option<Result<&Principal, &ApiError>> {
    extensions.get::<Identity>().map(|Identity(found)| found.as_ref().map(|admitted| &admitted.principal))
}

/// The result of the layer.
#[derive(Debug, Clone)]
struct Identity(Result<Admitted, ApiError>);

/// The origin of a request, authenticated or not.
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

    /// The key for password attempts for `account` from this address.
    pub(crate) fn attempts_at(self, account: &str) -> Key {
        Key::new(account, self.bucket)
    }
}

/// The client address of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientAddress(pub(super) IpAddr);

impl<S: Sync> FromRequestParts<S> for Client {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Client>().copied().ok_or_else(ApiError::internal)
    }
}

/// Authenticates the caller and counts the request against the caller's rate; every answer reports the
/// remaining rate.
///
/// An unauthenticated request counts against its address, so that guessing keys is slow and a stolen key used
/// from elsewhere cannot use up its owner's rate. So does every login, with any token: having an account does
/// not help in guessing the passwords of others.
pub(crate) async fn identify(State(state): State<ApiState>, mut request: Request, next: Next) -> Response {
    let peer = request
        .extensions()
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| peer.ip());
    if let Some(FromPeer(address)) = request.extensions().get::<FromPeer>().copied() {
        return identify_at_peer(&state, address, request, next).await;
    }
    let address = client_address(peer, request.headers(), &state.settings.current().trusted_proxies);
    let now = (state.clock)();
    let client = Bucket::of_address(address);
    let (found, quota) = if request.uri().path() == LOGIN_PATH {
        // Not authenticated yet. The only reason to refuse a login before its body is read is the length of
        // the body.
        let quota = state.limits.take(client, UNAUTHENTICATED_PER_MINUTE, 1, now);
        (Err(ApiError::payload_too_large()), quota)
    } else {
        admitted(&state, request.headers(), address, now).await
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

/// Authenticates the caller of a request that another node forwards; that node has already counted it.
async fn identify_at_peer(state: &ApiState, address: IpAddr, mut request: Request, next: Next) -> Response {
    let found = match bearer(request.headers()) {
        Ok(token) => admit(state, token, address, (state.clock)()).await,
        Err(error) => Err(error),
    };
    request.extensions_mut().insert(Client { bucket: Bucket::of_address(address), address });
    request.extensions_mut().insert(ClientAddress(address));
    request.extensions_mut().insert(Identity(found));
    next.run(request).await
}

/// Authenticates the token, and returns the remaining rate of the caller.
///
/// A token is not looked up when the rate is used up: for a caller authenticated earlier that is the caller's
/// own rate, for any other that of its address. An internal failure counts against no limit.
async fn admitted(
    state: &ApiState,
    headers: &HeaderMap,
    address: IpAddr,
    now: Timestamp,
) -> (Result<Admitted, ApiError>, Quota) {
    let (limits, client) = (&state.limits, Bucket::of_address(address));
    let refuse = |error: ApiError| {
        let cost = if error.is_internal() { 0 } else { 1 };
        let quota = limits.take(client, UNAUTHENTICATED_PER_MINUTE, cost, now);
        (Err(error), quota)
    };
    let token = match bearer(headers) {
        Ok(token) => token,
        Err(error) => return refuse(error),
    };
    let name = Token::new(token, address);
    let patience = tokio::time::Instant::now() + PLACE_PATIENCE;
    let pending = loop {
        if let Some(known) = state.known_tokens.find(name) {
            let quota = limits.look(Bucket::Caller(known.who), known.rate_per_minute, now);
            if quota.retry_after_s().is_some() {
                return (Err(ApiError::rate_limited(1)), quota);
            }
            break None;
        }
        let mut settled = pin!(limits.settled());
        settled.as_mut().enable();
        match limits.place(client, UNAUTHENTICATED_PER_MINUTE, now) {
            Place::Full(quota) => {
                state.attempts.token_refused(now, address, TokenRefusal::Limited);
                return (Err(ApiError::rate_limited(1)), quota);
            }
            Place::Taken(bucket) => break Some(Pending { state, bucket }),
            Place::Wait if tokio::time::timeout_at(patience, settled).await.is_err() => {
                return refuse(ApiError::busy(PLACE_RETRY_S));
            }
            Place::Wait => {}
        }
    };
    let found = admit(state, token, address, now).await;
    let outcome = match found {
        Ok(admitted) => {
            let (who, rate) = (admitted.principal.who, admitted.rate_per_minute);
            state.known_tokens.note(name, who, rate, now);
            (Ok(admitted), limits.take_shared(Bucket::Caller(who), rate, 1, now).await)
        }
        Err(error) => {
            if !error.is_internal() {
                state.known_tokens.forget(name);
                let why = if error.is_forbidden() { TokenRefusal::Address } else { TokenRefusal::Wrong };
                state.attempts.token_refused(now, address, why);
            }
            refuse(error)
        }
    };
    drop(pending);
    outcome
}

/// Counts input that never became a request against the rate of its address, and writes the remaining rate to
/// the headers.
pub(crate) fn charge(state: &ApiState, peer: IpAddr, headers: &mut HeaderMap) {
    let now = (state.clock)();
    let bucket = Bucket::of_address(peer.to_canonical());
    state.limits.take(bucket, UNAUTHENTICATED_PER_MINUTE, 1, now).write(headers);
}

/// A pending lookup of a token that may turn out to be wrong.
struct Pending<'s> {
    state: &'s ApiState,
    bucket: Bucket,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.state.limits.settle(self.bucket);
    }
}

/// How long a token waits for its lookup while many others from its address are pending.
const PLACE_PATIENCE: Duration = Duration::from_secs(2);
const PLACE_RETRY_S: u64 = 1;
/// Within `/api/v1`.
const LOGIN_PATH: &str = "/auth/login";
