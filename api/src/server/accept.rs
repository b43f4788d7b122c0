//! Accepts connections up to a limit; does not loop busily if the system has no resources.

use std::future::Future;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::router;
use crate::server::connection::Connection;
use crate::server::counters::ServerCounters;
use crate::server::places::{Place, Places};
use crate::server::refusal::{Refusals, refusals};
use crate::settings::SharedSettings;
use crate::state::ApiState;

/// The HTTP API on a listener.
pub struct HttpServer {
    /// Closed at the end, so that no further client can connect.
    listener: Option<TcpListener>,
    state: ApiState,
    tls: Option<HttpTls>,
    pages: Option<Pages>,
}

/// Puts other pages in front of the routes of the API; the pages can call these routes within the process.
pub type Pages = Arc<dyn Fn(Router) -> Router + Send + Sync>;

/// Returns the TLS settings of the next connection; `None` if there is no certificate.
pub type HttpTls = Arc<dyn Fn() -> Option<Arc<ServerConfig>> + Send + Sync>;

impl HttpServer {
    /// Returns a server on `listener`.
    pub fn new(listener: TcpListener, state: ApiState) -> Self {
        Self { listener: Some(listener), state, tls: None, pages: None }
    }

    /// Accepts only connections over TLS; `tls` is called for each connection.
    #[must_use]
    pub fn secured(mut self, tls: HttpTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Serves these pages in front of the API.
    #[must_use]
    pub fn with_pages(mut self, pages: Pages) -> Self {
        self.pages = Some(pages);
        self
    }

    /// Answers requests until `shutdown` completes and the requests in progress are done, for which they have
    /// a few seconds. May be called again after a panic: the listener stays open, the connections of that run
    /// are closed.
    pub async fn run(&mut self, shutdown: impl Future<Output = ()> + Send) {
        let state = self.state.clone();
        let (settings, counters) = (state.settings.clone(), Arc::clone(&state.server));
        let refusals = refusals(&state);
        let api = router(state);
        let router = self.pages.as_ref().map_or_else(|| api.clone(), |pages| pages(api.clone()));
        let served = Served { router, settings, counters, refusals, tls: self.tls.clone() };
        serve_router(&mut self.listener, served, shutdown).await;
    }
}

/// The state shared by all connections.
pub(super) struct Served {
    pub(super) router: Router,
    pub(super) settings: SharedSettings,
    pub(super) counters: Arc<ServerCounters>,
    pub(super) refusals: Refusals,
    pub(super) tls: Option<HttpTls>,
}

/// Like [`HttpServer::run`], with any routes.
pub(super) async fn serve_router(
    listening: &mut Option<TcpListener>,
    served: Served,
    shutdown: impl Future<Output = ()>,
) {
    let (stop, stopped) = watch::channel(false);
    let mut server = Server { served, places: Places::default(), connections: JoinSet::new(), stopped };
    let Some(listener) = listening else { return };
    let mut shutdown = pin!(shutdown);
    let mut pause = None;
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            // Finished tasks are removed as they finish, not when the server stops.
            Some(ended) = server.connections.join_next() => server.note_end(&ended),
            accepted = accept(listener, pause) => match accepted {
                Ok((stream, peer)) => {
                    pause = None;
                    server.take(stream, peer);
                }
                Err(error) => pause = server.failed(&error, pause),
            }
        }
    }
    // New clients cannot connect; connected ones get the answer in progress.
    *listening = None;
    let _ = stop.send(true);
    let finish = async { while server.connections.join_next().await.is_some() {} };
    if tokio::time::timeout(FINISH_MAX, finish).await.is_err() {
        tracing::warn!(connections = server.connections.len(), "requests were broken off at the end");
    }
}

struct Server {
    served: Served,
    places: Places,
    /// *Bounds*: the number that [`Places`] allows.
    connections: JoinSet<()>,
    stopped: watch::Receiver<bool>,
}

/// Accepts the next connection, after the pause that a failure requires.
async fn accept(listener: &TcpListener, pause: Option<Duration>) -> io::Result<(TcpStream, SocketAddr)> {
    if let Some(pause) = pause {
        tokio::time::sleep(pause).await;
    }
    listener.accept().await
}

impl Server {
    fn take(&mut self, stream: TcpStream, peer: SocketAddr) {
        let Served { router, settings, counters, refusals, tls } = &self.served;
        let settings = settings.current();
        let acceptor = match tls {
            None => None,
            Some(tls) => match tls() {
                Some(config) => Some(TlsAcceptor::from(config)),
                None => return,
            },
        };
        match self.places.take(peer.ip(), &settings) {
            Ok(place) => {
                let (router, counters) = (router.clone(), Arc::clone(counters));
                let connection = Open::new(place, Arc::clone(&counters));
                let stopped = self.stopped.clone();
                let refusals = Arc::clone(refusals);
                let refuse = Arc::new(move |status| refusals(status, peer.ip()));
                let time = settings.header_time;
                self.connections.spawn(async move {
                    let _open = connection;
                    // Answers are written as a whole, so waiting for more data would only delay them. A socket
                    // that refuses the option is slower, but works.
                    let _ = stream.set_nodelay(true);
                    let serve = Connection { peer, router, settings, counters, refuse, stop: stopped };
                    match acceptor {
                        None => serve.run(stream).await,
                        Some(acceptor) => {
                            // If the handshake fails or takes too long, the client gets an alert at most.
                            if let Ok(Ok(stream)) = timeout(time, acceptor.accept(stream)).await {
                                Box::pin(serve.run(stream)).await;
                            }
                        }
                    }
                });
            }
            Err(why) => {
                counters.refused(why);
                if tls.is_none() {
                    refuse(stream, &(refusals)(StatusCode::SERVICE_UNAVAILABLE, peer.ip()));
                }
            }
        }
    }

    fn note_end(&self, ended: &Result<(), JoinError>) {
        if ended.as_ref().is_err_and(JoinError::is_panic) {
            self.served.counters.panicked();
        }
    }

    /// How long to wait before the next attempt: not at all if the failure concerns one client, and
    /// increasingly long if the system has no more sockets or memory. An immediate retry would only use CPU
    /// time.
    fn failed(&self, error: &io::Error, pause: Option<Duration>) -> Option<Duration> {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
        if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted) {
            return None;
        }
        self.served.counters.accept_failed();
        match pause {
            None => tracing::error!(%error, "the system gives no connection for HTTP, trying again"),
            Some(_) => tracing::debug!(%error, "the system still gives no connection for HTTP"),
        }
        Some(pause.map_or(PAUSE_MIN, |pause| (pause * 2).min(PAUSE_MAX)))
    }
}

/// Counts one open connection and holds its place.
struct Open {
    _place: Place,
    counters: Arc<ServerCounters>,
}

impl Open {
    fn new(place: Place, counters: Arc<ServerCounters>) -> Self {
        counters.opened();
        Self { _place: place, counters }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.counters.ended();
    }
}

/// Sends 503 and closes, without waiting: a new socket has space for these few bytes.
fn refuse(stream: TcpStream, answer: &[u8]) {
    if let Ok(mut stream) = stream.into_std() {
        // A client that has disconnected needs no answer.
        let _ = stream.write(answer);
        let _ = stream.shutdown(Shutdown::Write);
    }
}

/// How long requests in progress may take after the server stops.
const FINISH_MAX: Duration = Duration::from_secs(4);
const PAUSE_MAX: Duration = Duration::from_secs(1);
const PAUSE_MIN: Duration = Duration::from_millis(50);
