//! HTTP/1.1 and HTTP/2 on one connection, until it ends, takes too long, or the server stops.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tower::ServiceExt;

use crate::server::counters::ServerCounters;
use crate::server::watch::{Late, Watch};
use crate::server::wire::{InHand, Pulse, Refuse, WatchedBody, WatchedIo};
use crate::settings::HttpSettings;

/// One connection that is not served yet.
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    pub(super) router: Router,
    pub(super) settings: Arc<HttpSettings>,
    pub(super) counters: Arc<ServerCounters>,
    pub(super) refuse: Refuse,
    pub(super) stop: watch::Receiver<bool>,
}

impl Connection {
    /// Serves the connection to its end.
    pub(super) async fn run(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Connection { peer, router, settings, counters, refuse, stop } = self;
        let pulse = Pulse::new(Watch::new(Instant::now().into_std(), &settings));
        let io = TokioIo::new(WatchedIo::new(stream, pulse.clone(), refuse));
        let requests = pulse.clone();
        let service = service_fn(move |request| answer(router.clone(), peer, requests.clone(), request));
        let builder = builder();
        let connection = pin!(builder.serve_connection(io, service));
        watch_over(connection, &pulse, &counters, stop).await;
    }
}

/// Waits for the end of a connection, and ends it when it takes too long or the server stops.
async fn watch_over<C: GracefulConnection>(
    mut connection: Pin<&mut C>,
    pulse: &Pulse,
    counters: &ServerCounters,
    mut stop: watch::Receiver<bool>,
) {
    let mut stopping = false;
    let mut give_up: Option<Instant> = None;
    loop {
        let due = pulse.with(|watch, now| {
            let look_again = now + watch.look_again_after();
            watch.deadline().map_or(look_again, |(at, _)| at.min(look_again))
        });
        let due = give_up.map_or(due.into(), |at| at.min(due.into()));
        tokio::select! {
            // A broken connection concerns only the client, who cannot be notified.
            _ = connection.as_mut() => return,
            _ = stop.wait_for(|stop| *stop), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            () = sleep_until(due) => {}
        }
        if give_up.is_some_and(|at| at <= Instant::now()) {
            return;
        }
        match pulse.with(|watch, now| watch.deadline().filter(|(at, _)| *at <= now)) {
            None => {}
            Some((_, Late::Idle)) if give_up.is_none() => {
                counters.closed(Late::Idle);
                // GOAWAY notifies an HTTP/2 client that its next request belongs on another connection.
                connection.as_mut().graceful_shutdown();
                give_up = Some(Instant::now() + FAREWELL);
            }
            Some((_, Late::Idle)) => {}
            Some((_, Late::Header)) if give_up.is_some() => {}
            Some((_, Late::Header)) if pulse.with(|watch, _| watch.is_within_head()) => {
                counters.closed(Late::Header);
                // The socket answers 408 as soon as hyper reads on for more of the head.
                pulse.expire();
                give_up = Some(Instant::now() + FAREWELL);
            }
            Some((_, late)) => {
                counters.closed(late);
                return;
            }
        }
    }
}

/// The protocols and their limits.
fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // The watch distinguishes a slow head from a pause between two requests; this timer does not.
        .header_read_timeout(None)
        .max_buf_size(HEAD_LEN_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEADER_LIST_LEN_MAX)
        // Streams that are opened and immediately reset (CVE-2023-44487, CVE-2025-8671) end the connection.
        .max_pending_accept_reset_streams(RESET_STREAMS_MAX)
        .max_local_error_reset_streams(RESET_STREAMS_MAX)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIME);
    builder
}

/// Passes a request to the routes, with its source address.
async fn answer(
    router: Router,
    peer: SocketAddr,
    pulse: Pulse,
    request: Request<Incoming>,
) -> Result<Response<WatchedBody>, Infallible> {
    let http2 = request.version() == Version::HTTP_2;
    let in_hand = InHand::new(pulse.clone(), http2);
    let is_head = request.method() == Method::HEAD;
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(ConnectInfo(peer));
    let response = router.oneshot(request).await?;
    pulse.answered(is_head, http2);
    Ok(response.map(|body| WatchedBody::new(body, in_hand)))
}

/// Bytes of bodies in flight on one HTTP/2 connection.
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// How long a connection may take to end after its graceful shutdown began.
const FAREWELL: Duration = Duration::from_secs(1);
/// A request's line and headers in HTTP/1.1; a longer head gets 431.
const HEAD_LEN_MAX: usize = 64 * 1024;
/// A request's headers in HTTP/2, as RFC 9113 §10.5.1 counts them, including those that the routes refuse:
/// beyond this the library answers 431 without a body.
const HEADER_LIST_LEN_MAX: u32 = 256 * 1024;
/// How often an idle HTTP/2 client gets a ping.
const PING_EVERY: Duration = Duration::from_secs(20);
/// How long its answer may take.
const PING_TIME: Duration = Duration::from_secs(10);
/// Streams reset by the client, or by the server for the client's errors, that one HTTP/2 connection may
/// accumulate.
const RESET_STREAMS_MAX: usize = 20;
/// Concurrent requests on one HTTP/2 connection.
const STREAMS_MAX: u32 = 100;
