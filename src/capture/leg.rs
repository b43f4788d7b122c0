//! The caller's leg of a call: under measurement, or judged.

use std::net::SocketAddr;

use sidetone_media::rtp::Packet;
use sidetone_media::session::{Report, Session, SessionConfig};
use sidetone_media::time::Micros;

use super::order::LegSignal;

/// A call's leg as the packets tell it.
#[derive(Debug, Default)]
pub(super) struct Leg {
    state: State,
    /// The call seems to be over: packets do not count.
    is_ended: bool,
    /// The last packet of the call.
    last: Option<Micros>,
}

#[derive(Debug, Default)]
enum State {
    /// Nothing that a session must know has happened.
    #[default]
    Untold,
    Open(Box<Session>),
    Closed(Box<Report>),
}

/// What a leg has come to.
#[derive(Debug)]
pub(super) struct LegReport {
    pub(super) report: Box<Report>,
    /// The last message or packet of the call.
    pub(super) last: Micros,
}

impl Leg {
    /// A packet that the caller sent.
    #[inline]
    pub(super) fn received(&mut self, at: Micros, source: SocketAddr, packet: &Packet) {
        if let Some(session) = self.counted(at) {
            session.receive_packet(at, source, packet);
        }
    }

    /// A packet that was sent to the caller.
    #[inline]
    pub(super) fn sent(&mut self, at: Micros, destination: SocketAddr) {
        if let Some(session) = self.counted(at) {
            session.sent(at, 1, destination);
        }
    }

    /// Takes in what signalling changed; the report when it is asked for, which is the last that the leg does.
    pub(super) fn signal(&mut self, at: Micros, signal: LegSignal) -> Option<LegReport> {
        match signal {
            LegSignal::Answered => {
                if let Some(session) = self.session() {
                    session.answer(at);
                }
            }
            LegSignal::Described(description) => {
                if let Some(session) = self.session() {
                    session.describe(at, *description);
                }
            }
            LegSignal::Ended => self.is_ended = true,
            LegSignal::Resumed => self.is_ended = false,
            LegSignal::Closed => {
                self.close(at);
            }
            LegSignal::Received { source, packet } => self.received(at, source, &packet),
            LegSignal::Sent { destination } => self.sent(at, destination),
            LegSignal::Taken { ended, last } => {
                let last = self.last.map_or(last, |packet| packet.max(last));
                let report = self.close(ended.unwrap_or(last));
                return Some(LegReport { report, last });
            }
        }
        None
    }

    /// The session that a packet counts in.
    #[inline]
    fn counted(&mut self, at: Micros) -> Option<&mut Session> {
        self.last = Some(self.last.map_or(at, |last| last.max(at)));
        if self.is_ended { None } else { self.session() }
    }

    #[inline]
    fn session(&mut self) -> Option<&mut Session> {
        if let State::Untold = self.state {
            self.state = State::Open(Box::new(Session::new(SessionConfig::default())));
        }
        match &mut self.state {
            State::Open(session) => Some(session),
            State::Untold | State::Closed(_) => None,
        }
    }

    /// Judges the leg as of `at`, once.
    fn close(&mut self, at: Micros) -> Box<Report> {
        if let Some(session) = self.session() {
            self.state = State::Closed(Box::new(session.close(at)));
        }
        match &self.state {
            State::Closed(report) => report.clone(),
            State::Untold | State::Open(_) => Box::default(),
        }
    }
}
