//! WebSocket (RFC 7118): the handshake, and one SIP message in each frame.

use std::pin::pin;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::header::{ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::message::limits::STREAM_MESSAGE_LEN_MAX;
use crate::message::{Datagram, StreamEvent, parse_datagram};
use crate::transport::tcp::connection::Connection;
use crate::transport::tcp::limits::{CHUNK_BYTES, LAST_WORDS_MAX, TcpLimits};
use crate::transport::tcp::receiving::{End, Receiver};
use crate::transport::tcp::table::Outbox;

/// Accepts a WebSocket with the subprotocol `sip` (RFC 7118 §4.1) from a page of one of these origins; any origin
/// when there are none.
#[expect(clippy::result_large_err, reason = "the library wants the refusal in this form")]
pub(super) async fn accept<S>(stream: S, origins: &[String]) -> Result<WebSocketStream<S>, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let limits = WebSocketConfig::default()
        .read_buffer_size(CHUNK_BYTES)
        .write_buffer_size(0)
        .max_message_size(Some(STREAM_MESSAGE_LEN_MAX))
        .max_frame_size(Some(STREAM_MESSAGE_LEN_MAX));
    let answer = |request: &Request, response: Response| answer(request, response, origins);
    tokio_tungstenite::accept_hdr_async_with_config(stream, answer, Some(limits)).await
}

#[expect(clippy::result_large_err, reason = "the library wants the refusal in this form")]
fn answer(request: &Request, mut response: Response, origins: &[String]) -> Result<Response, ErrorResponse> {
    let headers = request.headers();
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    // Only browsers send an origin. Another client could send any, so its absence proves nothing either.
    let is_foreign =
        |origin: &str| !origins.is_empty() && !origins.iter().any(|known| known.eq_ignore_ascii_case(origin));
    if origin.is_some_and(is_foreign) {
        return Err(refusal(StatusCode::FORBIDDEN, "this origin may not use SIP over WebSocket"));
    }
    let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let mut offered = offered.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    if !offered.any(|protocol| protocol.trim().eq_ignore_ascii_case(SUBPROTOCOL)) {
        return Err(refusal(StatusCode::BAD_REQUEST, "the WebSocket subprotocol must be sip"));
    }
    response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    Ok(response)
}

fn refusal(status: StatusCode, reason: &str) -> ErrorResponse {
    let mut refusal = ErrorResponse::new(Some(format!("{reason}\n")));
    *refusal.status_mut() = status;
    refusal
}

impl Connection {
    /// Exchanges messages until the WebSocket ends.
    pub(super) async fn exchange_frames<S>(mut self, socket: WebSocketStream<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let limits = *self.seat.table().limits();
        let (finish, finished) = oneshot::channel::<()>();
        let outbox = self.seat.outbox.clone();
        let (mut sink, mut frames) = socket.split();
        let mut receiver = Receiver::new(&self.seat, &self.arrivals);
        let end = {
            let mut writing = pin!(write(&mut sink, &mut self.unsent, &outbox, limits, finished));
            let end = tokio::select! {
                _ = &mut writing => End::Closed,
                end = read(&mut receiver, &mut frames, limits) => end,
                () = outbox.ending() => End::Closed,
                _ = self.stop.changed() => End::Closed,
            };
            drop(finish);
            // Messages queued before the end, above all a refusal, are sent, unless the peer does not read.
            let _ = timeout(LAST_WORDS_MAX, writing).await;
            end
        };
        if matches!(end, End::Timeout) {
            self.seat.table().timeouts.fetch_add(1, Ordering::Relaxed);
        }
        let _ = timeout(LAST_WORDS_MAX, sink.close()).await;
        self.finish().await;
    }
}

/// Reads frames until the connection ends. A peer that answers no ping counts as dead.
async fn read<S>(
    receiver: &mut Receiver<'_>,
    frames: &mut SplitStream<WebSocketStream<S>>,
    limits: TcpLimits,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut silent_until = Instant::now() + limits.ping_every + limits.pong_max;
    loop {
        let due = receiver.due().min(silent_until);
        let frame = match timeout_at(due, frames.next()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(Error::Capacity(_) | Error::Protocol(_) | Error::Utf8(_)))) => return End::Refused,
            Ok(Some(Err(_)) | None) => return End::Closed,
            // The peer may have authenticated meanwhile.
            Err(_) if receiver.due().min(silent_until) > due => continue,
            Err(_) => return End::Timeout,
        };
        silent_until = Instant::now() + limits.ping_every + limits.pong_max;
        let bytes = match frame {
            Message::Text(text) => Bytes::from(text),
            Message::Binary(bytes) => bytes,
            Message::Ping(_) | Message::Pong(_) => {
                receiver.note_life();
                continue;
            }
            Message::Close(_) | Message::Frame(_) => continue,
        };
        let event = match parse_datagram(bytes.clone()) {
            Ok(Datagram::Message(message)) => StreamEvent::Message(message),
            Ok(Datagram::Ping) => StreamEvent::Ping,
            Ok(Datagram::Pong) => continue,
            Err(rejected) => StreamEvent::Rejected { rejected, is_fatal: false, raw: bytes },
        };
        if let Some(end) = receiver.take(event).await {
            return end;
        }
    }
}

/// Sends queued messages, and pings between them, until the queue is empty and `finished` was signalled.
async fn write<S>(
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
    unsent: &mut mpsc::Receiver<Bytes>,
    outbox: &Outbox,
    limits: TcpLimits,
    mut finished: oneshot::Receiver<()>,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut ping = interval_at(Instant::now() + limits.ping_every, limits.ping_every);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (frame, len) = tokio::select! {
            biased;
            Some(bytes) = unsent.recv() => {
                let len = bytes.len();
                (frame(bytes), len)
            }
            _ = ping.tick() => (Message::Ping(Bytes::new()), 0),
            _ = &mut finished => return Ok(()),
        };
        let sent = timeout(limits.stall_max, sink.send(frame)).await;
        outbox.sent(len);
        sent.map_err(|_| Error::ConnectionClosed)??;
    }
}

/// Text for browsers, whose libraries expect it; binary only where the message is not UTF-8 (RFC 7118 §5.1).
fn frame(bytes: Bytes) -> Message {
    match std::str::from_utf8(&bytes) {
        Ok(text) => Message::text(text),
        Err(_) => Message::Binary(bytes),
    }
}

/// RFC 7118 §8.1.
const SUBPROTOCOL: &str = "sip";
