//! One open connection, from its first message to its last.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{timeout, timeout_at};

use crate::flow::Flow;
use crate::message::StreamParser;
use crate::transport::arrival::Arrival;
use crate::transport::tcp::limits::{CHUNK_BYTES, LAST_WORDS_MAX, LINGER_BYTES_MAX, TcpLimits};
use crate::transport::tcp::receiving::{End, Receiver};
use crate::transport::tcp::table::{Outbox, Seat};
use crate::transport::tcp::task::Obituary;
use crate::transport::tcp::tls::TlsSettings;

/// A connection and its channel to the driver.
pub(super) struct Connection {
    pub(super) seat: Seat,
    pub(super) unsent: mpsc::Receiver<Bytes>,
    pub(super) arrivals: mpsc::Sender<Arrival>,
    pub(super) tls: Option<Arc<dyn TlsSettings>>,
    /// The name that the server's certificate must be for, if we open the connection over TLS.
    pub(super) server: Option<Arc<str>>,
    /// The origins of pages that may open a WebSocket; any when there are none.
    pub(super) origins: Arc<[String]>,
    /// Ends every connection when its sender is dropped.
    pub(super) stop: watch::Receiver<()>,
}

impl Connection {
    /// The data that is needed when the task of the connection panics.
    pub(super) fn obituary(&self) -> Obituary {
        Obituary {
            table: Arc::clone(self.seat.table()),
            flow: self.seat.flow,
            outbox: self.seat.outbox.clone(),
            arrivals: self.arrivals.clone(),
        }
    }

    /// Exchanges messages until the connection ends.
    pub(super) async fn exchange(
        mut self,
        mut reader: impl AsyncRead + Unpin,
        mut writer: impl AsyncWrite + Unpin,
    ) {
        let limits = *self.seat.table().limits();
        let (finish, finished) = oneshot::channel::<()>();
        let outbox = self.seat.outbox.clone();
        let end = {
            let mut writing = pin!(write(&mut writer, &mut self.unsent, &outbox, limits, finished));
            let end = tokio::select! {
                _ = &mut writing => End::Closed,
                end = read(&self.seat, &self.arrivals, &mut reader) => end,
                () = outbox.ending() => End::Closed,
                _ = self.stop.changed() => End::Closed,
            };
            drop(finish);
            // Messages queued before the end, above all a refusal, are sent, unless the peer does not read.
            let _ = timeout(LAST_WORDS_MAX, writing).await;
            end
        };
        match end {
            End::Timeout => drop(self.seat.table().timeouts.fetch_add(1, Ordering::Relaxed)),
            End::Refused => {
                let _ = timeout(LAST_WORDS_MAX, linger(&mut reader, &mut writer)).await;
            }
            // TLS announces its end, so that the peer can distinguish it from a broken connection.
            End::Closed => drop(timeout(LAST_WORDS_MAX, writer.shutdown()).await),
        }
        self.finish().await;
    }

    /// Frees the entry, and reports the end of a trusted connection.
    pub(super) async fn finish(self) {
        self.finish_with(Arrival::Closed).await;
    }

    /// Frees the entry of a connection that was not opened, and reports that if we wanted to open it.
    pub(super) async fn finish_unopened(self) {
        self.finish_with(Arrival::Unopened).await;
    }

    async fn finish_with(self, end: impl FnOnce(Flow) -> Arrival) {
        let Connection { seat, arrivals, .. } = self;
        let (flow, is_trusted) = (seat.flow, seat.outbox.is_trusted());
        drop(seat);
        if is_trusted {
            // The driver is absent only when the engine stops.
            let _ = arrivals.send(end(flow)).await;
        }
    }
}

/// Reads messages until the connection ends.
async fn read(seat: &Seat, arrivals: &mpsc::Sender<Arrival>, reader: &mut (impl AsyncRead + Unpin)) -> End {
    let mut receiver = Receiver::new(seat, arrivals);
    let mut parser = StreamParser::new();
    let mut chunk = [0; CHUNK_BYTES];
    loop {
        let due = receiver.due();
        let length = match timeout_at(due, reader.read(&mut chunk)).await {
            Ok(Ok(0) | Err(_)) => return End::Closed,
            Ok(Ok(length)) => length,
            // The peer may have authenticated meanwhile.
            Err(_) if receiver.due() > due => continue,
            Err(_) => return End::Timeout,
        };
        parser.push(chunk.get(..length).unwrap_or_default());
        while let Some(event) = parser.poll() {
            if let Some(end) = receiver.take(event).await {
                return end;
            }
        }
        receiver.note_chunk(parser.is_idle());
    }
}

/// Sends queued messages until the queue is empty and `finished` was signalled.
async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    unsent: &mut mpsc::Receiver<Bytes>,
    outbox: &Outbox,
    limits: TcpLimits,
    mut finished: oneshot::Receiver<()>,
) -> io::Result<()> {
    loop {
        let bytes = tokio::select! {
            biased;
            Some(bytes) = unsent.recv() => bytes,
            _ = &mut finished => return Ok(()),
        };
        let writing = async {
            writer.write_all(&bytes).await?;
            // TLS may hold back bytes.
            writer.flush().await
        };
        let sent = timeout(limits.stall_max, writing).await;
        outbox.sent(bytes.len());
        sent.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    }
}

/// Gives the peer time to read the refusal: shuts down sending and waits until the peer does the same.
async fn linger(reader: &mut (impl AsyncRead + Unpin), writer: &mut (impl AsyncWrite + Unpin)) {
    if writer.shutdown().await.is_err() {
        return;
    }
    let mut chunk = [0; CHUNK_BYTES];
    let mut left = LINGER_BYTES_MAX;
    while let Ok(length @ 1..) = reader.read(&mut chunk).await
        && left > length
    {
        left -= length;
    }
}
