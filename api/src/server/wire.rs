//! A socket and an answer's body that report their events to the [`Watch`]. The socket writes the envelope
//! instead of an answer that hyper made by itself ([`Framing`]).

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::server::framing::{Framing, Written};
use crate::server::watch::{Change, Watch};

/// The watch and the framing of one connection, shared by its socket, its requests and its task.
#[derive(Debug, Clone)]
pub(super) struct Pulse {
    watch: Arc<Mutex<Watch>>,
    framing: Arc<Mutex<Framing>>,
    expired: Arc<AtomicBool>,
}

impl Pulse {
    pub(super) fn new(watch: Watch) -> Self {
        Self { watch: Arc::new(Mutex::new(watch)), framing: Arc::default(), expired: Arc::default() }
    }

    /// Records that a route has answered a request.
    pub(super) fn answered(&self, is_head: bool, http2: bool) {
        let mut framing = self.framing.lock();
        if http2 { framing.open() } else { framing.answered(is_head) }
    }

    /// The current head takes too long: the socket answers 408 and ends.
    pub(super) fn expire(&self) {
        self.expired.store(true, Ordering::Relaxed);
    }

    /// Calls the watch.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Watch, std::time::Instant) -> T) -> T {
        act(&mut self.watch.lock(), Instant::now().into_std())
    }
}

/// Makes the complete answer to a head that is not a request.
pub(super) type Refuse = Arc<dyn Fn(StatusCode) -> Vec<u8> + Send + Sync>;

/// A socket that reports its reads and writes.
pub(super) struct WatchedIo<S> {
    stream: S,
    pulse: Pulse,
    refuse: Refuse,
    refusal: Option<Refusal>,
}

/// The last answer of a connection.
struct Refusal {
    bytes: Vec<u8>,
    written: usize,
    /// After it is written, further input of the client is read and dropped: closing a socket with unread
    /// bytes resets the connection, and the client may lose the answer.
    drained: usize,
    until: Pin<Box<Sleep>>,
}

impl Refusal {
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, written: 0, drained: 0, until: Box::pin(tokio::time::sleep(DRAIN_TIME)) }
    }

    fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(rest) = self.bytes.get(self.written..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut *stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_drain<S: AsyncRead + Unpin>(&mut self, stream: &mut S, context: &mut Context<'_>) -> Poll<()> {
        let mut bytes = [0; 4096];
        while self.drained < DRAIN_LEN_MAX {
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut *stream).poll_read(context, &mut buffer) {
                Poll::Pending => return self.until.as_mut().poll(context),
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => self.drained += buffer.filled().len(),
                Poll::Ready(_) => break,
            }
        }
        Poll::Ready(())
    }
}

impl<S> WatchedIo<S> {
    /// Wraps `stream`, with events to `pulse`; `refuse` answers heads that are not requests.
    pub(super) fn new(stream: S, pulse: Pulse, refuse: Refuse) -> Self {
        Self { stream, pulse, refuse, refusal: None }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for WatchedIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.pulse.expired.load(Ordering::Relaxed) {
            let this = &mut *self;
            let refusal =
                this.refusal.get_or_insert_with(|| Refusal::new((this.refuse)(StatusCode::REQUEST_TIMEOUT)));
            // Signals to hyper the end of the client's input.
            return refusal.poll_write(&mut this.stream, context);
        }
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

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WatchedIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if let Some(refusal) = &mut this.refusal {
            let poll = refusal.poll_write(&mut this.stream, context).map_ok(|()| bytes.len());
            return self.noticed(poll);
        }
        let looked = this.pulse.framing.lock().look(bytes);
        let ours = match looked {
            Written::Bare(status) => {
                this.refusal = Some(Refusal::new((this.refuse)(status)));
                return self.poll_write(context, bytes);
            }
            Written::Ours(len) => bytes.get(..len).unwrap_or(bytes),
        };
        let poll = Pin::new(&mut this.stream).poll_write(context, ours);
        if let Poll::Ready(Ok(len)) = &poll {
            this.pulse.framing.lock().wrote(bytes, *len);
        }
        self.noticed(poll)
    }

    // One piece at a time, because the framing follows what is written.
    fn is_write_vectored(&self) -> bool {
        false
    }

    // Flushing a TCP socket does nothing, and reveals nothing about the client.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
        match &mut this.refusal {
            Some(refusal) => refusal.poll_drain(&mut this.stream, context).map(Ok),
            None => Poll::Ready(Ok(())),
        }
    }
}

/// How much a client may still send after it was refused, and for how long.
const DRAIN_LEN_MAX: usize = 1024 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// One request of a connection; dropping this ends it.
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

/// An answer's body that reports its pieces; the request is in progress until this is dropped.
pub(super) struct WatchedBody {
    body: Body,
    producing: bool,
    // The last field: the body is dropped before the request.
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
