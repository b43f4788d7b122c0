//! Answers the requests that other nodes forward.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use axum::response::IntoResponse;
use sidetone_model::cluster::{PeerAnswer, PeerRequest};
use tower::ServiceExt as _;

use crate::error::ApiError;
use crate::from_peer::FromPeer;
use crate::peers::{PASSED_ON, to_answer};
use crate::router::router;
use crate::state::ApiState;

/// The API as other nodes of the cluster use it; clones share it.
#[derive(Clone)]
pub struct PeerService {
    router: Router,
}

impl PeerService {
    /// The API with this state.
    pub fn new(state: ApiState) -> Self {
        PeerService { router: router(state) }
    }

    /// Answers a request: the token is checked like that of any client, against the address of the client.
    pub async fn answer(&self, request: PeerRequest) -> PeerAnswer {
        let Some(request) = read(request) else {
            return refusal(ApiError::of_status(StatusCode::BAD_REQUEST)).await;
        };
        let response = match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let (parts, body) = response.into_parts();
        match to_bytes(body, ANSWER_BYTES_MAX).await {
            Ok(bytes) => to_answer(parts.status, &parts.headers, bytes.to_vec()),
            Err(_) => refusal(ApiError::too_long_for_peers()).await,
        }
    }
}

/// Converts the request into one for the router.
fn read(request: PeerRequest) -> Option<Request<Body>> {
    let PeerRequest { method, target, headers, client, body } = request;
    let method = Method::from_bytes(method.as_bytes()).ok()?;
    let mut built =
        Request::builder().method(method).uri(format!("/api/v1{target}")).body(Body::from(body)).ok()?;
    for (name, value) in headers {
        let name = PASSED_ON.iter().find(|known| known.as_str() == name).cloned();
        if let (Some(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
            let name: HeaderName = name;
            built.headers_mut().insert(name, value);
        }
    }
    built.extensions_mut().insert(FromPeer(client));
    Some(built)
}

async fn refusal(error: ApiError) -> PeerAnswer {
    let (parts, body) = error.into_response().into_parts();
    let bytes = to_bytes(body, ANSWER_BYTES_MAX).await.unwrap_or_default();
    to_answer(parts.status, &parts.headers, bytes.to_vec())
}

/// Fits into a message of NATS, which holds 1 MiB by default.
const ANSWER_BYTES_MAX: usize = 1_000_000;
