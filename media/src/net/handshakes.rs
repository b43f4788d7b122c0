//! The thread of the DTLS handshakes. A handshake takes milliseconds of cryptography; in a worker it would delay the
//! packets of all other legs.
//!
//! Workers pass datagrams to this thread and receive the output of the handshake as a command to the leg.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError};
use sidetone_wire::Waker;

use super::job::{Begin, Job};
use super::message::{Command, PortId, Shaken};
use super::shared::Shared;
use super::worker::Order;
use crate::webrtc::{Certificate, Handshake, HandshakeInput, HandshakeOutput};

/// How one worker gets its commands.
pub(super) type Inbox = (Sender<Order>, Arc<Waker>);

/// All handshakes of a relay.
pub(super) struct Handshakes {
    certificate: Certificate,
    workers: Vec<Inbox>,
    legs: HashMap<PortId, Leg>,
    /// Number of handshakes of each source.
    sources: HashMap<IpAddr, usize>,
    /// When the next timer of a leg is due, or earlier.
    next: Option<Instant>,
    /// Commands that wait because the queue of their worker was full.
    undelivered: VecDeque<(PortId, Shaken)>,
}

/// The handshake of a leg.
struct Leg {
    round: u32,
    /// The source under which it is counted.
    source: IpAddr,
    handshake: Handshake,
}

impl Handshakes {
    /// No handshakes yet.
    pub(super) fn new(certificate: Certificate, workers: Vec<Inbox>) -> Handshakes {
        Handshakes {
            certificate,
            workers,
            legs: HashMap::new(),
            sources: HashMap::new(),
            next: None,
            undelivered: VecDeque::new(),
        }
    }

    /// Runs until the relay is shut down.
    pub(super) fn run(mut self, jobs: &Receiver<Job>, shared: &Shared) {
        while !shared.stop.load(Ordering::SeqCst) {
            let job = jobs.recv_timeout(self.patience(now()));
            let now = now();
            match job {
                Ok(Job::Begin(port, begin)) => self.begin(now, port, &begin),
                Ok(Job::Datagram(port, datagram)) => {
                    self.feed(now, port, HandshakeInput::Datagram(&datagram));
                }
                Ok(Job::Stop) => return,
                Err(_) => {}
            }
            if self.next.is_some_and(|next| next <= now) {
                self.tick(now);
            }
            self.deliver();
        }
    }

    fn patience(&self, now: Instant) -> Duration {
        if !self.undelivered.is_empty() {
            return DELIVERY;
        }
        self.next.map_or(PATIENCE, |next| next.saturating_duration_since(now).min(PATIENCE))
    }

    fn begin(&mut self, now: Instant, port: PortId, begin: &Begin) {
        // Drops an earlier handshake of the same leg, which frees its place.
        self.end(port);
        let source = source_of(begin.source);
        let of_source = self.sources.get(&source).copied().unwrap_or_default();
        if self.legs.len() >= LEGS_MAX || of_source >= LEGS_PER_SOURCE_MAX {
            tracing::warn!(port = port.port(), of_source, "no DTLS handshake: too many are under way");
            return;
        }
        let started = catch_unwind(AssertUnwindSafe(|| {
            Handshake::new(now, &self.certificate, begin.fingerprint, begin.is_client)
        }));
        if let Ok(handshake) = started {
            self.legs.insert(port, Leg { round: begin.round, source, handshake });
            *self.sources.entry(source).or_default() += 1;
            self.pass_on(port);
        }
    }

    /// Drops the handshake of a leg.
    fn end(&mut self, port: PortId) {
        let Some(leg) = self.legs.remove(&port) else { return };
        if let Some(count) = self.sources.get_mut(&leg.source) {
            *count -= 1;
            if *count == 0 {
                self.sources.remove(&leg.source);
            }
        }
    }

    /// Feeds an input to a leg's handshake. A panic in the library ends this handshake only.
    fn feed(&mut self, now: Instant, port: PortId, input: HandshakeInput<'_>) {
        let Some(Leg { handshake, .. }) = self.legs.get_mut(&port) else { return };
        if catch_unwind(AssertUnwindSafe(|| handshake.handle_input(now, input))).is_err() {
            tracing::error!(port = port.port(), "a panic ended a DTLS handshake");
            self.end(port);
            return;
        }
        self.pass_on(port);
    }

    /// Queues the output of a handshake for its leg.
    fn pass_on(&mut self, port: PortId) {
        let Some(Leg { round, handshake, .. }) = self.legs.get_mut(&port) else { return };
        let mut shaken = Shaken { round: *round, keys: None, datagrams: Vec::new() };
        while let Some(output) = handshake.poll_output() {
            match output {
                HandshakeOutput::Datagram(datagram) => shaken.datagrams.push(datagram),
                HandshakeOutput::Failed(failure) => {
                    let error: &dyn std::error::Error = &failure;
                    tracing::warn!(error, port = port.port(), "failed to agree on keys by DTLS");
                }
                HandshakeOutput::Keys(keys) => shaken.keys = Some(keys),
            }
        }
        self.next = match (self.next, handshake.next_timeout()) {
            (Some(next), Some(own)) => Some(next.min(own)),
            (next, own) => next.or(own),
        };
        if handshake.is_over() {
            self.end(port);
        }
        let is_empty = shaken.keys.is_none() && shaken.datagrams.is_empty();
        if !is_empty && self.undelivered.len() < UNDELIVERED_MAX {
            self.undelivered.push_back((port, shaken));
        }
    }

    /// Feeds the timers that are due.
    fn tick(&mut self, now: Instant) {
        self.next = None;
        let ports: Vec<PortId> = self.legs.keys().copied().collect();
        for port in ports {
            let due = self.legs.get(&port).and_then(|leg| leg.handshake.next_timeout());
            match due {
                Some(due) if due <= now => self.feed(now, port, HandshakeInput::Timeout),
                due => self.next = self.next.into_iter().chain(due).min(),
            }
        }
    }

    fn deliver(&mut self) {
        while let Some((port, shaken)) = self.undelivered.pop_front() {
            let Some((orders, waker)) = self.workers.get(port.worker()) else { continue };
            match orders.try_send(Order::Command(port, Command::Shaken(Box::new(shaken)))) {
                Ok(()) => waker.wake(),
                Err(TrySendError::Full(Order::Command(port, Command::Shaken(shaken)))) => {
                    return self.undelivered.push_front((port, *shaken));
                }
                Err(_) => {}
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the relay is a driver: it reads the clock for the handshakes")]
fn now() -> Instant {
    Instant::now()
}

/// The source under which an address is counted: an IPv6 host has a complete /64.
fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        v4 => v4,
    }
}

/// Simultaneous handshakes, including those that may repeat their last flight.
const LEGS_MAX: usize = 4_096;
/// Maximum handshakes of one source: a source that starts handshakes without completing them blocks no other source.
const LEGS_PER_SOURCE_MAX: usize = 512;
/// Commands that wait for their workers.
const UNDELIVERED_MAX: usize = 4_096;
/// Sleep time of the thread when no timer is set.
const PATIENCE: Duration = Duration::from_secs(1);
/// Interval at which delivery to a full queue is retried.
const DELIVERY: Duration = Duration::from_millis(2);

#[cfg(test)]
#[path = "race_tests.rs"]
mod race_tests;

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that starts handshakes without completing them does not block the handshakes of other sources.
    #[test]
    fn a_source_has_a_share_of_the_handshakes() {
        let mut handshakes = Handshakes::new(Certificate::self_signed().unwrap(), Vec::new());
        let mut ports = 0;
        let mut begin = |handshakes: &mut Handshakes, source: &str| {
            ports += 1;
            let (port, source) = (PortId::new(ports, 0, 2), source.parse().unwrap());
            handshakes.begin(
                now(),
                port,
                &Begin { round: 1, fingerprint: [1; 32], source, is_client: false },
            );
            handshakes.legs.contains_key(&port).then_some(port)
        };
        let own: Vec<PortId> =
            (0..LEGS_PER_SOURCE_MAX + 5).filter_map(|_| begin(&mut handshakes, "2001:db8::1")).collect();
        assert_eq!(own.len(), LEGS_PER_SOURCE_MAX);
        assert!(begin(&mut handshakes, "2001:db8::2").is_none(), "a host has its whole /64");
        assert!(begin(&mut handshakes, "::ffff:192.0.2.1").is_some());
        assert!(begin(&mut handshakes, "2001:db8:0:1::1").is_some());
        handshakes.end(own[0]);
        assert!(begin(&mut handshakes, "2001:db8::2").is_some(), "a place is free again");
        own[1..].iter().for_each(|port| handshakes.end(*port));
        assert_eq!(handshakes.sources.len(), 3);
    }
}
