//! One party's side of a call: its media port and its offer/answer exchange.

use std::net::{IpAddr, SocketAddr};

use sidetone_sip::sdp::{CodecPolicy, Media, OfferAnswer, SessionDescription, payload_map};

use crate::media_plan;
use crate::switch::face::{MediaCommand, Port, PortId};

/// One party's side of a call.
#[derive(Debug)]
pub(super) struct Leg {
    /// The codecs this party may use.
    pub(super) policy: CodecPolicy,
    /// Where its SIP comes from.
    pub(super) signalling: Option<IpAddr>,
    pub(super) exchange: OfferAnswer,
    port: Port,
    /// False once the port was given back.
    open: bool,
}

impl Leg {
    pub(super) fn new(port: Port, session_id: u64, policy: CodecPolicy, signalling: Option<IpAddr>) -> Self {
        Leg { policy, signalling, exchange: OfferAnswer::new(session_id), port, open: true }
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

    /// What the media session must know now.
    pub(super) fn describe(&self) -> Option<MediaCommand> {
        let negotiated = self.exchange.negotiated()?;
        Some(MediaCommand::Describe(Box::new(media_plan::description(negotiated, self.signalling))))
    }

    /// Relays what arrives on this leg to `peer`.
    pub(super) fn bridge_to(&self, peer: &Leg) -> Option<MediaCommand> {
        let (own, theirs) = (self.exchange.negotiated()?, peer.exchange.negotiated()?);
        let payload_map = payload_map(own, theirs).map(Box::new);
        Some(MediaCommand::Bridge { peer: peer.port(), payload_map })
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
