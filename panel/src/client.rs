//! In-process requests to the HTTP API, on behalf of the visitor.

use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tower::ServiceExt;

use crate::failure::Failure;
use crate::form::{Fields, query_value};

/// The API, called as one client: with its address, and with its token if it has one.
#[derive(Clone)]
pub(crate) struct Client {
    api: Router,
    peer: Option<SocketAddr>,
    /// Headers that identify the client, for the limits and the log of the API.
    headers: HeaderMap,
    token: Option<String>,
}

impl Client {
    /// The client of a request.
    pub(crate) fn of(api: &Router, parts: &Parts, token: Option<&str>) -> Self {
        let headers = parts.headers.iter().filter(|(name, _)| CARRIED.contains(&name.as_str()));
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| *peer);
        Self {
            api: api.clone(),
            peer,
            headers: headers.map(|(name, value)| (name.clone(), value.clone())).collect(),
            token: token.map(str::to_owned),
        }
    }

    /// `GET path`, below `/api/v1`.
    ///
    /// # Errors
    /// The failure that the API reports.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.send(Method::GET, path, None).await
    }

    /// `GET path`; null for 404: the resource does not exist, or this process lacks that part.
    ///
    /// # Errors
    /// Any other failure that the API reports.
    pub(crate) async fn find(&self, path: &str) -> Result<Value, Failure> {
        match self.get(path).await {
            Err(failure) if failure.status == StatusCode::NOT_FOUND => Ok(Value::Null),
            found => found,
        }
    }

    /// The state of the engine, from `/readyz`.
    ///
    /// # Errors
    /// Why the engine is not ready, or that this process has no engine.
    pub(crate) async fn readiness(&self) -> Result<Value, Failure> {
        let request = Request::builder().uri("/readyz").body(Body::empty());
        let request = request.map_err(|_| Failure::nothing_here())?;
        let Ok(response) = self.api.clone().oneshot(request).await;
        read(response.into_response()).await
    }

    /// A page of a list, at the cursor in the visitor's query; an empty cursor requests the first page.
    ///
    /// # Errors
    /// The failure that the API reports.
    pub(crate) async fn list(&self, path: &str, limit: u32, query: Option<&str>) -> Result<Value, Failure> {
        let cursor = query_value(Fields::of_query(query).get("cursor"));
        self.get(&format!("{path}?limit={limit}&cursor={cursor}")).await
    }

    /// `method path`, below `/api/v1`, with a JSON body.
    ///
    /// # Errors
    /// The failure that the API reports.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let body = body.map(|body| ("application/json", Body::from(body.to_string())));
        self.answer(method, path, body).await
    }

    /// `PUT path`, below `/api/v1`, with a WAV file. The API checks whether it is one.
    ///
    /// # Errors
    /// The failure that the API reports.
    pub(crate) async fn put_wav(&self, path: &str, wav: Vec<u8>) -> Result<Value, Failure> {
        self.answer(Method::PUT, path, Some(("audio/wav", Body::from(wav)))).await
    }

    async fn answer(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, Body)>,
    ) -> Result<Value, Failure> {
        read(self.request(method, path, body, &HeaderMap::new()).await?).await
    }

    /// The answer to `GET path` unchanged: a file, or a stream. `asked` are the headers of the visitor's
    /// request.
    ///
    /// # Errors
    /// The failure that the API reports.
    pub(crate) async fn pass(&self, path: &str, asked: &HeaderMap) -> Result<Response, Failure> {
        let response = self.request(Method::GET, path, None, asked).await?;
        let status = response.status();
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            return Ok(response);
        }
        let bytes = to_bytes(response.into_body(), ANSWER_LEN_MAX).await.unwrap_or_default();
        Err(Failure::of(status, &serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, Body)>,
        asked: &HeaderMap,
    ) -> Result<Response, Failure> {
        let mut request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        for (name, value) in self.headers.iter() {
            request = request.header(name, value);
        }
        for name in PASSED {
            if let Some(value) = asked.get(&name) {
                request = request.header(name, value);
            }
        }
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(peer) = self.peer {
            request = request.extension(ConnectInfo(peer));
        }
        let request = match body {
            Some((kind, body)) => request.header(CONTENT_TYPE, kind).body(body),
            None => request.body(Body::empty()),
        };
        // A token or an address with characters that a header cannot contain.
        let request =
            request.map_err(|_| Failure::new(StatusCode::BAD_REQUEST, "the address is not valid"))?;
        let Ok(response) = self.api.clone().oneshot(request).await;
        Ok(response.into_response())
    }
}

/// Reads a JSON answer.
async fn read(response: Response) -> Result<Value, Failure> {
    let status = response.status();
    let bytes = to_bytes(response.into_body(), ANSWER_LEN_MAX).await;
    let bytes = bytes.map_err(|_| Failure::new(StatusCode::BAD_GATEWAY, "the answer was not complete"))?;
    // An answer without a body contains nothing to show.
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    if status.is_success() { Ok(body) } else { Err(Failure::of(status, &body)) }
}

/// Headers of the visitor that the API uses in any request.
const CARRIED: [&str; 2] = ["x-forwarded-for", "x-request-id"];
/// Headers of the visitor that files and streams use.
const PASSED: [HeaderName; 6] = [
    axum::http::header::ACCEPT_ENCODING,
    axum::http::header::IF_NONE_MATCH,
    axum::http::header::IF_RANGE,
    HeaderName::from_static("last-event-id"),
    axum::http::header::RANGE,
    axum::http::header::IF_MODIFIED_SINCE,
];
/// The longest JSON that a page shows; the figures of the longest calls are a tenth of it.
const ANSWER_LEN_MAX: usize = 16 * 1024 * 1024;
