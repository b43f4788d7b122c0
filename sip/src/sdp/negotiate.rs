//! The result of an offer and its answer for one leg (RFC 3264 §6–§7).

use std::net::SocketAddr;

use crate::sdp::description::{is_dtls, is_rtp, is_secure};
use crate::sdp::{
    Codec, Direction, DtlsTerms, IceTerms, Media, SessionDescription, Setup, SrtpTerms, T38, XrWish,
};

/// Why no media was negotiated; the SIP answer is 488 Not Acceptable Here (RFC 3261 §21.4.26).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NegotiationError {
    /// No section is enabled audio over a supported transport.
    #[error("agree on media: no audio section over RTP/AVP, or over RTP/SAVP with a key that we accept")]
    NoAudio,
    /// The parties have no common audio codec.
    #[error("agree on media: no codec in common")]
    NoCommonCodec,
    /// SRTP is required, and the party offers none, or none that is supported.
    #[error("agree on media: SRTP is required")]
    NoSrtp,
    /// The answer refuses the audio section.
    #[error("agree on media: the answer refuses the audio")]
    Refused,
}

impl NegotiationError {
    /// The SIP status for the offerer.
    pub const fn status(self) -> u16 {
        488
    }
}

/// Our role in one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The party offered, we answered.
    Answerer,
    /// We offered, the party answered.
    Offerer,
}

/// The negotiated audio of one leg, or the fax in its place, from our view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// Our own RTP address, as we advertised it; `None` when the description had no literal address.
    pub local: Option<SocketAddr>,
    /// The party's address for RTP; `None` while it holds by address or gave a host name. It may be one to which
    /// nothing may be sent, such as a multicast group.
    pub remote: Option<SocketAddr>,
    /// Whether the party wants RTP, but gave a host name or no address; `remote` is then `None`.
    pub unresolved: bool,
    /// The party's address for RTCP; equal to `remote` with `rtcp_mux`.
    pub remote_rtcp: Option<SocketAddr>,
    /// Whether both sides agreed to carry RTCP on the RTP port (RFC 5761 §5.1.1).
    pub rtcp_mux: bool,
    /// The direction of media, from our view.
    pub direction: Direction,
    /// The agreed formats in the answer's order; the first audio one is used.
    pub payloads: Vec<Payload>,
    /// The party's `a=ptime`, milliseconds.
    pub ptime_ms: Option<u32>,
    /// The party's `a=maxptime`, milliseconds.
    pub maxptime_ms: Option<u32>,
    /// Our own `a=ptime`, milliseconds.
    pub own_ptime_ms: Option<u32>,
    /// Our own `a=maxptime`, milliseconds.
    pub own_maxptime_ms: Option<u32>,
    /// Whether the packets are SRTP, with keys in SDP or of a handshake.
    pub protected: bool,
    /// The keys of SRTP; `None` for plain RTP.
    pub srtp: Option<Box<SrtpTerms>>,
    /// The parameters of ICE. With DTLS, the handshake gives the keys of SRTP.
    pub ice: Option<Box<IceTerms>>,
    /// The extended reports that the party requests.
    pub xr: XrWish,
    /// The party's lines of T.38, when the leg carries UDPTL in place of RTP; `payloads` is then empty.
    pub t38: Option<Box<T38>>,
    /// The video beside the audio, if the leg may have it.
    pub video: Option<Box<Video>>,
}

/// The negotiated video of a leg, beside its audio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Video {
    /// Addresses, direction, payload types and keys, as those of audio.
    pub terms: Negotiated,
    /// The party's section, for the other party.
    pub section: Media,
}

/// One agreed format. The two numbers differ when an answer renumbers a dynamic type (RFC 3264 §6.1); such a format is
/// listed a second time, at the end, with the party's number for both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The codec, with the party's `a=fmtp` and the number of `send`.
    pub codec: Codec,
    /// The number that the party expects; we send with it.
    pub send: u8,
    /// The number that we announced; the party sends with it.
    pub receive: u8,
    /// [`Codec::frame_ms`], if both sides have the same: iLBC is otherwise used with its default (RFC 3952 §5).
    pub frame_ms: Option<u8>,
}

impl Negotiated {
    /// The result of `offer` and `answer` for the first audio section that both leave enabled.
    ///
    /// Any audio over RTP counts here, also SRTP: a capture is judged by the same rules as our own calls.
    ///
    /// # Errors
    /// When there is no such section, or its formats have no common audio codec.
    pub fn new(
        offer: &SessionDescription,
        answer: &SessionDescription,
        role: Role,
    ) -> Result<Negotiated, NegotiationError> {
        if !offer.media.iter().zip(&answer.media).any(|(offered, _)| offered.is_rtp_audio()) {
            return Err(NegotiationError::NoAudio);
        }
        let place = audio_place(offer, answer).ok_or(NegotiationError::Refused)?;
        let sections = offer.media.get(place).zip(answer.media.get(place));
        let (offered, answered) = sections.ok_or(NegotiationError::Refused)?;
        let (ours, our_media, theirs, their_media) = match role {
            Role::Answerer => (answer, answered, offer, offered),
            Role::Offerer => (offer, offered, answer, answered),
        };
        let payloads = payloads(offered, answered, role);
        if !payloads.iter().any(|payload| !payload.codec.is_auxiliary()) {
            return Err(NegotiationError::NoCommonCodec);
        }
        let rtcp_mux = offered.rtcp_mux && answered.rtcp_mux;
        Ok(Negotiated {
            local: ours.rtp_address(our_media),
            remote: theirs.rtp_address(their_media),
            unresolved: theirs.is_unresolved(their_media),
            remote_rtcp: theirs.rtcp_address(their_media, rtcp_mux),
            rtcp_mux,
            direction: ours.direction_of(our_media).answering(theirs.direction_of(their_media)),
            payloads,
            ptime_ms: their_media.ptime_ms,
            maxptime_ms: their_media.maxptime_ms,
            own_ptime_ms: our_media.ptime_ms,
            own_maxptime_ms: our_media.maxptime_ms,
            protected: answered.is_protected(),
            srtp: srtp_terms(our_media, their_media, answered).map(Box::new),
            ice: ice_terms(our_media, their_media, role, rtcp_mux).map(Box::new),
            xr: their_media.xr,
            t38: None,
            video: None,
        })
    }

    /// The same, or T.38 if offer and answer have T.38 and no audio.
    ///
    /// # Errors
    /// As [`Negotiated::new`], when there is no T.38 either.
    pub fn with_fax(
        offer: &SessionDescription,
        answer: &SessionDescription,
        role: Role,
    ) -> Result<Negotiated, NegotiationError> {
        let mut pairs = offer.media.iter().zip(&answer.media);
        let fax = pairs.find(|(offered, answered)| offered.is_fax() && answered.is_fax());
        let Some((offered, answered)) = fax.filter(|_| audio_place(offer, answer).is_none()) else {
            return Negotiated::new(offer, answer, role);
        };
        let (ours, our_media, theirs, their_media) = match role {
            Role::Answerer => (answer, answered, offer, offered),
            Role::Offerer => (offer, offered, answer, answered),
        };
        Ok(Negotiated {
            local: ours.rtp_address(our_media),
            remote: theirs.rtp_address(their_media),
            unresolved: theirs.is_unresolved(their_media),
            remote_rtcp: None,
            rtcp_mux: false,
            direction: ours.direction_of(our_media).answering(theirs.direction_of(their_media)),
            payloads: Vec::new(),
            ptime_ms: None,
            maxptime_ms: None,
            own_ptime_ms: None,
            own_maxptime_ms: None,
            protected: false,
            srtp: None,
            ice: None,
            xr: XrWish::default(),
            t38: their_media.t38.clone(),
            video: None,
        })
    }

    /// Whether the leg carries T.38 in place of audio.
    pub fn is_fax(&self) -> bool {
        self.t38.is_some()
    }

    /// The audio codec of the leg: the first format that is neither events nor comfort noise.
    pub fn codec(&self) -> Option<&Codec> {
        self.payloads.iter().map(|payload| &payload.codec).find(|codec| !codec.is_auxiliary())
    }

    /// The telephone events of the leg (RFC 4733), those on the audio codec's clock first.
    pub fn telephone_event(&self) -> Option<&Payload> {
        let clock_rate = self.codec().map(|codec| codec.clock_rate);
        let events = || self.payloads.iter().filter(|payload| payload.codec.is("telephone-event"));
        events().find(|payload| Some(payload.codec.clock_rate) == clock_rate).or_else(|| events().next())
    }
}

/// The index of the first audio section that offer and answer both leave enabled; [`Negotiated`] describes
/// that one.
#[must_use]
pub fn audio_place(offer: &SessionDescription, answer: &SessionDescription) -> Option<usize> {
    let mut pairs = offer.media.iter().zip(&answer.media);
    pairs.position(|(offered, answered)| offered.is_rtp_audio() && offered.port != 0 && answered.port != 0)
}

impl Media {
    /// Whether it is audio over RTP with any profile.
    pub fn is_rtp_audio(&self) -> bool {
        self.kind == super::MediaKind::Audio && is_rtp(&self.protocol)
    }

    /// Whether its packets are SRTP: by its profile, or by a key in a section of plain RTP, which an answer accepts.
    pub fn is_protected(&self) -> bool {
        is_secure(&self.protocol) || is_dtls(&self.protocol) || !self.crypto.is_empty()
    }
}

/// The formats of the answer that were offered, in the answer's order.
fn payloads(offered: &Media, answered: &Media, role: Role) -> Vec<Payload> {
    let mut payloads: Vec<Payload> = Vec::new();
    for answer in &answered.codecs {
        let Some(offer) = answer.found_in(&offered.codecs) else { continue };
        let (theirs, receive) = match role {
            Role::Answerer => (offer, answer.payload_type),
            Role::Offerer => (answer, offer.payload_type),
        };
        if !payloads.iter().any(|payload| theirs.repeats(&payload.codec)) {
            let frame_ms = offer.frame_ms().filter(|ms| answer.frame_ms() == Some(*ms));
            payloads.push(Payload { codec: theirs.clone(), send: theirs.payload_type, receive, frame_ms });
        }
    }
    own_numbers(&mut payloads);
    payloads
}

/// Adds the numbers of a party that sends with its own numbers instead of ours, which §5.1 and §6.1 demand. A number that
/// we gave to another codec of the answer keeps that meaning.
fn own_numbers(payloads: &mut Vec<Payload>) {
    let is_taken = |number: u8| payloads.iter().any(|payload| payload.receive == number);
    let renumbered = payloads.iter().filter(|payload| !is_taken(payload.send)).cloned();
    let own: Vec<Payload> = renumbered.map(|payload| Payload { receive: payload.send, ..payload }).collect();
    payloads.extend(own);
}

/// The keys of both sides, when the answer accepts a line of the offer; both lines have the same tag (RFC 4568 §5.1.3).
pub(super) fn srtp_terms(ours: &Media, theirs: &Media, answered: &Media) -> Option<SrtpTerms> {
    let taken = answered.crypto.first()?;
    let line = |media: &Media| {
        let mut lines = media.crypto.iter();
        lines.find(|line| line.tag == taken.tag && line.suite == taken.suite).cloned()
    };
    Some(SrtpTerms { receive: line(theirs)?, send: line(ours)? })
}

/// ICE of both sides, with DTLS if both have it. An answerer that does not choose a role is the client, as RFC 5763 §5
/// recommends. DTLS requires one port for RTP and RTCP here. Without DTLS, a lite agent gets no ICE, because neither
/// side would send checks.
fn ice_terms(ours: &Media, theirs: &Media, role: Role, rtcp_mux: bool) -> Option<IceTerms> {
    let own = ours.webrtc.as_ref()?;
    let (sent, received) = (own.transport.as_ref()?, theirs.webrtc.as_ref()?.transport.as_ref()?);
    let dtls = match (sent.dtls, received.dtls) {
        (Some(sent), Some(received)) if rtcp_mux => {
            let is_client = match role {
                Role::Answerer => sent.setup != Setup::Passive,
                Role::Offerer => received.setup == Setup::Passive,
            };
            Some(DtlsTerms { fingerprint: received.fingerprint, is_client })
        }
        (None, None) if !received.is_lite => None,
        _ => return None,
    };
    Some(IceTerms {
        own: sent.ice.clone(),
        theirs: received.ice.clone(),
        dtls,
        mid: own.mid.clone(),
        is_bundled: own.is_bundled,
    })
}

/// Maps the payload types received on leg `from` to those that leg `to` expects.
///
/// `None` when every number stays the same. A number without a counterpart is unchanged; the media side
/// relays only what the receiving leg negotiated.
pub fn payload_map(from: &Negotiated, to: &Negotiated) -> Option<[u8; 128]> {
    let mut map: [u8; 128] = std::array::from_fn(|number| u8::try_from(number).unwrap_or_default());
    let mut changed = false;
    for payload in &from.payloads {
        let same = || to.payloads.iter().filter(|other| other.codec.matches(&payload.codec));
        // Among several configurations of one codec: the one to which both legs gave the same number on our side.
        let counterpart = same().find(|other| other.receive == payload.receive).or_else(|| same().next());
        if let (Some(counterpart), Some(entry)) = (counterpart, map.get_mut(usize::from(payload.receive))) {
            changed |= *entry != counterpart.send;
            *entry = counterpart.send;
        }
    }
    changed.then_some(map)
}
