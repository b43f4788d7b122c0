//! Passes received messages of a connection to the driver, within the connection's limits.

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::admission::Bucket;
use crate::message::StreamEvent;
use crate::transport::arrival::Arrival;
use crate::transport::tcp::limits::{PACE_PAUSE, REJECTIONS_MAX, TcpLimits};
use crate::transport::tcp::table::Seat;

/// The reason why reading has ended.
pub(super) enum End {
    /// The peer closed it, or it broke.
    Closed,
    /// The peer violated the rules and got a refusal.
    Refused,
    /// A time limit was exceeded.
    Timeout,
}

/// Passes the messages of one connection to the driver.
pub(super) struct Receiver<'c> {
    seat: &'c Seat,
    arrivals: &'c mpsc::Sender<Arrival>,
    clock: Clock,
    pace: Bucket,
    rejections: usize,
}

/// Times of a connection's activity, for its limits.
struct Clock {
    limits: TcpLimits,
    opened: Instant,
    last_life: Instant,
    /// When the incomplete message began.
    began: Option<Instant>,
}

impl<'c> Receiver<'c> {
    pub(super) fn new(seat: &'c Seat, arrivals: &'c mpsc::Sender<Arrival>) -> Self {
        let limits = *seat.table().limits();
        Receiver {
            seat,
            arrivals,
            clock: Clock::new(limits),
            pace: Bucket::new(limits.stranger_rate),
            rejections: 0,
        }
    }

    /// The time at which a limit of the connection is exceeded; later once the peer has authenticated.
    pub(super) fn due(&self) -> Instant {
        self.clock.due(self.seat.outbox.is_trusted(), self.seat.outbox.is_held())
    }

    /// Handles an event of the parser; returns the reason if the connection must end.
    pub(super) async fn take(&mut self, event: StreamEvent) -> Option<End> {
        let arrival = match event {
            StreamEvent::Message(message) => {
                self.clock.note_message();
                Arrival::Message { flow: self.seat.flow, message }
            }
            StreamEvent::Ping => {
                // RFC 5626 §3.5.1.
                self.note_life();
                let answered = self.seat.outbox.push(Bytes::from_static(b"\r\n"));
                return answered.is_err().then_some(End::Closed);
            }
            StreamEvent::Rejected { rejected, is_fatal, .. } => {
                if let Some(reply) = &rejected.reply {
                    let _ = self.seat.outbox.push(reply.to_bytes());
                }
                self.rejections += 1;
                let arrival = Arrival::Rejected { flow: self.seat.flow, reason: rejected.reason };
                if is_fatal || self.rejections >= REJECTIONS_MAX {
                    let _ = self.arrivals.send(arrival).await;
                    return Some(End::Refused);
                }
                arrival
            }
        };
        // An unauthenticated peer that exceeds its rate must wait, and TCP makes its sender wait too.
        while !self.seat.outbox.is_trusted() && !self.pace.take(Instant::now().into_std()) {
            if self.clock.due(false, false) <= Instant::now() {
                return Some(End::Timeout);
            }
            sleep(PACE_PAUSE).await;
        }
        // A slow driver makes this peer wait, and TCP makes its sender wait too.
        self.arrivals.send(arrival).await.is_err().then_some(End::Closed)
    }

    /// Records a keep-alive; that of an unauthenticated peer does not extend its connection.
    pub(super) fn note_life(&mut self) {
        if self.seat.outbox.is_trusted() {
            self.clock.note_message();
        }
    }

    /// Records bytes, after which a message is incomplete or not.
    pub(super) fn note_chunk(&mut self, is_idle: bool) {
        self.clock.note_chunk(is_idle);
    }
}

impl Clock {
    fn new(limits: TcpLimits) -> Self {
        let now = Instant::now();
        Clock { limits, opened: now, last_life: now, began: None }
    }

    /// The time at which a limit of the connection is exceeded; silence exceeds none while the connection is held.
    fn due(&self, is_trusted: bool, is_held: bool) -> Instant {
        let since = if is_held { Instant::now() } else { self.last_life };
        let idle = since + self.limits.idle_max;
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
