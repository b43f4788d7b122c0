//! The caller's leg of a call and the called party's leg: being measured, or judged.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use sidetone_media::rtp::Packet;
use sidetone_media::session::{AudioSample, Description, Report, Session, SessionConfig, StrictSource};
use sidetone_media::time::Micros;
use sidetone_media::verdict::Thresholds;

use super::payloads::Meanings;
use super::signal::{Ends, LegEnd, LegSignal};
use super::stream::{SECONDS_RESERVED, Stream, tighten};

/// A call's leg as seen in the packets.
#[derive(Debug, Default)]
pub(super) struct Leg {
    /// The streams whose runs count for it: the one sent to the caller, and the one that the caller sends.
    pub(super) feeds: [Option<u32>; 2],
    /// The configuration of its sessions; `None` means the defaults of a capture.
    config: Option<Arc<SessionConfig>>,
    state: State,
    /// The last packet of the call.
    last: Option<Micros>,
    sent: Sent,
    /// Whether the call seems to be over: packets do not count then.
    is_ended: bool,
    /// The called party's leg, once SDP has settled it.
    far: Option<Box<State>>,
    answered: Option<Micros>,
}

/// Packets sent to the caller that its session has not been notified of yet. Only their number matters until
/// signalling or RTCP arrives.
#[derive(Debug, Default)]
struct Sent {
    /// Their destination, which is that of the packets before them; `None` when the session was notified of
    /// none.
    to: Option<SocketAddr>,
    ssrc: u32,
    packets: u32,
}

#[derive(Debug, Default)]
enum State {
    /// No event for a session has happened.
    #[default]
    Untold,
    /// Not boxed: the sessions of many legs lie next to each other, which touches fewer pages.
    Open(Session),
    /// Nothing changes it any more. Its report, which is larger, is created on request.
    Ended(Session, Micros),
}

/// The result of a leg.
#[derive(Debug)]
pub(super) struct LegReport {
    pub(super) report: Box<Report>,
    /// The report of the called party's leg.
    pub(super) far: Option<Box<Report>>,
    /// The last message or packet of the call.
    pub(super) last: Micros,
}

impl Leg {
    /// A leg that no signalling has described yet, judged by `config`.
    pub(super) fn new(config: Option<Arc<SessionConfig>>) -> Self {
        Leg { config, ..Leg::default() }
    }

    /// A packet sent by that end of the leg, and its audio sample.
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

    /// Processes the packets that wait in the run of a stream that this end of the leg sends, as if each came by
    /// itself; the run is empty afterwards.
    pub(super) fn run(&mut self, end: LegEnd, stream: &mut Stream) {
        let run = stream.run();
        let Some((first, _)) = run.packets().next() else { return };
        let (ssrc, packets, (_, destination)) = (run.ssrc(), run.len().into(), stream.ends());
        self.last = self.last.max(run.last());
        let receiver = if end.is_from_caller() {
            self.counted(first)
        } else {
            self.count_sent(first, destination, ssrc, packets);
            self.far_counted()
        };
        match receiver {
            Some(session) => stream.go_on_with(session),
            None => stream.go_on(),
        }
        if end.is_from_caller()
            && let Some(far) = self.far_counted()
        {
            far.sends(ssrc);
            far.sent(first, packets, destination);
        }
    }

    /// A packet that the caller sent, and its audio sample.
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

    /// A packet that was sent to the caller, and its audio sample.
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

    /// Packets that were sent to another destination than the one before them, or with another SSRC.
    #[cold]
    fn sent_elsewhere(&mut self, at: Micros, to: SocketAddr, ssrc: u32, packets: u32) {
        self.tell_sent();
        if let Some(session) = self.counted(at) {
            session.sends(ssrc);
            session.sent(at, packets, to);
            self.sent = Sent { to: Some(to), ssrc, packets: 0 };
        }
    }

    /// Notifies the session of the sent packets, and restarts the count.
    fn tell_sent(&mut self) {
        let Sent { to, packets, .. } = std::mem::take(&mut self.sent);
        if let (Some(to), State::Open(session)) = (to, &mut self.state) {
            // The session uses the time only when the destination changes, which it does not here.
            session.sent(self.last.unwrap_or_default(), packets, to);
        }
    }

    /// Takes a change in signalling.
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

    /// Returns the judgement. `ended` is the time of the call's end; `last` is the time of its last message.
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

    /// Passes the settled description to the called party's leg, which starts with the first one.
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
        // A leg without any event gets a report as well.
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

    /// The report of a leg that has ended.
    fn report(self) -> Option<Box<Report>> {
        let State::Ended(session, at) = self else { return None };
        let mut report = Box::new(session.into_report(at));
        tighten(&mut report);
        Some(report)
    }
}

/// The configuration for legs of an engine with its own thresholds.
pub(super) fn config_with(thresholds: Thresholds) -> Arc<SessionConfig> {
    Arc::new(SessionConfig { thresholds, ..SessionConfig::clone(&CONFIG) })
}

fn session(config: Option<&Arc<SessionConfig>>) -> Session {
    let mut session = Session::with_shared(Arc::clone(config.unwrap_or(&CONFIG)));
    session.reserve_seconds(SECONDS_RESERVED);
    session
}

/// The configuration for every leg that is judged by the default thresholds.
static CONFIG: LazyLock<Arc<SessionConfig>> = LazyLock::new(|| {
    Arc::new(SessionConfig {
        strict_source: StrictSource::Observed,
        observed: true,
        ..SessionConfig::default()
    })
});
