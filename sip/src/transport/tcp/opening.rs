//! Opens a connection: TCP, then the handshakes of TLS and WebSocket. One deadline covers them all; a connection that
//! exceeds it is closed and counted as timed out.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::rustls::CommonState;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};
use tokio_tungstenite::tungstenite::Error;

use crate::flow::Protocol;
use crate::transport::arrival::Arrival;
use crate::transport::tcp::connection::Connection;
use crate::transport::tcp::limits::{PROBE_AFTER, PROBE_EVERY, PROBES};
use crate::transport::tcp::websocket;

/// Why a connection was not opened.
enum Unopened {
    /// It was displaced, or the transport stops.
    Ended,
    /// A handshake failed.
    Failed(io::Error),
    /// A handshake took too long.
    Timeout,
}

impl Connection {
    /// Opens the connection and runs it.
    pub(super) async fn dial(self) {
        let connecting = TcpStream::connect(self.seat.flow.remote);
        match timeout(self.seat.table().limits().stall_max, connecting).await {
            Ok(Ok(stream)) => self.serve(stream).await,
            Ok(Err(_)) | Err(_) => self.finish_unopened().await,
        }
    }

    /// Runs a connection from its handshakes on.
    pub(super) async fn serve(mut self, stream: TcpStream) {
        // Messages are written whole, so waiting for more data only delays them. Without this option the
        // socket still works, only slower.
        let _ = stream.set_nodelay(true);
        // Detects a dead peer while no message is sent, also in a call of hours.
        let _ = SockRef::from(&stream).set_tcp_keepalive(&keep_alive());
        self.seat.table().set_local(&self.seat.flow, stream.local_addr().ok());
        let deadline = Instant::now() + self.seat.table().limits().handshake_max;
        // Everything except TCP is on the heap, so that a plain connection does not reserve the memory.
        match self.seat.flow.protocol {
            Protocol::Tcp | Protocol::Udp => {
                let (reader, writer) = stream.into_split();
                self.exchange(reader, writer).await;
            }
            Protocol::Tls => match Box::pin(self.secure(stream, deadline)).await {
                Ok(stream) => {
                    let (reader, writer) = tokio::io::split(stream);
                    Box::pin(self.exchange(reader, writer)).await;
                }
                Err(why) => self.fail(why).await,
            },
            Protocol::Ws => Box::pin(self.serve_frames(stream, deadline)).await,
            Protocol::Wss => match Box::pin(self.secure(stream, deadline)).await {
                Ok(stream) => Box::pin(self.serve_frames(stream, deadline)).await,
                Err(why) => self.fail(why).await,
            },
        }
    }

    /// Runs a WebSocket from its handshake on.
    async fn serve_frames<S>(mut self, stream: S, deadline: Instant)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let origins = Arc::clone(&self.origins);
        let accepting = async {
            websocket::accept(stream, &origins).await.map_err(|error| match error {
                Error::Io(error) => error,
                error => io::Error::other(error),
            })
        };
        match self.within(deadline, accepting).await {
            Ok(socket) => self.exchange_frames(socket).await,
            Err(why) => self.fail(why).await,
        }
    }

    /// Performs the handshake of TLS, and reports the names that the client's certificate proves.
    async fn secure(
        &mut self,
        stream: TcpStream,
        deadline: Instant,
    ) -> Result<Box<TlsStream<TcpStream>>, Unopened> {
        let flow = self.seat.flow;
        let settings = self.tls.clone().ok_or_else(unconfigured)?;
        if flow.listener.is_outbound() {
            let server = self.server.clone().ok_or_else(unconfigured)?;
            let config = settings.client(&server).ok_or_else(unconfigured)?;
            let name = ServerName::try_from(server.to_string())
                .map_err(|error| Unopened::Failed(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
            let stream = self.within(deadline, TlsConnector::from(config).connect(name, stream)).await?;
            return Ok(Box::new(TlsStream::from(stream)));
        }
        let config = settings.server(flow.protocol).ok_or_else(unconfigured)?;
        let stream = self.within(deadline, TlsAcceptor::from(config).accept(stream)).await?;
        let shown = CommonState::peer_certificates(stream.get_ref().1).unwrap_or_default();
        let names = if shown.is_empty() { Vec::new() } else { settings.client_names(shown) };
        if !names.is_empty() {
            self.seat.outbox.trust();
            // The driver is absent only when the engine stops.
            let _ = self.arrivals.send(Arrival::Identified { flow, names }).await;
        }
        Ok(Box::new(TlsStream::from(stream)))
    }

    /// The result of a handshake that ends in time.
    async fn within<T>(
        &mut self,
        deadline: Instant,
        handshake: impl Future<Output = io::Result<T>>,
    ) -> Result<T, Unopened> {
        let outbox = self.seat.outbox.clone();
        tokio::select! {
            result = timeout_at(deadline, handshake) => match result {
                Ok(result) => result.map_err(Unopened::Failed),
                Err(_) => Err(Unopened::Timeout),
            },
            () = outbox.ending() => Err(Unopened::Ended),
            _ = self.stop.changed() => Err(Unopened::Ended),
        }
    }

    /// Ends a connection that was not opened.
    async fn fail(self, why: Unopened) {
        let table = Arc::clone(self.seat.table());
        let error = match why {
            Unopened::Ended => None,
            Unopened::Failed(error) => Some(error),
            Unopened::Timeout => {
                table.timeouts.fetch_add(1, Ordering::Relaxed);
                Some(io::ErrorKind::TimedOut.into())
            }
        };
        if let Some(error) = error {
            table.unsecured.fetch_add(1, Ordering::Relaxed);
            let failed = Arrival::Unsecured { flow: self.seat.flow, server: self.server.clone(), error };
            if self.seat.flow.listener.is_outbound() {
                let _ = self.arrivals.send(failed).await;
            } else {
                // A flood of failing handshakes must not delay messages, so failures that do not fit are only counted.
                let _ = self.arrivals.try_send(failed);
            }
        }
        self.finish_unopened().await;
    }
}

fn keep_alive() -> TcpKeepalive {
    TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_EVERY).with_retries(PROBES)
}

fn unconfigured() -> Unopened {
    Unopened::Failed(io::Error::other("TLS is not configured"))
}
