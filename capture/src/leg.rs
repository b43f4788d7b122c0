//! The caller's leg of a call and the called party's: under measurement, or judged.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use sidetone_media::rtp::Packet;
use sidetone_media::session::{AudioSample, Description, Report, Run, Session, SessionConfig, StrictSource};
use sidetone_media::time::Micros;
use sidetone_media::verdict::Thresholds;

use super::payloads::Meanings;
use super::signal::{Ends, LegEnd, LegSignal};
use super::stream::{SECONDS_RESERVED, tighten};

/// A call's leg as the packets tell it.
#[derive(Debug, Default)]
pub(super) struct Leg {
    /// The streams whose runs it takes in: of what is sent to the caller, and of what the caller sends.
    pub(super) feeds: [Option<u32>; 2],
    /// How its sessions judge; `None` is how every leg of a capture is judged.
    config: Option<Arc<SessionConfig>>,
    state: State,
    /// The last packet of the call.
    last: Option<Micros>,
    sent: Sent,
    /// The call seems to be over: packets do not count.
    is_ended: bool,
    /// The called party's leg, once SDP has settled it.
    far: Option<Box<State>>,
    answered: Option<Micros>,
}

/// Packets sent to the caller of which its session was not told yet: that they were is all it has to know before
/// signalling or RTCP says something.
#[derive(Debug, Default)]
struct Sent {
    /// Where they went, as those did of which the session was told last; `None` when it was told of none.
    to: Option<SocketAddr>,
    ssrc: u32,
    packets: u32,
}

#[derive(Debug, Default)]
enum State {
    /// Nothing that a session must know has happened.
    #[default]
    Untold,
    /// Not in a box: sessions of many legs lie side by side, which takes fewer pages.
    Open(Session),
    /// Nothing changes it any more. Its report, which takes more room, is made when it is asked for.
    Ended(Session, Micros),
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
    /// A leg that no signalling has described yet, judged by `config`.
    pub(super) fn new(config: Option<Arc<SessionConfig>>) -> Self {
        Leg { config, ..Leg::default() }
    }

    /// A packet that went that way, and what was heard in it.
    pub(super) fn packet(
        &mut self,
        at: Micros,
        end: LegEnd,
        ends: Ends,
        packet: &Packet,
        heard: Option<&AudioSample>,
    ) {
        if end.is_from_caller() {
            self.received(at, ends, packet, heard);
        } else {
            self.sent(at, ends, packet, heard);
        }
    }

    /// The packets of a run that went that way, as if each came by itself.
    pub(super) fn run(&mut self, end: LegEnd, ends: Ends, run: &Run) {
        let Some((first, _)) = run.packets().next() else { return };
        let (source, destination) = ends;
        self.last = self.last.max(run.last());
        if end.is_from_caller() {
            if let Some(session) = self.counted(first) {
                session.receive_run(source, run);
            }
            if let Some(far) = self.far_counted() {
                far.sends(run.ssrc());
                far.sent(first, run.len().into(), destination);
            }
        } else {
            self.count_sent(first, destination, run.ssrc(), run.len().into());
            if let Some(far) = self.far_counted() {
                far.receive_run(source, run);
            }
        }
    }

    /// A packet that the caller sent, and what was heard in it.
    fn received(
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
    fn sent(
        &mut self,
        at: Micros,
        (source, destination): Ends,
        packet: &Packet,
        heard: Option<&AudioSample>,
    ) {
        self.count_sent(at, destination, packet.ssrc, 1);
        if let Some(far) = self.far_counted() {
            far.receive_heard(at, source, packet, heard);
        }
    }

    /// Packets that were sent to the caller, the first of them at `at`.
    fn count_sent(&mut self, at: Micros, to: SocketAddr, ssrc: u32, packets: u32) {
        if self.sent.to == Some(to) && self.sent.ssrc == ssrc && !self.is_ended {
            self.last = self.last.max(Some(at));
            self.sent.packets = self.sent.packets.saturating_add(packets);
        } else {
            self.sent_elsewhere(at, to, ssrc, packets);
        }
    }

    /// Packets that were sent elsewhere than the one before them, or as another source.
    #[cold]
    fn sent_elsewhere(&mut self, at: Micros, to: SocketAddr, ssrc: u32, packets: u32) {
        self.tell_sent();
        if let Some(session) = self.counted(at) {
            session.sends(ssrc);
            session.sent(at, packets, to);
            self.sent = Sent { to: Some(to), ssrc, packets: 0 };
        }
    }

    /// Tells the session of the packets that were sent; it begins anew with the next one.
    fn tell_sent(&mut self) {
        let Sent { to, packets, .. } = std::mem::take(&mut self.sent);
        if let (Some(to), State::Open(session)) = (to, &mut self.state) {
            // The time is that of a change of the destination, which this is not.
            session.sent(self.last.unwrap_or_default(), packets, to);
        }
    }

    /// Takes in what signalling changed.
    pub(super) fn signal(&mut self, at: Micros, signal: LegSignal) {
        self.tell_sent();
        let is_ended = self.is_ended;
        match signal {
            LegSignal::Answered => {
                if let Some(session) = self.session() {
                    session.answer(at);
                }
                if let Some(State::Open(far)) = self.far.as_deref_mut() {
                    far.answer(at);
                } else {
                    self.answered = Some(at);
                }
            }
            LegSignal::Described(description, payloads) => {
                if let Some(session) = self.session() {
                    session.describe_shared(at, *description, payloads);
                }
            }
            LegSignal::FarDescribed(description, payloads) => {
                self.describe_far(at, *description, payloads);
            }
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
        }
    }

    /// The judgement; `ended` is the call's end, `last` its last message.
    pub(super) fn finish(mut self, ended: Option<Micros>, last: Micros) -> LegReport {
        self.tell_sent();
        let last = self.last.map_or(last, |packet| packet.max(last));
        self.close(ended.unwrap_or(last));
        let report = self.state.report().unwrap_or_default();
        let far = self.far.and_then(|far| far.report());
        LegReport { report, far, last }
    }

    /// The session that a packet counts in.
    #[inline]
    fn counted(&mut self, at: Micros) -> Option<&mut Session> {
        self.last = self.last.max(Some(at));
        if self.is_ended { None } else { self.session() }
    }

    #[inline]
    fn session(&mut self) -> Option<&mut Session> {
        if let State::Untold = self.state {
            self.state = State::Open(session(self.config.as_ref()));
        }
        match &mut self.state {
            State::Open(session) => Some(session),
            State::Untold | State::Ended(..) => None,
        }
    }

    /// The session that a packet of the other direction counts in.
    #[inline]
    fn far_counted(&mut self) -> Option<&mut Session> {
        match self.far.as_deref_mut() {
            Some(State::Open(session)) if !self.is_ended => Some(session),
            _ => None,
        }
    }

    /// Tells the called party's leg what was settled; the first time it begins.
    fn describe_far(&mut self, at: Micros, description: Description, payloads: Meanings) {
        let (answered, config) = (self.answered, self.config.as_ref());
        let far = self.far.get_or_insert_with(|| {
            let mut session = session(config);
            if let Some(answered) = answered {
                session.answer(answered);
            }
            Box::new(State::Open(session))
        });
        if let State::Open(session) = &mut **far {
            session.describe_shared(at, description, payloads);
        }
    }

    /// Judges the leg as of `at`, once.
    fn close(&mut self, at: Micros) {
        // Of a leg that nothing was told of there is a report, too.
        self.session();
        self.state.end(at);
        if let Some(far) = &mut self.far {
            far.end(at);
        }
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

/// How the legs of an engine are judged by thresholds of its own.
pub(super) fn config_with(thresholds: Thresholds) -> Arc<SessionConfig> {
    Arc::new(SessionConfig { thresholds, ..SessionConfig::clone(&CONFIG) })
}

fn session(config: Option<&Arc<SessionConfig>>) -> Session {
    let mut session = Session::with_shared(Arc::clone(config.unwrap_or(&CONFIG)));
    session.reserve_seconds(SECONDS_RESERVED);
    session
}

/// Of every leg of every capture that is judged by no thresholds of its own.
static CONFIG: LazyLock<Arc<SessionConfig>> = LazyLock::new(|| {
    Arc::new(SessionConfig {
        strict_source: StrictSource::Observed,
        observed: true,
        ..SessionConfig::default()
    })
});
