//! One connection, from its first byte to its last.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::admission::Bucket;
use crate::message::{StreamEvent, StreamParser};
use crate::transport::arrival::Arrival;
use crate::transport::tcp::limits::{
    CHUNK_BYTES, LAST_WORDS_MAX, LINGER_BYTES_MAX, PACE_PAUSE, REJECTIONS_MAX, TcpLimits,
};
use crate::transport::tcp::table::{Outbox, Seat};
use crate::transport::tcp::task::Obituary;

/// A connection and its channel to the driver.
pub(super) struct Connection {
    pub(super) seat: Seat,
    pub(super) unsent: mpsc::Receiver<Bytes>,
    pub(super) arrivals: mpsc::Sender<Arrival>,
    /// Ends every connection when its sender is dropped.
    pub(super) stop: watch::Receiver<()>,
}

/// Times of a connection's activity, for its limits.
struct Clock {
    limits: TcpLimits,
    opened: Instant,
    last_life: Instant,
    /// When the incomplete message began.
    began: Option<Instant>,
}

/// Why reading has ended.
enum End {
    /// The peer closed it, or it broke.
    Closed,
    /// The peer broke the rules and got a refusal.
    Refused,
    /// A time limit was exceeded.
    Timeout,
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

    /// Opens the connection and runs it.
    pub(super) async fn dial(self) {
        let knock = timeout(self.seat.table().limits().stall_max, TcpStream::connect(self.seat.flow.remote));
        match knock.await {
            Ok(Ok(stream)) => self.serve(stream).await,
            Ok(Err(_)) | Err(_) => self.finish().await,
        }
    }

    /// Runs an open connection.
    pub(super) async fn serve(mut self, stream: TcpStream) {
        // Messages are written whole, so waiting for more data only delays them. Without this option the
        // socket still works, only slower.
        let _ = stream.set_nodelay(true);
        self.seat.table().set_local(&self.seat.flow, stream.local_addr().ok());
        let limits = *self.seat.table().limits();
        let (mut reader, mut writer) = stream.into_split();
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
            End::Closed => {}
        }
        self.finish().await;
    }

    async fn finish(self) {
        let Connection { seat, arrivals, .. } = self;
        let (flow, is_trusted) = (seat.flow, seat.outbox.is_trusted());
        drop(seat);
        if is_trusted {
            // The driver is absent only when the engine stops.
            let _ = arrivals.send(Arrival::Closed(flow)).await;
        }
    }
}

/// Reads messages until the connection ends.
async fn read(seat: &Seat, arrivals: &mpsc::Sender<Arrival>, reader: &mut OwnedReadHalf) -> End {
    let mut clock = Clock::new(*seat.table().limits());
    let mut parser = StreamParser::new();
    let mut chunk = [0; CHUNK_BYTES];
    let mut rejections = 0;
    let mut pace = Bucket::new(seat.table().limits().stranger_rate);
    loop {
        let due = clock.due(seat.outbox.is_trusted());
        let length = match timeout_at(due, reader.read(&mut chunk)).await {
            Ok(Ok(0) | Err(_)) => return End::Closed,
            Ok(Ok(length)) => length,
            // The peer may have authenticated meanwhile.
            Err(_) if clock.due(seat.outbox.is_trusted()) > due => continue,
            Err(_) => return End::Timeout,
        };
        parser.push(chunk.get(..length).unwrap_or_default());
        while let Some(event) = parser.poll() {
            let arrival = match event {
                StreamEvent::Message(message) => {
                    clock.note_message();
                    Arrival::Message { flow: seat.flow, message }
                }
                StreamEvent::Ping => {
                    // RFC 5626 §3.5.1; the keep-alive of an unauthenticated peer does not extend its
                    // connection.
                    if seat.outbox.push(Bytes::from_static(b"\r\n")).is_err() {
                        return End::Closed;
                    }
                    if seat.outbox.is_trusted() {
                        clock.note_message();
                    }
                    continue;
                }
                StreamEvent::Rejected { rejected, is_fatal, .. } => {
                    if let Some(reply) = &rejected.reply {
                        let _ = seat.outbox.push(reply.to_bytes());
                    }
                    rejections += 1;
                    let arrival = Arrival::Rejected { flow: seat.flow, reason: rejected.reason };
                    if is_fatal || rejections >= REJECTIONS_MAX {
                        let _ = arrivals.send(arrival).await;
                        return End::Refused;
                    }
                    arrival
                }
            };
            // An unauthenticated peer that exceeds its rate must wait, and TCP makes its sender wait too.
            while !seat.outbox.is_trusted() && !pace.take(Instant::now().into_std()) {
                if clock.due(false) <= Instant::now() {
                    return End::Timeout;
                }
                sleep(PACE_PAUSE).await;
            }
            // A slow driver makes this peer wait, and TCP makes its sender wait too.
            if arrivals.send(arrival).await.is_err() {
                return End::Closed;
            }
        }
        clock.note_chunk(parser.is_idle());
    }
}

/// Sends queued messages until the queue is empty and `finished` was signalled.
async fn write(
    writer: &mut OwnedWriteHalf,
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
        let sent = timeout(limits.stall_max, writer.write_all(&bytes)).await;
        outbox.sent(bytes.len());
        sent.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    }
}

/// Gives the peer time to read the refusal: shuts down sending and waits until the peer does the same.
async fn linger(reader: &mut OwnedReadHalf, writer: &mut OwnedWriteHalf) {
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

impl Clock {
    fn new(limits: TcpLimits) -> Self {
        let now = Instant::now();
        Clock { limits, opened: now, last_life: now, began: None }
    }

    /// When a time limit of the connection is exceeded.
    fn due(&self, is_trusted: bool) -> Instant {
        let idle = self.last_life + self.limits.idle_max;
        let message = self.began.map(|began| began + self.limits.message_max);
        let stranger = (!is_trusted).then(|| self.opened + self.limits.stranger_max);
        [Some(idle), message, stranger].into_iter().flatten().min().unwrap_or(idle)
    }

    /// Records a message or an equivalent event; the next message begins after it.
    fn note_message(&mut self) {
        self.last_life = Instant::now();
        self.began = None;
    }

    fn note_chunk(&mut self, is_idle: bool) {
        self.began = match is_idle {
            true => None,
            false => Some(self.began.unwrap_or_else(Instant::now)),
        };
    }
}
