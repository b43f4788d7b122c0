//! One party's side of a call: its media port and its offer/answer exchange.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use sidetone_call::media_plan;
use sidetone_media::dtmf::KeySource;
use sidetone_media::mix::Formats;
use sidetone_media::transcode::TranscodePlan;
use sidetone_media::webrtc::Protection;
use sidetone_model::device::{self, Device};
use sidetone_model::media_quality::LegQuality;
use sidetone_model::quality::MediaVerdict;
use sidetone_sip::sdp::{
    self, Codec, CodecPolicy, Direction, IceRule, KeySeed, Media, Negotiated, NegotiationError, OfferAnswer,
    SessionDescription, SrtpRule, T38, payload_map,
};

use crate::converted_keys;
use crate::io::{KeyForm, MediaCommand, Port, PortId};
use crate::leg_video::LegVideo;

/// State of one leg.
#[derive(Debug)]
pub(super) struct Leg {
    /// The codecs that this party may use.
    pub(super) policy: CodecPolicy,
    /// The source address of its SIP.
    pub(super) signalling: Option<IpAddr>,
    /// The User-Agent of its last request or response that had one, as a record contains it.
    user_agent: Option<Box<str>>,
    pub(super) exchange: OfferAnswer,
    /// The SRTP rule of the party; its offers are checked by this rule before any other use.
    pub(super) srtp: SrtpRule,
    /// The current protection of the port.
    protection: Option<Box<Protection>>,
    /// Whether an offer to resume sending is due, or has no answer yet.
    pub(super) resumes: bool,
    /// [`INFORMS`], [`TONES`] and [`WATCHES`], in one byte to save memory: every call has two legs.
    key_flags: u8,
    port: PortId,
    /// The address that our SDP gives.
    advertised: SocketAddr,
    /// Its video, if both parties may have some.
    pub(super) video: Option<Box<LegVideo>>,
    /// False once the port is released.
    open: bool,
    /// Whether it is in a room instead of being relayed to another leg.
    seated: bool,
    /// Whether the room was notified that the party is holding.
    holds: bool,
    /// Whether packets received on it are transcoded.
    transcodes: bool,
    /// The verdict of the last warning about its audio.
    pub(super) warned: Option<MediaVerdict>,
    /// The final report of its port.
    media: MediaReport,
    /// Since when the party sends nothing.
    pub(super) silent_since: Option<Instant>,
    /// The probe of a silent party.
    pub(super) probe: Probe,
}

/// SRTP and ICE of a new leg.
pub(super) struct LegProtection {
    pub(super) srtp: SrtpRule,
    pub(super) ice: IceRule,
    /// The source of its keys and credentials.
    pub(super) seed: KeySeed,
}

/// Whether a silent party was probed, and with which result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// It answered at this time.
    Answered(Instant),
    /// It was probed at this time and has not answered yet.
    Asked(Instant),
    /// It was not probed.
    None,
}

/// The final report of a leg's port.
#[derive(Debug)]
enum MediaReport {
    /// Not received yet.
    Awaited,
    /// There was no media.
    None,
    /// The figures.
    Reported(Box<LegQuality>),
}

impl Leg {
    pub(super) fn new(
        port: Port,
        session_id: u64,
        policy: CodecPolicy,
        signalling: Option<IpAddr>,
        protection: LegProtection,
    ) -> Self {
        let LegProtection { srtp, ice, seed } = protection;
        Leg {
            policy,
            signalling,
            user_agent: None,
            exchange: OfferAnswer::new(session_id).with_ice(srtp, ice, seed),
            srtp,
            protection: None,
            resumes: false,
            key_flags: 0,
            port: port.id,
            advertised: port.advertised,
            video: port.video.map(|port| Box::new(LegVideo::new(port))),
            open: true,
            seated: false,
            holds: false,
            transcodes: false,
            warned: None,
            media: MediaReport::Awaited,
            silent_since: None,
            probe: Probe::None,
        }
    }

    pub(super) fn port(&self) -> PortId {
        self.port
    }

    /// Returns the address that our SDP gives.
    pub(super) fn local(&self) -> SocketAddr {
        self.advertised
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Releases the port; returns the command for it, only once.
    pub(super) fn close(&mut self) -> Option<MediaCommand> {
        std::mem::take(&mut self.open).then_some(MediaCommand::Close)
    }

    /// Stores the final report of its port; `None` when there was no media.
    pub(super) fn reported(&mut self, media: Option<LegQuality>) {
        self.media = media.map_or(MediaReport::None, |media| MediaReport::Reported(Box::new(media)));
    }

    /// Whether the final report of its port has arrived.
    pub(super) fn has_reported(&self) -> bool {
        let has_video = self.video.as_ref().is_none_or(|video| video.has_reported());
        has_video && !matches!(self.media, MediaReport::Awaited)
    }

    /// Notes the User-Agent of an INVITE, as a record contains it.
    pub(super) fn calls_as(&mut self, user_agent: Option<String>) {
        self.user_agent = user_agent.map(Into::into);
    }

    /// Notes the User-Agent of a response.
    pub(super) fn answers_as(&mut self, user_agent: &str) {
        // Usually every response of a party has the same User-Agent.
        if self.user_agent.as_deref() != Some(user_agent) {
            self.user_agent = device::user_agent(user_agent).map(Into::into);
        }
    }

    /// Returns the party's device. Its network is that of its audio if any arrived, because SIP may come from a proxy.
    pub(super) fn device(&self) -> Device {
        let source = self.media().and_then(|media| media.addresses.source.as_deref());
        let audio = source.and_then(|source| source.parse::<SocketAddr>().ok()).map(|source| source.ip());
        Device {
            user_agent: self.user_agent.as_deref().map(str::to_owned),
            network: audio.or(self.signalling).map(device::network),
        }
    }

    /// Returns the final report of its port.
    pub(super) fn media(&self) -> Option<&LegQuality> {
        match &self.media {
            MediaReport::Awaited | MediaReport::None => None,
            MediaReport::Reported(media) => Some(media),
        }
    }

    /// Takes the final report of its port.
    pub(super) fn take_media(&mut self) -> Option<LegQuality> {
        match std::mem::replace(&mut self.media, MediaReport::None) {
            MediaReport::Awaited | MediaReport::None => None,
            MediaReport::Reported(media) => {
                let video = self.video.as_ref().and_then(|video| video.media());
                Some(LegQuality { video, ..*media })
            }
        }
    }

    /// Marks the leg as seated in a room.
    pub(super) fn seat(&mut self) {
        self.seated = self.open;
    }

    /// Ends the seat; returns whether there was one.
    pub(super) fn unseat(&mut self) -> bool {
        std::mem::take(&mut self.seated)
    }

    pub(super) fn is_seated(&self) -> bool {
        self.seated
    }

    /// Returns whether the party now holds; `None` if that did not change. A party that holds does not want to receive.
    pub(super) fn holding_changed(&mut self) -> Option<bool> {
        let holds = self.exchange.negotiated().is_some_and(|settled| !settled.direction.sends());
        let before = std::mem::replace(&mut self.holds, holds);
        (before != holds).then_some(holds)
    }

    /// Returns the formats for a mix; `None` when the mix has no codec in common with the party.
    pub(super) fn formats(&self) -> Option<Formats> {
        let negotiated = self.exchange.negotiated()?;
        let formats = media_plan::formats(negotiated)?;
        // A party that holds may send music for its peer; a room must not mix that.
        Some(Formats { speaks: formats.speaks && negotiated.direction.sends(), ..formats })
    }

    /// Whether a mix has a codec in common with the party.
    pub(super) fn is_mixable(&self) -> bool {
        self.exchange.negotiated().and_then(media_plan::formats).is_some()
    }

    /// Returns the offer of a room: the codecs that this party may use and a mix can handle.
    pub(super) fn offer_to_room(&self) -> SessionDescription {
        let mut codecs = self.policy.codecs();
        codecs.retain(media_plan::is_mixable);
        sdp::offer(self.advertised, codecs, Direction::SendRecv)
    }

    /// Whether the party may send audio that a mix cannot decode, or a fax.
    pub(super) fn sends_unmixable(&self) -> bool {
        if self.is_fax() {
            return true;
        }
        let settled = self.exchange.negotiated();
        let mut codecs = settled.into_iter().flat_map(|settled| &settled.payloads);
        codecs.any(|payload| !media_plan::is_mixable(&payload.codec))
    }

    /// Returns the answer of a room to the open offer of the party.
    ///
    /// # Errors
    /// The status to refuse the offer with; the offer stays open.
    pub(super) fn answer_for_room(&mut self) -> Result<SessionDescription, u16> {
        let mut offered = self.exchange.remote_offer().cloned().ok_or(491_u16)?;
        for media in offered.media.iter_mut().filter(|media| media.is_carried()) {
            media.codecs.retain(media_plan::is_mixable);
        }
        let answer = sdp::answer(&offered, self.advertised, &self.policy, Direction::SendRecv);
        let answer = answer.map_err(|refused| refused.status())?;
        self.exchange.send_answer(answer).map_err(|_| 488)
    }

    /// Returns the name of the negotiated audio codec; `T38` for a fax in its place.
    pub(super) fn codec(&self) -> Option<String> {
        let negotiated = self.exchange.negotiated()?;
        if negotiated.is_fax() {
            return Some("T38".to_owned());
        }
        Some(media_plan::canonical_name(&negotiated.codec()?.name))
    }

    /// Whether the leg carries a fax (T.38) in place of audio.
    pub(super) fn is_fax(&self) -> bool {
        self.exchange.negotiated().is_some_and(Negotiated::is_fax)
    }

    /// Whether packets received on it are transcoded.
    pub(super) fn transcodes(&self) -> bool {
        self.transcodes
    }

    /// Whether an audio codec of that name is negotiated for this leg.
    pub(super) fn has_codec(&self, name: &str) -> bool {
        let negotiated = self.exchange.negotiated();
        negotiated.is_some_and(|negotiated| negotiated.payloads.iter().any(|payload| payload.codec.is(name)))
    }

    /// Whether a negotiated audio codec of this leg is in a description.
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

    /// Returns the command that passes the negotiated keys, or ICE and DTLS, to the media engine when they have
    /// changed.
    pub(super) fn secure(&mut self) -> Option<MediaCommand> {
        let protection = media_plan::protection(self.exchange.negotiated()?).map(Box::new);
        if protection == self.protection {
            return None;
        }
        self.protection.clone_from(&protection);
        Some(MediaCommand::Secure(protection))
    }

    /// Returns the command that passes the negotiated session to the media engine.
    pub(super) fn describe(&self) -> Option<MediaCommand> {
        let negotiated = self.exchange.negotiated()?;
        Some(MediaCommand::Describe(Box::new(media_plan::description(negotiated, self.signalling))))
    }

    /// Returns the command that relays packets received here to `peer`, as far as the peer negotiated their
    /// format.
    pub(super) fn bridge_to(&self, peer: &Leg) -> Option<MediaCommand> {
        self.bridge_towards(peer.port(), peer.exchange.negotiated()?)
    }

    /// Does the same for a port whose party negotiated `theirs`.
    pub(super) fn bridge_towards(&self, peer: PortId, theirs: &Negotiated) -> Option<MediaCommand> {
        let own = self.exchange.negotiated()?;
        let mut payload_map = payload_map(own, theirs).map(Box::new);
        if let Some((events, _)) = converted_keys::watched(own, theirs) {
            let map = payload_map.get_or_insert_with(|| Box::new(std::array::from_fn(|number| number as u8)));
            map.get_mut(usize::from(events)).into_iter().for_each(|entry| *entry = UNMAPPED);
        }
        if let Some(plan) = media_plan::transcoding(own, theirs) {
            // Packets that are transcoded must not be relayed too.
            let map = payload_map.get_or_insert_with(|| Box::new(std::array::from_fn(|number| number as u8)));
            let events = plan.events.map(|events| events.from.0);
            let audio = plan.audio.iter().map(|(number, _)| *number);
            for number in audio.chain(plan.noise.iter().copied()).chain(events) {
                map.get_mut(usize::from(number)).into_iter().for_each(|entry| *entry = UNMAPPED);
            }
        }
        Some(MediaCommand::Bridge { peer, payload_map })
    }

    /// Returns the plan to transcode packets received here for `peer`.
    pub(super) fn plan_towards(&self, peer: &Leg) -> Option<TranscodePlan> {
        self.plan_for(peer.exchange.negotiated()?)
    }

    /// Does the same for a party that negotiated `theirs`.
    pub(super) fn plan_for(&self, theirs: &Negotiated) -> Option<TranscodePlan> {
        media_plan::transcoding(self.exchange.negotiated()?, theirs)
    }

    /// Sets or ends transcoding; returns the command if one is needed.
    pub(super) fn transcode(&mut self, plan: Option<TranscodePlan>) -> Option<MediaCommand> {
        let before = std::mem::replace(&mut self.transcodes, plan.is_some());
        (before || plan.is_some()).then(|| MediaCommand::Transcode(plan.map(Box::new)))
    }

    /// Returns the form of the party's keys without telephone events.
    pub(super) fn key_form(&self) -> KeyForm {
        match (self.key_flags & INFORMS != 0, self.key_flags & TONES != 0) {
            (true, _) => KeyForm::Info,
            (false, true) => KeyForm::Tones,
            (false, false) => KeyForm::Unknown,
        }
    }

    /// Notes the form of the party's keys; [`KeyForm::Unknown`] changes nothing.
    pub(super) fn has_keys(&mut self, form: KeyForm) {
        let flag = match form {
            KeyForm::Info => INFORMS,
            KeyForm::Tones => TONES,
            KeyForm::Unknown => return,
        };
        self.key_flags = self.key_flags & WATCHES | flag;
    }

    /// Starts reports of keys from `source`, or stops them; returns the command if one is needed.
    pub(super) fn watch_keys(&mut self, source: Option<KeySource>) -> Option<MediaCommand> {
        let before = self.key_flags & WATCHES != 0;
        self.key_flags = self.key_flags & !WATCHES | if source.is_some() { WATCHES } else { 0 };
        (before || source.is_some()).then_some(MediaCommand::WatchKeys(source))
    }

    /// Adds telephone events to the offer for the peer, if the party that sent `offered` takes keys in another form.
    pub(super) fn with_events(
        &self,
        offered: &SessionDescription,
        mut offer: SessionDescription,
    ) -> SessionDescription {
        if converted_keys::takes_keys(self.key_form(), offered) {
            converted_keys::offer_events(&mut offer);
        }
        offer
    }

    /// Returns the source in which to detect the party's keys, if `peer` needs them in another form.
    pub(super) fn keys_towards(&self, peer: &Leg) -> Option<KeySource> {
        self.keys_for(peer.exchange.negotiated()?)
    }

    /// Does the same for a party that negotiated `theirs`.
    pub(super) fn keys_for(&self, theirs: &Negotiated) -> Option<KeySource> {
        converted_keys::source(self.exchange.negotiated()?, theirs, self.key_form())
    }

    /// Returns the answer that a provisional response gave to the INVITE of this caller. The caller accepts no other in
    /// the 200 (RFC 3261 §13.2.1).
    pub(super) fn early_answer(&self) -> Option<&SessionDescription> {
        self.exchange.negotiated()?;
        self.exchange.in_force()
    }

    /// Returns the negotiated session as a description from which an answer for the other leg can be made.
    pub(super) fn settled(&self) -> Option<SessionDescription> {
        let negotiated = self.exchange.negotiated()?;
        if let Some(t38) = &negotiated.t38 {
            let port = self.advertised.port();
            let fax = Media::fax(port, T38::clone(t38), negotiated.direction.reversed());
            return Some(SessionDescription::new(self.advertised.ip(), vec![fax]));
        }
        let codecs = negotiated.payloads.iter().map(|payload| payload.codec.clone()).collect();
        let audio = Media {
            direction: negotiated.direction.reversed(),
            ptime_ms: negotiated.ptime_ms,
            maxptime_ms: negotiated.maxptime_ms,
            ..Media::audio(self.advertised.port(), codecs)
        };
        let video = self.video.as_ref().zip(negotiated.video.as_ref());
        let video = video.map(|(own, video)| video.settled(own.local().port()));
        Some(SessionDescription::new(self.advertised.ip(), std::iter::once(audio).chain(video).collect()))
    }

    /// Returns an offer of the party reduced to what it may use: its SRTP rule applies, and video needs a port.
    ///
    /// # Errors
    /// When SRTP is required and no audio has it.
    pub(super) fn admit(&self, offer: SessionDescription) -> Result<SessionDescription, NegotiationError> {
        let mut offer = self.srtp.admit(offer)?;
        if self.video.is_none() {
            offer.refuse_video();
        }
        Ok(offer)
    }

    /// Whether it has negotiated video.
    pub(super) fn has_video(&self) -> bool {
        self.exchange.negotiated().is_some_and(|negotiated| negotiated.video.is_some())
    }

    /// Returns the negotiated part of the party's answer: video without keys beside audio with keys is removed.
    pub(super) fn heard(&self, mut answer: SessionDescription) -> SessionDescription {
        if !self.has_video() {
            answer.refuse_video();
        }
        answer
    }

    /// Adds the video that the other party offers to our offer for this one.
    pub(super) fn add_video(&self, offer: &mut SessionDescription, offered: &SessionDescription) {
        if let Some(video) = &self.video {
            sdp::offer_video(offer, offered, video.local());
        }
    }

    /// Adds to our answer the video that the party offered, as the other party answered it.
    pub(super) fn accept_video(
        &self,
        answer: &mut SessionDescription,
        offered: &SessionDescription,
        answered: &SessionDescription,
    ) {
        if let Some(video) = &self.video {
            sdp::answer_video(answer, offered, answered, video.local());
        }
    }

    /// Returns the commands that pass the negotiated video to the media engine, and its port.
    pub(super) fn describe_video(&mut self) -> Option<(PortId, Vec<MediaCommand>)> {
        let own = self.video.as_mut()?;
        let negotiated = self.exchange.negotiated()?.video.as_ref()?;
        Some((own.port(), own.describe(negotiated, self.signalling)))
    }

    /// Returns the port of the video that it has negotiated.
    pub(super) fn video_port(&self) -> Option<PortId> {
        self.video.as_ref().filter(|_| self.has_video()).map(|video| video.port())
    }
}

/// The party accepts INFO.
const INFORMS: u8 = 1;
/// Its Allow does not list INFO.
const TONES: u8 = 4;
/// The party's keys are reported to the switch.
const WATCHES: u8 = 2;
/// Entry of a payload map for a payload type that is not relayed.
const UNMAPPED: u8 = 0xff;
