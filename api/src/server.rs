//! Serving the routes on a socket.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

use crate::router;
use crate::state::ApiState;

/// Answers requests on `listener` until `shutdown` completes and the requests in hand are done.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    state: ApiState,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let service = router(state).into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(shutdown).await
}
