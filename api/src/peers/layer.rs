//! The layer that forwards requests to the right nodes. It is inside authentication: no other node gets an
//! unauthenticated request.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{OriginalUri, Request, State};
use axum::http::request::Parts;
use axum::http::response;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use sidetone_model::cluster::{LiveThing, Owner, PeerRequest, Peers};
use sidetone_model::ids::CallRequestId;
use sidetone_model::page::Window;
use sidetone_model::problem::FieldProblem;

use crate::auth::{Client, identity};
use crate::error::ApiError;
use crate::from_peer::FromPeer;
use crate::page;
use crate::peers::concern::{Concern, ListKind};
use crate::peers::merge::{is_cut, merge, merge_members, merge_trunk_status};
use crate::peers::message::{to_peer, to_response};
use crate::state::ApiState;

/// Forwards a request to the nodes that it concerns.
pub(crate) async fn route(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let Some(peers) = state.peers.clone() else { return next.run(request).await };
    let extensions = request.extensions();
    let is_ours = extensions.get::<FromPeer>().is_some() || !matches!(identity(extensions), Some(Ok(_)));
    let Some(client) = extensions.get::<Client>().map(|client| client.address()).filter(|_| !is_ours) else {
        return next.run(request).await;
    };
    let answered = match Concern::of(request.method(), request.uri().path()) {
        Concern::Any => Ok(next.run(request).await),
        Concern::List(kind) => gather(&peers, kind, client, request, next).await,
        Concern::StoredRooms => of_all(&peers, merge_members, client, request, next).await,
        Concern::TrunkStatus => of_all(&peers, merge_trunk_status, client, request, next).await,
        Concern::Owner(thing) => owned(&state, &peers, thing, client, request, next).await,
        Concern::SoonStored => soon_stored(&peers, client, request, next).await,
        Concern::CallOf(asked) => match call_of(&state, asked).await {
            Ok(Some(call)) => owned(&state, &peers, call, client, request, next).await,
            Ok(None) => Ok(next.run(request).await),
            Err(error) => Err(error),
        },
    };
    answered.unwrap_or_else(IntoResponse::into_response)
}

/// Lets the owner of a live call or room answer: this node, if it or no node is the owner.
async fn owned(
    state: &ApiState,
    peers: &Arc<dyn Peers>,
    thing: LiveThing,
    client: IpAddr,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if is_here(state, thing).await? {
        return Ok(next.run(request).await);
    }
    let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
    match peers.owner(thing).await? {
        Owner::Absent => Ok(next.run(request).await),
        // Stored data can be read; a live call or room cannot be controlled if a node that does not answer
        // may own it.
        Owner::Unknown(missing) if is_read => Ok(without(next.run(request).await, &missing)),
        Owner::Unknown(missing) => Ok(without(ApiError::busy(RETRY_AFTER_S).into_response(), &missing)),
        Owner::Node(node) => {
            let (parts, body) = request.into_parts();
            let body = to_bytes(body, usize::MAX).await.map_err(|_| ApiError::broken_body())?;
            let request = to_peer(&parts, target(&parts), client, body.to_vec());
            Ok(to_response(peers.forward(node, request).await?))
        }
    }
}

/// Lets this node answer. If it answers 404, asks all nodes: one may have the data in memory and not have
/// stored them yet.
async fn soon_stored(
    peers: &Arc<dyn Peers>,
    client: IpAddr,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let asked = to_peer(&parts, target(&parts), client, Vec::new());
    let own = next.run(Request::from_parts(parts, body)).await;
    if own.status() != StatusCode::NOT_FOUND {
        return Ok(own);
    }
    let gathered = peers.ask_all(asked).await?;
    match gathered.answers.into_iter().find(|answer| answer.status < 400) {
        Some(answer) => Ok(to_response(answer)),
        None => Ok(without(own, &gathered.missing)),
    }
}

/// The call of a call request; `None` if there is no such request, which the handler then reports.
async fn call_of(state: &ApiState, request: CallRequestId) -> Result<Option<LiveThing>, ApiError> {
    let Some(requests) = &state.call_requests else { return Ok(None) };
    Ok(requests.find(request).await?.map(|found| LiveThing::Call(found.call_uuid)))
}

async fn is_here(state: &ApiState, thing: LiveThing) -> Result<bool, ApiError> {
    Ok(match (thing, &state.live_calls, &state.live_rooms) {
        (LiveThing::Call(call), Some(calls), _) => calls.find(call).await?.is_some(),
        (LiveThing::Room(room), _, Some(rooms)) => rooms.find(room).await?.is_some(),
        (LiveThing::RoomOfCall(call), _, Some(rooms)) => rooms.by_call(call).await?.is_some(),
        _ => true,
    })
}

/// Gathers a list from all nodes.
async fn gather(
    peers: &Arc<dyn Peers>,
    kind: ListKind,
    client: IpAddr,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let Some(Asked { offset, limit, by_cursor }) = window(request.uri())? else {
        // A wrong query; this node reports the problem.
        return Ok(next.run(request).await);
    };
    let (parts, _) = request.into_parts();
    // Each node is asked for its first items, because any of them may be in the window.
    let wanted = offset.saturating_add(limit.into());
    let first = u32::try_from(wanted).unwrap_or(u32::MAX).min(Window::LIMIT_MAX);
    let uri = first_items(&parts.uri, first);
    let asked = to_peer(&parts, uri.to_string(), client, Vec::new());
    let Pages { head, pages, missing } = match ask_all(peers, asked, next.run(local(&parts, &uri))).await? {
        Ok(pages) => pages,
        Err(refusal) => return Ok(refusal),
    };
    // If every node has sent all its items, the window may be anywhere.
    let is_cut = wanted > u64::from(first) && pages.iter().flatten().any(is_cut);
    if is_cut {
        return Err(ApiError::invalid(vec![FieldProblem {
            field: "offset".to_owned(),
            message: format!(
                "offset and limit together must be at most {} in a cluster with more items at a node: filter by \
                 organisation_id or extension_id",
                Window::LIMIT_MAX
            ),
        }]));
    }
    let mut merged =
        pages.and_then(|pages| merge(kind, pages, offset, limit)).ok_or_else(ApiError::internal)?;
    if let Some(page) = merged.as_object_mut().filter(|_| by_cursor) {
        // Cursors lead to no second page here.
        page.insert("next_cursor".to_owned(), Value::Null);
    }
    Ok(merged_page(head, merged, &missing))
}

/// The merged answers of this node and all other nodes.
async fn of_all(
    peers: &Arc<dyn Peers>,
    merge: fn(Vec<Value>) -> Option<Value>,
    client: IpAddr,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let (parts, _) = request.into_parts();
    let asked = to_peer(&parts, target(&parts), client, Vec::new());
    let own = next.run(local(&parts, &parts.uri));
    match ask_all(peers, asked, own).await? {
        Ok(Pages { head, pages, missing }) => {
            let merged = pages.and_then(merge).ok_or_else(ApiError::internal)?;
            Ok(merged_page(head, merged, &missing))
        }
        Err(refusal) => Ok(refusal),
    }
}

/// The pages of all nodes.
struct Pages {
    /// The response head of this node.
    head: response::Parts,
    /// The pages, that of this node first; `None` when one is not JSON.
    pages: Option<Vec<Value>>,
    /// The nodes that have not answered in time.
    missing: Vec<String>,
}

/// Requests the pages of all nodes while this node makes its own. Returns only the own answer if its status
/// is not 200.
async fn ask_all(
    peers: &Arc<dyn Peers>,
    asked: PeerRequest,
    own: impl Future<Output = Response>,
) -> Result<Result<Pages, Response>, ApiError> {
    let (own, gathered) = tokio::join!(own, peers.ask_all(asked));
    if own.status() != StatusCode::OK {
        return Ok(Err(own));
    }
    let (head, body) = own.into_parts();
    let own = to_bytes(body, usize::MAX).await.map_err(|_| ApiError::internal())?;
    let gathered = gathered?;
    let answers =
        gathered.answers.iter().filter(|answer| answer.status == 200).map(|answer| answer.body.as_slice());
    let pages = [own.as_ref()].into_iter().chain(answers).map(|page| serde_json::from_slice(page).ok());
    Ok(Ok(Pages { head, pages: pages.collect(), missing: gathered.missing }))
}

/// The answer of this node with the merged page.
fn merged_page(mut head: response::Parts, page: Value, missing: &[String]) -> Response {
    head.headers.remove(axum::http::header::CONTENT_LENGTH);
    let mut response = Json(page).into_response();
    response.headers_mut().extend(head.headers);
    without(response, missing)
}

/// The requested window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    offset: u64,
    limit: u32,
    /// Whether it is the first page by cursor.
    by_cursor: bool,
}

/// The window of a list; `None` when its numbers cannot be read.
///
/// # Errors
/// A further page by cursor, because a cursor is a position in the list of one node.
fn window(uri: &Uri) -> Result<Option<Asked>, ApiError> {
    let (mut limit, mut offset, mut cursor) = (None, None, None);
    let read = page::read(uri, |name, value| {
        match name {
            "limit" => limit = Some(page::limit(value)?),
            "offset" => offset = Some(page::count(value)?),
            "cursor" => cursor = Some(value.to_owned()),
            // The handler of the list reads its other parameters.
            _ => {}
        }
        Ok(())
    });
    if read.is_err() {
        return Ok(None);
    }
    if cursor.as_ref().is_some_and(|cursor| !cursor.is_empty()) {
        return Err(ApiError::invalid(vec![FieldProblem {
            field: "cursor".to_owned(),
            message: "must be empty for live lists of a cluster, which have one page by cursor: use limit and offset".to_owned(),
        }]));
    }
    let (offset, limit) = (offset.unwrap_or_default(), limit.unwrap_or(Window::LIMIT_DEFAULT));
    Ok(Some(Asked { offset, limit, by_cursor: cursor.is_some() }))
}

/// The same list, starting at its first item.
fn first_items(uri: &Uri, limit: u32) -> Uri {
    let others = uri.query().unwrap_or_default().split('&').filter(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        !pair.is_empty() && !["limit", "offset", "cursor"].contains(&name)
    });
    let mut query: Vec<&str> = others.collect();
    let own = format!("limit={limit}");
    query.push(&own);
    let text = format!("{}?{}", uri.path(), query.join("&"));
    // It consists of parts of a valid URI.
    text.parse().unwrap_or_else(|_| uri.clone())
}

/// The request for this node's part.
fn local(parts: &Parts, uri: &Uri) -> Request {
    let mut parts = parts.clone();
    parts.uri = uri.clone();
    parts.extensions.insert(OriginalUri(uri.clone()));
    Request::from_parts(parts, Body::empty())
}

/// Path and query below `/api/v1`.
fn target(parts: &Parts) -> String {
    parts.uri.path_and_query().map_or_else(|| "/".to_owned(), |target| target.as_str().to_owned())
}

/// Names the nodes whose part is missing.
fn without(mut response: Response, missing: &[String]) -> Response {
    if !missing.is_empty()
        && let Ok(names) = HeaderValue::from_str(&missing.join(", "))
    {
        response.headers_mut().insert(MISSING, names);
    }
    response
}

/// Names the nodes that did not answer in time, so that their part is missing.
const MISSING: HeaderName = HeaderName::from_static("x-sidetone-missing");
const RETRY_AFTER_S: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_asked_of_every_node_from_its_first_item_on() {
        let uri: Uri = "/calls?state=answered&limit=10&offset=20".parse().unwrap();
        let asked = Asked { offset: 20, limit: 10, by_cursor: false };
        assert_eq!(window(&uri).unwrap(), Some(asked));
        assert_eq!(first_items(&uri, 30).to_string(), "/calls?state=answered&limit=30");
        assert_eq!(first_items(&"/calls".parse().unwrap(), 50).to_string(), "/calls?limit=50");
        assert_eq!(window(&"/calls?limit=x".parse().unwrap()).unwrap(), None);
        let first: Uri = "/calls?limit=500&cursor=".parse().unwrap();
        assert_eq!(window(&first).unwrap(), Some(Asked { offset: 0, limit: 500, by_cursor: true }));
        assert_eq!(first_items(&first, 500).to_string(), "/calls?limit=500");
        assert!(window(&"/calls?cursor=x".parse().unwrap()).is_err());
    }
}
