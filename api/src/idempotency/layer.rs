//! The layer around every route: claims the key, runs the handler once, and stores or repeats its answer.

use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use sidetone_model::access::Who;
use sidetone_model::idempotency::{Claim, KeptAnswer, Once};
use sidetone_model::problem::Problem;
use tracing::Instrument;

use crate::auth;
use crate::error::{ApiError, already_enveloped};
use crate::idempotency::key;
use crate::idempotency::seal::Seal;
use crate::state::ApiState;

/// Executes a POST or PATCH with an `Idempotency-Key` once; every other request passes through.
///
/// Without a caller the key has no owner: the route answers 401. The body is already in memory.
pub(crate) async fn once(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST && request.method() != Method::PATCH {
        return next.run(request).await;
    }
    let Some(Ok(principal)) = auth::identity(request.extensions()) else { return next.run(request).await };
    let who = principal.who;
    let key = match key::read(request.headers()) {
        Ok(Some(key)) => key,
        Ok(None) => return next.run(request).await,
        Err(error) => return error.into_response(),
    };
    match claimed(state, who, &key, request, next).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    }
}

async fn claimed(
    state: ApiState,
    who: Who,
    key: &str,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.map_err(|_| ApiError::internal())?;
    let method = parts.method.as_str();
    let path = parts.uri.path();
    let query = parts.uri.query().unwrap_or_default();
    let claim = Claim {
        id: digest([who.to_string().as_bytes(), method.as_bytes(), path.as_bytes(), key.as_bytes()]),
        fingerprint: digest([method.as_bytes(), path.as_bytes(), query.as_bytes(), &body]),
    };
    let seal = Arc::new(Seal::new(secret(&state, who, &parts.headers)?, claim.id));
    let request = Request::from_parts(parts, Body::from(body));
    let made = Arc::new(Mutex::new(None));
    let work = execute(next, request, Arc::clone(&seal), Arc::clone(&made));
    let now = (state.clock)();
    // In a separate task, so that the work completes even if the client disconnects.
    let port = Arc::clone(&state.idempotency);
    let task = async move { port.once(claim, now, Box::pin(work)).await };
    let outcome = tokio::spawn(task.in_current_span()).await;
    let outcome = outcome.map_err(|error| {
        tracing::error!(%error, "a request with an Idempotency-Key was broken off");
        ApiError::internal()
    })??;
    match outcome {
        Once::Executed => made.lock().take().ok_or_else(ApiError::internal),
        Once::Replayed(kept) => replay(&kept, &seal),
        Once::Reused => Err(ApiError::idempotency_key_reused()),
        Once::Running => Err(ApiError::still_running()),
    }
}

/// Runs the handler and returns the part of its answer to store; puts the answer itself into `made`.
async fn execute(
    next: Next,
    request: Request,
    seal: Arc<Seal>,
    made: Arc<Mutex<Option<Response>>>,
) -> Result<Option<KeptAnswer>, Problem> {
    let (parts, body) = next.run(request).await.into_parts();
    let body = to_bytes(body, ANSWER_LEN_MAX).await.map_err(|_| {
        Problem::Internal("an answer is too long to be kept for its Idempotency-Key".to_owned())
    })?;
    let kept = is_kept(parts.status).then(|| kept(parts.status, &parts.headers, &body, &seal)).flatten();
    let lost = is_kept(parts.status) && kept.is_none();
    *made.lock() = Some(Response::from_parts(parts, Body::from(body)));
    if lost {
        return Err(Problem::Internal("an answer could not be sealed".to_owned()));
    }
    Ok(kept)
}

/// Whether an answer is a result of the request: not a refusal to process it, and not a request to send it
/// again.
fn is_kept(status: StatusCode) -> bool {
    match status {
        StatusCode::BAD_REQUEST
        | StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::METHOD_NOT_ALLOWED
        | StatusCode::REQUEST_TIMEOUT
        | StatusCode::PRECONDITION_FAILED
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE
        | StatusCode::TOO_MANY_REQUESTS => false,
        status => {
            status.is_success() || status.is_client_error() || status == StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}

fn kept(status: StatusCode, headers: &HeaderMap, body: &Bytes, seal: &Seal) -> Option<KeptAnswer> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Some(KeptAnswer {
        status: status.as_u16(),
        content_type: text(CONTENT_TYPE),
        location: text(LOCATION),
        sealed_body: seal.close(body)?,
    })
}

fn replay(kept: &KeptAnswer, seal: &Seal) -> Result<Response, ApiError> {
    let body = seal.open(&kept.sealed_body).ok_or_else(ApiError::answer_unreadable)?;
    let status = StatusCode::from_u16(kept.status).map_err(|_| ApiError::internal())?;
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.remove(CONTENT_TYPE);
    for (name, value) in [(CONTENT_TYPE, &kept.content_type), (LOCATION, &kept.location)] {
        if let Some(value) = value.as_deref().and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.insert(name, value);
        }
    }
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(already_enveloped(response))
}

/// Returns the secret that seals the caller's answers: the credential of an integration; for a user the same one in every
/// session.
fn secret(state: &ApiState, who: Who, headers: &HeaderMap) -> Result<Vec<u8>, ApiError> {
    match who {
        Who::Key(_) => Ok(token(headers).as_bytes().to_vec()),
        Who::User(user) => Ok(state.panel()?.token_key.seal_of(user).to_vec()),
    }
}

/// The caller's credential.
fn token(headers: &HeaderMap) -> &str {
    let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split_once(' ').map_or("", |(_, token)| token.trim())
}

/// SHA-256 of the parts, each preceded by its length, so that different lists have different input.
fn digest<const N: usize>(parts: [&[u8]; N]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

/// The longest answer that is stored; the answers of POST and PATCH are single resources.
const ANSWER_LEN_MAX: usize = 256 * 1024;
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
