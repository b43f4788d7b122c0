//! A connection from which only a limited number of bytes is read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Reads no more than its limit: any further data of the peer, in any form, is not read from the network.
pub(super) struct Bounded<S> {
    inner: S,
    left_bytes: usize,
}

impl<S> Bounded<S> {
    pub(super) fn new(inner: S, limit_bytes: usize) -> Self {
        Self { inner, left_bytes: limit_bytes }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.left_bytes == 0 {
            return Poll::Ready(Err(io::Error::other(TooMuch)));
        }
        let mut chunk = [0; CHUNK_BYTES];
        let room = chunk.len().min(this.left_bytes).min(buf.remaining());
        let mut part = ReadBuf::new(chunk.get_mut(..room).unwrap_or_default());
        ready!(Pin::new(&mut this.inner).poll_read(cx, &mut part))?;
        this.left_bytes = this.left_bytes.saturating_sub(part.filled().len());
        buf.put_slice(part.filled());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

/// The limit was reached.
#[derive(Debug, thiserror::Error)]
#[error("more was sent than is read")]
pub(super) struct TooMuch;

/// Bytes of one read.
const CHUNK_BYTES: usize = 4_096;
