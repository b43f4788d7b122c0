//! Video between two parties: its section is passed on with another address and port, and otherwise unchanged. The
//! formats keep their numbers on both legs, so packets are relayed unchanged and lines may refer to the numbers.

use std::net::SocketAddr;

use crate::sdp::description::{RTP_AVP, RTP_AVPF, RTP_SAVP, RTP_SAVPF, is_secure};
use crate::sdp::negotiate::srtp_terms;
use crate::sdp::{
    Codec, Direction, Media, MediaKind, Negotiated, Payload, Role, SessionDescription, Video, XrWish,
};
use crate::text::Text;

impl Media {
    /// Whether it is enabled video that our ports can carry: over RTP, or over SRTP with a key that we could accept;
    /// with or without feedback (RFC 4585). False with ICE, because the ports of video do not support ICE.
    pub fn is_carried_video(&self) -> bool {
        let has_ice = self.webrtc.as_ref().is_some_and(|webrtc| webrtc.transport.is_some());
        self.is_video() && !self.codecs.is_empty() && self.has_plain_or_keyed_rtp() && !has_ice
    }

    /// Whether it is enabled video.
    pub(super) fn is_video(&self) -> bool {
        self.kind == MediaKind::Video && self.port != 0
    }

    /// The same section with a port of ours.
    fn passed_on(&self, port: u16, protocol: Text, direction: Direction) -> Media {
        Media {
            kind: MediaKind::Video,
            protocol,
            direction,
            video: self.video.clone(),
            ..Media::audio(port, self.codecs.clone())
        }
    }
}

impl SessionDescription {
    /// The first section of video that our ports can carry, beside audio that they carry, and its index.
    pub fn carried_video(&self) -> Option<(usize, &Media)> {
        self.carried_audio()?;
        self.media.iter().enumerate().find(|(_, media)| media.is_carried_video())
    }

    /// Refuses all video: in our answer, or in an offer of a party that may not have video.
    pub fn refuse_video(&mut self) {
        for media in self.media.iter_mut().filter(|media| media.is_video()) {
            *media = media.refused();
        }
    }
}

/// Adds the video that a party offers to our offer for the next leg, at our address `local`; nothing if the party
/// offers none. Keys are not passed on; the next leg gets its own.
pub fn offer_video(offer: &mut SessionDescription, offered: &SessionDescription, local: SocketAddr) {
    let Some((_, video)) = offered.carried_video() else { return };
    let protocol = if has_feedback(&video.protocol) { RTP_AVPF } else { RTP_AVP };
    offer.media.push(video.passed_on(local.port(), protocol.into(), offered.direction_of(video)));
}

/// Accepts the video of an offer in our answer, at our address `local`, as far as the next leg accepted it in
/// `answered`. Otherwise the video stays refused.
pub fn answer_video(
    answer: &mut SessionDescription,
    offered: &SessionDescription,
    answered: &SessionDescription,
    local: SocketAddr,
) {
    let (Some((place, video)), Some((_, taken))) = (offered.carried_video(), answered.carried_video()) else {
        return;
    };
    let direction = answered.direction_of(taken).answering(offered.direction_of(video));
    let accepted = taken.passed_on(local.port(), video.protocol.clone(), direction);
    let is_offered =
        |codec: &Codec| video.codecs.iter().any(|other| other.payload_type == codec.payload_type);
    // An answer from before this offer may contain formats that this offer no longer has.
    let codecs: Vec<Codec> = accepted.codecs.iter().filter(|codec| is_offered(codec)).cloned().collect();
    if let Some(section) = answer.media.get_mut(place).filter(|_| !codecs.is_empty()) {
        *section = Media { codecs, rtcp_mux: video.rtcp_mux, ..accepted };
    }
}

impl Video {
    /// The negotiated video of offer and answer beside `audio`. Beside encrypted audio it must be encrypted too.
    pub(super) fn new(
        offer: &SessionDescription,
        answer: &SessionDescription,
        role: Role,
        audio: &Negotiated,
    ) -> Option<Box<Video>> {
        let mut pairs = offer.media.iter().zip(&answer.media);
        let (offered, answered) =
            pairs.find(|(offered, answered)| offered.is_carried_video() && answered.is_carried_video())?;
        let (ours, our_media, theirs, their_media) = match role {
            Role::Answerer => (answer, answered, offer, offered),
            Role::Offerer => (offer, offered, answer, answered),
        };
        let srtp = srtp_terms(our_media, their_media, answered).map(Box::new);
        let lacks_key = srtp.is_none() && is_secure(&answered.protocol);
        if audio.is_fax() || lacks_key || srtp.is_some() != audio.srtp.is_some() {
            return None;
        }
        let rtcp_mux = offered.rtcp_mux && answered.rtcp_mux;
        let terms = Negotiated {
            local: ours.rtp_address(our_media),
            remote: theirs.rtp_address(their_media),
            unresolved: theirs.is_unresolved(their_media),
            remote_rtcp: theirs.rtcp_address(their_media, rtcp_mux),
            rtcp_mux,
            direction: ours.direction_of(our_media).answering(theirs.direction_of(their_media)),
            payloads: payloads(our_media, their_media),
            ptime_ms: None,
            maxptime_ms: None,
            own_ptime_ms: None,
            own_maxptime_ms: None,
            protected: answered.is_protected(),
            srtp,
            ice: None,
            xr: XrWish::default(),
            t38: None,
            video: None,
        };
        Some(Box::new(Video { terms, section: their_media.clone() }))
    }

    /// The party's section in the form of a plain RTP description, from which an answer for the other leg is made.
    pub fn settled(&self, port: u16) -> Media {
        let Video { terms, section } = self;
        section.passed_on(port, RTP_AVP.into(), terms.direction.reversed())
    }
}

/// The formats that the party may send: with our numbers, and with its own numbers.
fn payloads(ours: &Media, theirs: &Media) -> Vec<Payload> {
    let mut codecs: Vec<&Codec> = ours.codecs.iter().collect();
    for codec in &theirs.codecs {
        if !codecs.iter().any(|known| known.payload_type == codec.payload_type) {
            codecs.push(codec);
        }
    }
    let payload = |codec: &Codec| Payload {
        codec: codec.clone(),
        send: codec.payload_type,
        receive: codec.payload_type,
        frame_ms: None,
    };
    codecs.into_iter().map(payload).collect()
}

/// Whether a transport has early feedback (RFC 4585, RFC 5124).
fn has_feedback(protocol: &str) -> bool {
    protocol.ends_with(['f', 'F'])
}

/// The SRTP transport that corresponds to this one.
pub(super) fn secure_form(protocol: &str) -> &'static str {
    if has_feedback(protocol) { RTP_SAVPF } else { RTP_SAVP }
}
