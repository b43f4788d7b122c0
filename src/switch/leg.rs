//! One party's side of a call: its media port and its offer/answer exchange.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use sidetone_call::media_plan;
use sidetone_media::mix::Formats;
use sidetone_media::transcode::TranscodePlan;
use sidetone_model::media_quality::LegQuality;
use sidetone_sip::sdp::{
    self, Codec, CodecPolicy, Direction, Media, OfferAnswer, SessionDescription, payload_map,
};

use crate::switch::face::{MediaCommand, Port, PortId};

/// One party's side of a call.
#[derive(Debug)]
pub(super) struct Leg {
    /// The codecs this party may use.
    pub(super) policy: CodecPolicy,
    /// Where its SIP comes from.
    pub(super) signalling: Option<IpAddr>,
    pub(super) exchange: OfferAnswer,
    /// Whether it has been asked to talk again and has not answered yet.
    pub(super) resumes: bool,
    port: Port,
    /// False once the port was given back.
    open: bool,
    /// Whether it is in a room instead of being relayed to another leg.
    seated: bool,
    /// Whether the room was told that it holds.
    holds: bool,
    /// Whether what arrives on it is transcoded.
    transcodes: bool,
    /// What its port said of it when it was closed.
    media: Told,
    /// Since when nothing comes from the party.
    pub(super) silent_since: Option<Instant>,
    /// Whether the party was asked if it is there.
    pub(super) probe: Probe,
}

/// Whether a silent party was asked if it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// It said so, then.
    Answered(Instant),
    /// It has not answered yet.
    Asked,
    /// Never.
    None,
}

/// What a leg's port said of it in the end.
#[derive(Debug)]
enum Told {
    /// Nothing yet.
    Awaited,
    /// That there was none.
    None,
    /// The figures.
    Reported(Box<LegQuality>),
}

impl Leg {
    pub(super) fn new(port: Port, session_id: u64, policy: CodecPolicy, signalling: Option<IpAddr>) -> Self {
        Leg {
            policy,
            signalling,
            exchange: OfferAnswer::new(session_id),
            resumes: false,
            port,
            open: true,
            seated: false,
            holds: false,
            transcodes: false,
            media: Told::Awaited,
            silent_since: None,
            probe: Probe::None,
        }
    }

    pub(super) fn port(&self) -> PortId {
        self.port.id
    }

    /// The address that our SDP names.
    pub(super) fn local(&self) -> SocketAddr {
        self.port.advertised
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Gives the port back; the command to send, once.
    pub(super) fn close(&mut self) -> Option<MediaCommand> {
        std::mem::take(&mut self.open).then_some(MediaCommand::Close)
    }

    /// Notes what its port said when it was closed; `None` when there was no media.
    pub(super) fn reported(&mut self, media: Option<LegQuality>) {
        self.media = media.map_or(Told::None, |media| Told::Reported(Box::new(media)));
    }

    /// Whether its port has said all that it will.
    pub(super) fn has_reported(&self) -> bool {
        !matches!(self.media, Told::Awaited)
    }

    /// What its port said.
    pub(super) fn media(&self) -> Option<&LegQuality> {
        match &self.media {
            Told::Awaited | Told::None => None,
            Told::Reported(media) => Some(media),
        }
    }

    /// What its port said, once.
    pub(super) fn take_media(&mut self) -> Option<LegQuality> {
        match std::mem::replace(&mut self.media, Told::None) {
            Told::Awaited | Told::None => None,
            Told::Reported(media) => Some(*media),
        }
    }

    /// Puts it into a room.
    pub(super) fn seat(&mut self) {
        self.seated = self.open;
    }

    /// Takes it out of its room; whether it was in one.
    pub(super) fn unseat(&mut self) -> bool {
        std::mem::take(&mut self.seated)
    }

    pub(super) fn is_seated(&self) -> bool {
        self.seated
    }

    /// Whether the party holds now, when that is news: it wants to receive nothing.
    pub(super) fn holding_changed(&mut self) -> Option<bool> {
        let holds = self.exchange.negotiated().is_some_and(|settled| !settled.direction.sends());
        let before = std::mem::replace(&mut self.holds, holds);
        (before != holds).then_some(holds)
    }

    /// What a mix must know of the leg; `None` when it cannot speak with the party.
    pub(super) fn formats(&self) -> Option<Formats> {
        let negotiated = self.exchange.negotiated()?;
        let formats = media_plan::formats(negotiated)?;
        // A party that holds sends music to whoever waits for it: a room does not wait.
        Some(Formats { speaks: formats.speaks && negotiated.direction.sends(), ..formats })
    }

    /// The offer of a room: what this party may use of what a mix can decode and encode.
    pub(super) fn offer_to_room(&self) -> SessionDescription {
        let mut codecs = self.policy.codecs();
        codecs.retain(media_plan::is_mixable);
        sdp::offer(self.port.advertised, codecs, Direction::SendRecv)
    }

    /// The answer of a room to the offer of the party that is open.
    ///
    /// # Errors
    /// The status to refuse it with; the offer stays open.
    pub(super) fn answer_for_room(&mut self) -> Result<SessionDescription, u16> {
        let mut offered = self.exchange.remote_offer().cloned().ok_or(491_u16)?;
        for media in offered.media.iter_mut().filter(|media| media.is_carried()) {
            media.codecs.retain(media_plan::is_mixable);
        }
        let answer = sdp::answer(&offered, self.port.advertised, &self.policy, Direction::SendRecv);
        let answer = answer.map_err(|refused| refused.status())?;
        self.exchange.send_answer(answer).map_err(|_| 488)
    }

    /// The name of the audio codec settled for this leg.
    pub(super) fn codec(&self) -> Option<String> {
        let codec = self.exchange.negotiated().and_then(|negotiated| negotiated.codec())?;
        Some(media_plan::canonical_name(&codec.name))
    }

    /// Whether an audio codec of that name may be used on this leg.
    pub(super) fn has_codec(&self, name: &str) -> bool {
        let negotiated = self.exchange.negotiated();
        negotiated.is_some_and(|negotiated| negotiated.payloads.iter().any(|payload| payload.codec.is(name)))
    }

    /// Whether an audio codec that is settled for this leg is in a description.
    pub(super) fn shares_a_codec_with(&self, description: &SessionDescription) -> bool {
        let settled = self.exchange.negotiated().map(|negotiated| negotiated.payloads.as_slice());
        let has = |codec: &Codec| {
            description
                .carried_audio()
                .is_some_and(|(_, audio)| audio.codecs.iter().any(|other| other.matches(codec)))
        };
        let settled = settled.unwrap_or_default();
        settled.iter().any(|payload| !payload.codec.is_auxiliary() && has(&payload.codec))
    }

    /// What the media session must know now.
    pub(super) fn describe(&self) -> Option<MediaCommand> {
        let negotiated = self.exchange.negotiated()?;
        Some(MediaCommand::Describe(Box::new(media_plan::description(negotiated, self.signalling))))
    }

    /// Relays what arrives on this leg to `peer`, as far as its party knows it.
    pub(super) fn bridge_to(&self, peer: &Leg) -> Option<MediaCommand> {
        let (own, theirs) = (self.exchange.negotiated()?, peer.exchange.negotiated()?);
        let mut payload_map = payload_map(own, theirs).map(Box::new);
        if let Some(plan) = media_plan::transcoding(own, theirs) {
            // What is transcoded is not relayed as well.
            let map = payload_map.get_or_insert_with(|| Box::new(std::array::from_fn(|number| number as u8)));
            let events = plan.events.map(|events| events.from.0);
            let audio = plan.audio.iter().map(|(number, _)| *number);
            for number in audio.chain(plan.noise.iter().copied()).chain(events) {
                map.get_mut(usize::from(number)).into_iter().for_each(|entry| *entry = UNMAPPED);
            }
        }
        Some(MediaCommand::Bridge { peer: peer.port(), payload_map })
    }

    /// How what arrives on this leg becomes something that the party of `peer` knows.
    pub(super) fn plan_towards(&self, peer: &Leg) -> Option<TranscodePlan> {
        media_plan::transcoding(self.exchange.negotiated()?, peer.exchange.negotiated()?)
    }

    /// Transcodes by this plan what arrives, or relays alone; a command when either is news.
    pub(super) fn transcode(&mut self, plan: Option<TranscodePlan>) -> Option<MediaCommand> {
        let before = std::mem::replace(&mut self.transcodes, plan.is_some());
        (before || plan.is_some()).then(|| MediaCommand::Transcode(plan.map(Box::new)))
    }

    /// What holds on this leg as a description that an answer for the other leg can be made from.
    pub(super) fn settled(&self) -> Option<SessionDescription> {
        let negotiated = self.exchange.negotiated()?;
        let codecs = negotiated.payloads.iter().map(|payload| payload.codec.clone()).collect();
        let audio = Media {
            direction: negotiated.direction.reversed(),
            ptime_ms: negotiated.ptime_ms,
            maxptime_ms: negotiated.maxptime_ms,
            ..Media::audio(self.port.advertised.port(), codecs)
        };
        Some(SessionDescription::new(self.port.advertised.ip(), vec![audio]))
    }
}

/// What a payload map says of a number that is not relayed.
const UNMAPPED: u8 = 0xff;
