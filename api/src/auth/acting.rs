//! Assigns work to the caller's organisation: store access for a request, including its answer's body, counts
//! against the share of that organisation.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use sidetone_model::ids::OrganisationId;
use sidetone_model::ports::Tenants;

use crate::auth::caller::identity;
use crate::state::ApiState;

/// Processes the request of an authenticated caller on behalf of its organisation.
pub(crate) async fn act(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let organisation = match identity(request.extensions()) {
        Some(Ok(principal)) => principal.organisation_id,
        Some(Err(_)) | None => return next.run(request).await,
    };
    let tenants = Arc::clone(&state.tenants);
    let work = Box::pin(next.run(request));
    let response = Acting { tenants: Arc::clone(&tenants), organisation, work }.await;
    response.map(|body| {
        if body.is_end_stream() { body } else { Body::new(ActingBody { tenants, organisation, body }) }
    })
}

/// A future that is polled on behalf of an organisation.
struct Acting<F> {
    tenants: Arc<dyn Tenants>,
    organisation: OrganisationId,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for Acting<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let mut poll = Poll::Pending;
        this.tenants.acting_for(this.organisation, &mut || poll = this.work.as_mut().poll(context));
        poll
    }
}

/// A body that is produced on behalf of an organisation.
struct ActingBody {
    tenants: Arc<dyn Tenants>,
    organisation: OrganisationId,
    body: Body,
}

impl HttpBody for ActingBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let mut poll = Poll::Pending;
        this.tenants
            .acting_for(this.organisation, &mut || poll = Pin::new(&mut this.body).poll_frame(context));
        poll
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
