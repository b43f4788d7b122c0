//! A leg and the phone at its other end, played like a switch.

use std::net::SocketAddr;

use sidetone_media::rtp::Packet;
use sidetone_media::session::{Description, Disposition, Report, Session, SessionConfig, Verdict};
use sidetone_media::time::Micros;

use crate::support;

/// A leg at a point in time, and the phone at its other end.
pub(crate) struct Leg {
    pub(crate) session: Session,
    pub(crate) description: Description,
    pub(crate) at_ms: i64,
    /// The phone's next packet.
    pub(crate) packet: Packet,
    pub(crate) step: u32,
    pub(crate) interval_ms: i64,
    pub(crate) source: SocketAddr,
}

impl Leg {
    /// A leg before any event.
    pub(crate) fn with(config: SessionConfig) -> Leg {
        Leg {
            session: Session::new(config),
            description: support::pcmu(),
            at_ms: 0,
            packet: Packet { ssrc: 0x1111, payload_len: 160, ..Packet::default() },
            step: 160,
            interval_ms: 20,
            source: support::party(),
        }
    }

    /// The current time.
    pub(crate) fn now(&self) -> Micros {
        Micros::from_millis(self.at_ms)
    }

    /// Changes the SDP.
    pub(crate) fn describe(&mut self, change: impl FnOnce(&mut Description)) {
        change(&mut self.description);
        self.session.describe(self.now(), self.description.clone());
    }

    /// The leg is answered.
    pub(crate) fn answer(&mut self) {
        self.session.answer(self.now());
    }

    /// The usual start: described and immediately answered.
    pub(crate) fn connect(&mut self) {
        self.describe(|_| {});
        self.answer();
    }

    /// The phone sends `packets`, each of which arrives.
    pub(crate) fn talk(&mut self, packets: u32) {
        for _ in 0..packets {
            self.send_one();
            self.at_ms += self.interval_ms;
        }
    }

    /// The phone sends one packet now.
    pub(crate) fn send_one(&mut self) -> Disposition {
        let mut datagram = Vec::new();
        support::write_rtp(&self.packet, &mut datagram);
        let disposition = self.session.receive(self.now(), self.source, &datagram);
        self.advance();
        disposition
    }

    /// The phone's next number and timestamp.
    pub(crate) fn advance(&mut self) {
        self.packet.sequence = self.packet.sequence.wrapping_add(1);
        self.packet.timestamp = self.packet.timestamp.wrapping_add(self.step);
    }

    /// The phone sends `packets`, none of which arrives.
    pub(crate) fn lose(&mut self, packets: u32) {
        for _ in 0..packets {
            self.advance();
            self.at_ms += self.interval_ms;
        }
    }

    /// Nothing happens for `ms`.
    pub(crate) fn wait(&mut self, ms: i64) {
        self.at_ms += ms;
    }

    /// We send `packets` to the party's address.
    pub(crate) fn reply(&mut self, packets: u32) {
        let to = self.session.destination().unwrap_or(self.source);
        self.session.sent(self.now(), packets, to);
    }

    /// The leg ends.
    pub(crate) fn close(&mut self) -> Report {
        self.session.close(self.now())
    }
}

/// A name, and the events of a leg.
pub(crate) type Case = (&'static str, fn(&mut Leg));

/// A leg with the default configuration.
pub(crate) fn default_leg() -> Leg {
    Leg::with(SessionConfig::default())
}

/// Plays every case, and compares its verdict with `expected`; `None` expects no verdict.
pub(crate) fn check(expected: Option<Verdict>, cases: &[Case]) {
    check_with(SessionConfig::default(), expected, cases);
}

pub(crate) fn check_with(config: SessionConfig, expected: Option<Verdict>, cases: &[Case]) {
    for (name, play) in cases {
        let mut leg = Leg::with(config.clone());
        play(&mut leg);
        let report = leg.close();
        assert_eq!(report.verdict, expected, "{name}: {:#?}", report.evidence);
        assert_eq!(report.evidence.rule, expected, "{name}");
    }
}
