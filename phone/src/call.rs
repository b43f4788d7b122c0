//! One call of a phone: its offers and answers, its media, and its scheduled actions.

use std::time::Instant;

use sidetone_media::codec::Codec;
use sidetone_media::simulate::Scenario;
use sidetone_media::time::ClockRate;
use sidetone_sip::sdp::{self, Direction, Negotiated, OfferAnswer, SessionDescription};
use sidetone_sip::transaction::ServerKey;
use tokio::sync::oneshot;

use crate::config::{Answering, CallOutcome, CallPlan, PhoneConfig};
use crate::media::Media;
use crate::voice::Format;

/// One call.
pub(super) struct Call {
    pub(super) exchange: OfferAnswer,
    pub(super) media: Media,
    /// Actions and their times.
    pub(super) agenda: Vec<(Instant, Due)>,
    pub(super) plan: Option<CallPlan>,
    pub(super) done: Option<oneshot::Sender<CallOutcome>>,
    pub(super) outcome: CallOutcome,
    pub(super) peer: String,
    /// The INVITE of a call that is not answered yet.
    pub(super) ringing: Option<ServerKey>,
    /// The phone's answer, if it was sent before the call was answered.
    pub(super) early: Option<SessionDescription>,
    pub(super) tried: bool,
    /// Whether the peer has sent a 180.
    pub(super) rings: bool,
    pub(super) up: bool,
    /// Grows with every call: commands apply to the newest.
    pub(super) number: u64,
    /// The direction that was last requested.
    pub(super) wanted: Direction,
    /// Whether it must still be offered, because another offer was open.
    pub(super) owes_offer: bool,
    /// Whether it encrypts with a wrong key.
    pub(super) spoils_srtp: bool,
}

/// A scheduled action of a call.
#[derive(Clone, Copy)]
pub(super) enum Due {
    Answer(ServerKey),
    HangUp,
    Offer(Direction),
}

impl Call {
    pub(super) fn new(exchange: OfferAnswer, media: Media, peer: String) -> Self {
        let outcome = CallOutcome { status: 0, received: 0, ended_by_peer: false, reinvites: Vec::new() };
        Call {
            exchange,
            media,
            agenda: Vec::new(),
            plan: None,
            done: None,
            outcome,
            peer,
            ringing: None,
            early: None,
            tried: false,
            rings: false,
            up: false,
            number: 0,
            wanted: Direction::SendRecv,
            owes_offer: false,
            spoils_srtp: false,
        }
    }

    /// Takes the peer's answer and sends audio to its address.
    pub(super) fn hear(&mut self, body: &[u8]) {
        if let Ok(answer) = SessionDescription::parse(body)
            && self.exchange.receive_answer(answer).is_ok()
        {
            self.aim();
        }
    }

    /// The phone's answer to the peer's open offer.
    pub(super) fn answer(&mut self, config: &PhoneConfig) -> Option<SessionDescription> {
        let offer = self.exchange.remote_offer()?.clone();
        let answer = sdp::answer(&offer, self.media.local(), &config.codecs, Direction::SendRecv).ok()?;
        let talk = match &config.answering {
            Answering::Answer { talk, .. } => talk.as_deref(),
            Answering::Early { talk, .. } => Some(talk.as_ref()),
            Answering::Redirect(_) | Answering::Refuse(_) | Answering::Ring => None,
        };
        let answer =
            self.exchange.send_answer(with_ptime(answer, talk.map(Scenario::advertised_ptime_ms))).ok()?;
        self.aim();
        Some(answer)
    }

    fn aim(&mut self) {
        let negotiated = self.exchange.negotiated();
        self.media.secure(negotiated.and_then(|n| n.srtp.as_deref()), self.spoils_srtp);
        self.media.speak_as(negotiated.and_then(format));
        let remote = negotiated.filter(|n| n.direction.sends()).and_then(|n| n.remote);
        self.media.send_to(remote.filter(|remote| !remote.ip().is_multicast()));
    }

    pub(super) fn take_due(&mut self, now: Instant) -> Option<Due> {
        let place = self.agenda.iter().position(|(at, _)| *at <= now)?;
        Some(self.agenda.remove(place).1)
    }
}

/// The format for a voice: G.711 if it was negotiated, otherwise the first codec that the voice supports; `None` if
/// it supports none.
fn format(negotiated: &Negotiated) -> Option<Format> {
    let known = |payload: &sdp::Payload| {
        let clock = ClockRate::new(payload.codec.clock_rate)?;
        let codec = Codec::find(&payload.codec.name, clock, payload.codec.channels)?;
        Some(Format { codec, audio: payload.send, heard: payload.receive, events: None })
    };
    let is_g711 = |format: &Format| matches!(format.codec, Codec::Pcmu | Codec::Pcma);
    let mut formats = negotiated.payloads.iter().filter_map(known);
    let first = formats.next()?;
    let chosen = if is_g711(&first) { first } else { formats.find(is_g711).unwrap_or(first) };
    let events = negotiated.payloads.iter().find(|payload| payload.codec.is("telephone-event"));
    Some(Format { events: events.map(|payload| payload.send), ..chosen })
}

/// The name of the audio codec.
pub(super) fn audio(negotiated: &Negotiated) -> Option<String> {
    let audio = negotiated.payloads.iter().find(|payload| !payload.codec.is_auxiliary())?;
    Some(audio.codec.name.to_string())
}

pub(super) fn with_ptime(mut description: SessionDescription, ptime_ms: Option<u32>) -> SessionDescription {
    for media in description.media.iter_mut().filter(|media| media.port != 0) {
        media.ptime_ms = ptime_ms.or(media.ptime_ms);
    }
    description
}
