//! The caller's leg of a call, and where it is asked for the called party's: under measurement, or judged.

use sidetone_media::rtp::Packet;
use sidetone_media::session::{AudioSample, Description, Report, Session, SessionConfig};
use sidetone_media::time::Micros;

use super::order::{Ends, LegSignal};
use super::stream::{SECONDS_RESERVED, tighten};

/// A call's leg as the packets tell it.
#[derive(Debug, Default)]
pub(super) struct Leg {
    state: State,
    /// The called party's leg, once somebody asks for it.
    far: State,
    /// The call seems to be over: packets do not count.
    is_ended: bool,
    /// The last packet of the call.
    last: Option<Micros>,
    answered: Option<Micros>,
}

#[derive(Debug, Default)]
enum State {
    /// Nothing that a session must know has happened.
    #[default]
    Untold,
    Open(Box<Session>),
    /// Nothing changes it any more. Its report, which takes more room, is made when it is asked for.
    Ended(Box<Session>, Micros),
}

/// What a leg has come to.
#[derive(Debug)]
pub(super) struct LegReport {
    pub(super) report: Box<Report>,
    /// That of the called party's leg.
    pub(super) far: Option<Box<Report>>,
    /// The last message or packet of the call.
    pub(super) last: Micros,
}

impl Leg {
    /// A packet that the caller sent, and what was heard in it.
    #[inline]
    pub(super) fn received(
        &mut self,
        at: Micros,
        (source, destination): Ends,
        packet: &Packet,
        heard: Option<&AudioSample>,
    ) {
        if let Some(session) = self.counted(at) {
            session.receive_heard(at, source, packet, heard);
        }
        if let Some(far) = self.far_counted() {
            far.sends(packet.ssrc);
            far.sent(at, 1, destination);
        }
    }

    /// A packet that was sent to the caller, and what was heard in it.
    #[inline]
    pub(super) fn sent(
        &mut self,
        at: Micros,
        (source, destination): Ends,
        packet: &Packet,
        heard: Option<&AudioSample>,
    ) {
        if let Some(session) = self.counted(at) {
            session.sends(packet.ssrc);
            session.sent(at, 1, destination);
        }
        if let Some(far) = self.far_counted() {
            far.receive_heard(at, source, packet, heard);
        }
    }

    /// Takes in what signalling changed; the report when it is asked for, which is the last that the leg does.
    pub(super) fn signal(&mut self, at: Micros, signal: LegSignal) -> Option<LegReport> {
        let is_ended = self.is_ended;
        match signal {
            LegSignal::Answered => {
                if let Some(session) = self.session() {
                    session.answer(at);
                }
                if let State::Open(far) = &mut self.far {
                    far.answer(at);
                } else {
                    self.answered = Some(at);
                }
            }
            LegSignal::Described(description) => {
                if let Some(session) = self.session() {
                    session.describe(at, *description);
                }
            }
            LegSignal::FarDescribed(description) => self.describe_far(at, *description),
            LegSignal::Ended => self.is_ended = true,
            LegSignal::Resumed => self.is_ended = false,
            LegSignal::Closed => self.close(at),
            LegSignal::Received { ends, packet, heard } => {
                self.received(at, ends, &packet, heard.as_ref());
            }
            LegSignal::ReceivedRtcp { source, datagram } => {
                if let Some(session) = self.session().filter(|_| !is_ended) {
                    session.receive_rtcp(at, source, &datagram);
                }
                if let Some(far) = self.far_counted() {
                    far.sent_rtcp(at, &datagram);
                }
            }
            LegSignal::Sent { ends, packet, heard } => self.sent(at, ends, &packet, heard.as_ref()),
            LegSignal::SentRtcp { source, datagram } => {
                if let Some(session) = self.session().filter(|_| !is_ended) {
                    session.sent_rtcp(at, &datagram);
                }
                if let Some(far) = self.far_counted() {
                    far.receive_rtcp(at, source, &datagram);
                }
            }
            LegSignal::Taken { ended, last } => {
                let last = self.last.map_or(last, |packet| packet.max(last));
                self.close(ended.unwrap_or(last));
                let report = std::mem::take(&mut self.state).report().unwrap_or_default();
                let far = std::mem::take(&mut self.far).report();
                return Some(LegReport { report, far, last });
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
            self.state = State::Open(session());
        }
        match &mut self.state {
            State::Open(session) => Some(session),
            State::Untold | State::Ended(..) => None,
        }
    }

    /// The session that a packet of the other direction counts in.
    #[inline]
    fn far_counted(&mut self) -> Option<&mut Session> {
        match &mut self.far {
            State::Open(session) if !self.is_ended => Some(session),
            _ => None,
        }
    }

    /// Tells the called party's leg what was settled; the first time it begins.
    fn describe_far(&mut self, at: Micros, description: Description) {
        if let State::Untold = self.far {
            let mut session = session();
            if let Some(answered) = self.answered {
                session.answer(answered);
            }
            self.far = State::Open(session);
        }
        if let State::Open(session) = &mut self.far {
            session.describe(at, description);
        }
    }

    /// Judges the leg as of `at`, once.
    fn close(&mut self, at: Micros) {
        // Of a leg that nothing was told of there is a report, too.
        self.session();
        self.state.end(at);
        self.far.end(at);
    }
}

impl State {
    fn end(&mut self, at: Micros) {
        *self = match std::mem::take(self) {
            State::Open(mut session) => {
                session.end(at);
                State::Ended(session, at)
            }
            other => other,
        };
    }

    /// The report on a leg that has ended.
    fn report(self) -> Option<Box<Report>> {
        let State::Ended(session, at) = self else { return None };
        let mut report = Box::new(session.into_report(at));
        tighten(&mut report);
        Some(report)
    }
}

fn session() -> Box<Session> {
    let mut session = Box::new(Session::new(SessionConfig::default()));
    session.reserve_seconds(SECONDS_RESERVED);
    session
}
