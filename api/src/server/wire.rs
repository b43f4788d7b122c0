//! A socket and an answer's body that tell the [`Watch`] what happens to them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::server::watch::{Change, Watch};

/// The watch of one connection, shared by its socket, its requests and its task.
#[derive(Debug, Clone)]
pub(super) struct Pulse(Arc<Mutex<Watch>>);

impl Pulse {
    pub(super) fn new(watch: Watch) -> Self {
        Self(Arc::new(Mutex::new(watch)))
    }

    /// Tells or asks the watch.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Watch, std::time::Instant) -> T) -> T {
        act(&mut self.0.lock(), Instant::now().into_std())
    }
}

/// A socket whose reads and writes are noticed.
pub(super) struct WatchedIo<S> {
    pub(super) stream: S,
    pub(super) pulse: Pulse,
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.pulse.with(Watch::read);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S> WatchedIo<S> {
    fn noticed<T>(&self, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.pulse.with(|watch, now| if poll.is_pending() { watch.blocked(now) } else { watch.wrote(now) });
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.noticed(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.noticed(poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // Flushing a TCP socket does nothing, and says nothing about the client.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// One request of a connection; over when dropped.
#[derive(Debug)]
pub(super) struct InHand(Pulse);

impl InHand {
    pub(super) fn new(pulse: Pulse, http2: bool) -> Self {
        pulse.with(|watch, now| watch.request_began(now, http2));
        Self(pulse)
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.with(Watch::request_ended);
    }
}

/// An answer's body whose pieces are noticed; the request is in hand until it is gone.
pub(super) struct WatchedBody {
    body: Body,
    producing: bool,
    // The last field: the body has ended before the request has.
    request: InHand,
}

impl WatchedBody {
    pub(super) fn new(body: Body, request: InHand) -> Self {
        request.0.with(|watch, now| watch.sending(now, Change::Began));
        Self { body, producing: false, request }
    }
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let poll = Pin::new(&mut self.body).poll_frame(context);
        let was_producing = std::mem::replace(&mut self.producing, poll.is_pending());
        match (was_producing, poll.is_pending()) {
            (true, true) => {}
            (false, true) => self.request.0.with(|watch, now| watch.sending(now, Change::Waits)),
            (_, false) => {
                self.request.0.with(|watch, now| watch.sending(now, Change::Produced { was_producing }));
            }
        }
        poll
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        let was_producing = self.producing;
        self.request.0.with(|watch, now| watch.sending(now, Change::Ended { was_producing }));
    }
}
