//! SRTP of a dialog, with keys in SDP (RFC 4568) or by DTLS (RFC 5763), and ICE (RFC 8839): offers, and accepted
//! answers.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::sdp::crypto::{Crypto, CryptoKey, CryptoSuite};
use crate::sdp::description::{DTLS_SAVPF, RTP_SAVP, is_dtls, is_secure};
use crate::sdp::video::secure_form;
use crate::sdp::webrtc::{OWN_PASSWORD, OWN_UFRAG};
use crate::sdp::{
    Dtls, Fingerprint, IceCandidate, IceCredentials, IceTerms, IceTransport, Media, Negotiated,
    NegotiationError, SessionDescription, Setup, SrtpTerms, Webrtc,
};
use crate::text::Text;

/// The use of SRTP with a party.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SrtpRule {
    /// Never: lines of a party are ignored, and a section that offers only SRTP is refused.
    #[default]
    Off,
    /// When the party supports it too: offered beside plain RTP (RFC 8643), and accepted in any form.
    Optional,
    /// Always: plain RTP is neither offered nor accepted.
    Required,
    /// Always, with ICE and keys of a DTLS handshake, as used by browsers.
    Webrtc,
}

impl SrtpRule {
    /// The party's offer, reduced to what the rule allows.
    ///
    /// # Errors
    /// SRTP is required, and no audio section has it.
    pub fn admit(self, mut offer: SessionDescription) -> Result<SessionDescription, NegotiationError> {
        for media in &mut offer.media {
            match self {
                SrtpRule::Off => media.crypto.clear(),
                SrtpRule::Optional => {}
                SrtpRule::Required if media.crypto.is_empty() => media.port = 0,
                SrtpRule::Required => {}
                SrtpRule::Webrtc => {
                    media.crypto.clear();
                    media.port = if media.is_webrtc() { media.port } else { 0 };
                }
            }
            if let Some(webrtc) = media.webrtc.as_mut().filter(|_| self != SrtpRule::Webrtc) {
                webrtc.transport.take_if(|transport| transport.dtls.is_some());
            }
        }
        if matches!(self, SrtpRule::Required | SrtpRule::Webrtc) && offer.carried_audio().is_none() {
            return Err(NegotiationError::NoSrtp);
        }
        Ok(offer)
    }
}

/// The source of a leg's keys, and the fingerprint of our certificate; the seed is never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeySeed {
    seed: [u8; 32],
    certificate: Option<Arc<Fingerprint>>,
}

impl KeySeed {
    /// A source of keys that are derived from `seed`, which comes from the system's randomness.
    pub const fn new(seed: [u8; 32]) -> Self {
        KeySeed { seed, certificate: None }
    }

    /// The same for a node with this certificate. Without a certificate there is no DTLS.
    #[must_use]
    pub fn with_certificate(self, certificate: Option<Arc<Fingerprint>>) -> Self {
        KeySeed { certificate, ..self }
    }

    /// Splits off a source that is independent of this one's later keys.
    #[must_use]
    pub fn split(&mut self) -> KeySeed {
        let mut split = KeySeed { certificate: self.certificate.clone(), ..KeySeed::default() };
        self.fill(&mut split.seed);
        split
    }

    /// Fills `out`, and overwrites the seed that produced it.
    fn fill(&mut self, out: &mut [u8]) {
        let mut random = StdRng::from_seed(self.seed);
        random.fill(&mut self.seed);
        random.fill(out);
    }
}

impl fmt::Debug for KeySeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySeed(..)")
    }
}

/// The use of ICE with a party without DTLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IceRule {
    /// An offer with ICE is answered without it.
    #[default]
    Never,
    /// Our first offer has ICE, and an answer without it is accepted.
    Offered,
    /// An offer with ICE is answered with it.
    WhenOffered,
}

/// SRTP and ICE of one dialog: the rules, and our keys.
#[derive(Clone, Debug)]
pub(super) struct Srtp {
    rule: SrtpRule,
    ice: IceRule,
    seed: KeySeed,
    /// Whether our next offer contains a new key.
    renews: bool,
}

impl Srtp {
    /// `None` for a leg without SRTP and ICE.
    pub(super) fn new(rule: SrtpRule, ice: IceRule, seed: KeySeed) -> Option<Srtp> {
        let has_any = rule != SrtpRule::Off || ice != IceRule::Never;
        has_any.then_some(Srtp { rule, ice, seed, renews: false })
    }

    /// Makes our next offer contain a new key.
    pub(super) fn renew(&mut self) {
        self.renews = true;
    }

    /// Puts our lines into our offer. After an earlier exchange the suite stays, and our key too unless it is being
    /// renewed.
    pub(super) fn offer(&mut self, offer: &mut SessionDescription, before: Option<&Negotiated>) {
        if self.is_webrtc() {
            return self.offer_webrtc(offer, before.and_then(|before| before.ice.as_deref()));
        }
        self.offer_ice(offer, before.map(|before| before.ice.as_deref()));
        if self.rule == SrtpRule::Off {
            return;
        }
        let renews = std::mem::take(&mut self.renews);
        self.offer_keys(offer, before.map(|before| before.srtp.as_deref()), renews);
        self.offer_video_keys(offer, before, renews);
    }

    /// Puts our lines into the audio of our offer.
    fn offer_keys(
        &mut self,
        offer: &mut SessionDescription,
        before: Option<Option<&SrtpTerms>>,
        renews: bool,
    ) {
        let lines = match before {
            Some(Some(terms)) if renews => vec![self.line(terms.send.tag, terms.send.suite)],
            Some(terms) => terms.map(|terms| terms.send.clone()).into_iter().collect(),
            None => {
                let lines = (1..).zip(OFFERED).map(|(tag, suite)| self.line(tag, suite));
                lines.collect::<Vec<Crypto>>()
            }
        };
        for media in offer.media.iter_mut().filter(|media| media.is_rtp_audio() && media.port != 0) {
            media.crypto.clone_from(&lines);
            if before.is_none() && self.rule == SrtpRule::Required {
                media.protocol = RTP_SAVP.into();
            }
        }
    }

    /// Puts our lines into the video of our offer, in the same form as the audio: keys of its own, and the transport of
    /// SRTP if the audio has that.
    fn offer_video_keys(
        &mut self,
        offer: &mut SessionDescription,
        before: Option<&Negotiated>,
        renews: bool,
    ) {
        let is_secure_audio =
            offer.media.iter().any(|media| media.is_rtp_audio() && is_secure(&media.protocol));
        let Some(place) = offer.media.iter().position(Media::is_video) else { return };
        let had = before.and_then(|before| before.video.as_ref()?.terms.srtp.as_deref());
        let lines = match (before.map(|before| before.srtp.as_deref()), had) {
            (Some(None), _) => Vec::new(),
            (_, Some(had)) if renews => vec![self.line(had.send.tag, had.send.suite)],
            (_, Some(had)) => vec![had.send.clone()],
            (Some(Some(audio)), None) => vec![self.line(1, audio.send.suite)],
            (None, None) => (1..).zip(OFFERED).map(|(tag, suite)| self.line(tag, suite)).collect(),
        };
        let Some(media) = offer.media.get_mut(place) else { return };
        if is_secure_audio && !is_secure(&media.protocol) {
            media.protocol = secure_form(&media.protocol).into();
        }
        media.crypto = lines;
    }

    /// Puts our line into our answer to the video at `place` of an offer. Without a line the video has no key, and is
    /// refused if the audio has one.
    pub(super) fn answer_video(
        &mut self,
        offer: &SessionDescription,
        answer: &mut SessionDescription,
        place: usize,
        before: Option<&Negotiated>,
    ) {
        let before = before.and_then(|before| before.video.as_ref()?.terms.srtp.as_deref());
        // The audio decides.
        let _ = self.answer_keys(offer, answer, place, before);
    }

    /// Puts our line into our answer to the section at `place` of an offer. Our key stays while the party's key stays.
    ///
    /// # Errors
    /// SRTP is required, or the section offers nothing else, and no line is acceptable.
    pub(super) fn answer(
        &mut self,
        offer: &SessionDescription,
        answer: &mut SessionDescription,
        place: usize,
        before: Option<&Negotiated>,
    ) -> Result<(), NegotiationError> {
        if self.is_webrtc() {
            return self.answer_webrtc(offer, answer, place, before.and_then(|before| before.ice.as_deref()));
        }
        self.answer_ice(offer, answer, place, before.and_then(|before| before.ice.as_deref()));
        self.answer_keys(offer, answer, place, before.and_then(|before| before.srtp.as_deref()))
    }

    /// Puts our line into our answer to the section at `place`.
    fn answer_keys(
        &mut self,
        offer: &SessionDescription,
        answer: &mut SessionDescription,
        place: usize,
        before: Option<&SrtpTerms>,
    ) -> Result<(), NegotiationError> {
        let Some((offered, answered)) = offer.media.get(place).zip(answer.media.get_mut(place)) else {
            return Ok(());
        };
        let known = before.and_then(|terms| {
            Some((offered.crypto.iter().find(|line| line.has_key_of(&terms.receive))?, terms))
        });
        let line = match (known, offered.crypto.first()) {
            (Some((theirs, terms)), _) => Crypto { tag: theirs.tag, ..terms.send.clone() },
            (None, Some(theirs)) => self.line(theirs.tag, theirs.suite),
            (None, None) => return self.without(&offered.protocol),
        };
        answered.crypto = vec![line];
        Ok(())
    }

    /// Checks that a section with this transport may be used without SRTP.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn without(&self, protocol: &str) -> Result<(), NegotiationError> {
        let is_required = matches!(self.rule, SrtpRule::Required | SrtpRule::Webrtc);
        if is_required || is_secure(protocol) || is_dtls(protocol) {
            Err(NegotiationError::NoSrtp)
        } else {
            Ok(())
        }
    }

    /// Whether the keys come from DTLS.
    pub(super) fn is_webrtc(&self) -> bool {
        self.rule == SrtpRule::Webrtc
    }

    /// Whether an exchange settled no keys.
    pub(super) fn lacks_keys(&self, negotiated: &Negotiated) -> bool {
        if self.is_webrtc() { negotiated.ice.is_none() } else { negotiated.srtp.is_none() }
    }

    /// Puts ICE and DTLS into our offer; earlier settled values stay.
    fn offer_webrtc(&mut self, offer: &mut SessionDescription, before: Option<&IceTerms>) {
        let Some(fingerprint) = self.seed.certificate.clone() else { return };
        let ice = before.map_or_else(|| self.credentials(), |before| before.own.clone());
        let place = place_of_audio(offer);
        let address = place.and_then(|place| offer.rtp_address(offer.media.get(place)?));
        let Some(media) = place.and_then(|place| offer.media.get_mut(place)) else { return };
        if !is_dtls(&media.protocol) {
            media.protocol = DTLS_SAVPF.into();
        }
        media.rtcp_mux = true;
        let dtls = Some(Dtls { fingerprint: *fingerprint, setup: Setup::ActPass });
        let transport = IceTransport { ice, is_lite: true, dtls, candidates: our_candidates(address, None) };
        media.webrtc = Some(Box::new(Webrtc {
            mid: before.map_or_else(|| Some(Text::from("0")), |before| before.mid.clone()),
            is_bundled: before.is_none_or(|before| before.is_bundled),
            transport: Some(transport),
        }));
    }

    /// Puts ICE and DTLS into our answer to the section at `place`. A new credential of the party restarts ICE, so a
    /// new one of ours is created (RFC 8445 §9).
    fn answer_webrtc(
        &mut self,
        offer: &SessionDescription,
        answer: &mut SessionDescription,
        place: usize,
        before: Option<&IceTerms>,
    ) -> Result<(), NegotiationError> {
        let theirs =
            offer.media.get(place).filter(|media| media.is_webrtc()).and_then(|media| media.webrtc.as_ref());
        let (theirs, transport) = theirs
            .and_then(|theirs| Some((theirs, theirs.transport.as_ref()?)))
            .ok_or(NegotiationError::NoSrtp)?;
        let offered = transport.dtls.ok_or(NegotiationError::NoSrtp)?;
        let fingerprint = self.seed.certificate.clone().ok_or(NegotiationError::NoSrtp)?;
        let ice = self.credentials_for(&transport.ice, before);
        let had = before.and_then(|before| before.dtls);
        let had = had.filter(|had| had.fingerprint == offered.fingerprint);
        let had = had.map(|had| if had.is_client { Setup::Active } else { Setup::Passive });
        let address = answer.media.get(place).and_then(|media| answer.rtp_address(media));
        let setup = offered.setup.answer(had);
        let Some(media) = answer.media.get_mut(place) else { return Ok(()) };
        media.rtcp_mux = true;
        let dtls = Some(Dtls { fingerprint: *fingerprint, setup });
        let ours = IceTransport { ice, is_lite: true, dtls, candidates: our_candidates(address, None) };
        media.webrtc = Some(Box::new(Webrtc { transport: Some(ours), ..Webrtc::clone(theirs) }));
        Ok(())
    }

    /// Puts ICE without DTLS into our offer: the settled credential, or a new one if the leg offers ICE.
    fn offer_ice(&mut self, offer: &mut SessionDescription, before: Option<Option<&IceTerms>>) {
        let ice = match before {
            Some(before) => before.map(|before| before.own.clone()),
            None => (self.ice == IceRule::Offered).then(|| self.credentials()),
        };
        if let (Some(place), Some(ice)) = (place_of_audio(offer), ice) {
            put_ice(offer, place, ice);
        }
    }

    /// Puts ICE without DTLS into our answer to the section at `place`, if the section has it. A new credential of the
    /// party restarts ICE, so a new one of ours is created (RFC 8445 §9).
    fn answer_ice(
        &mut self,
        offer: &SessionDescription,
        answer: &mut SessionDescription,
        place: usize,
        before: Option<&IceTerms>,
    ) {
        let offered = offer.media.get(place).filter(|media| media.has_plain_ice());
        let transport = offered.and_then(|media| media.webrtc.as_ref()?.transport.as_ref());
        let Some(theirs) = transport.filter(|_| self.ice != IceRule::Never) else { return };
        let ice = self.credentials_for(&theirs.ice, before);
        put_ice(answer, place, ice);
    }

    /// Our credential for an answer: the earlier one while the party keeps its own, otherwise a new one.
    fn credentials_for(&mut self, theirs: &IceCredentials, before: Option<&IceTerms>) -> IceCredentials {
        match before.filter(|before| before.theirs == *theirs) {
            Some(before) => before.own.clone(),
            None => self.credentials(),
        }
    }

    /// A new credential of ours.
    fn credentials(&mut self) -> IceCredentials {
        let mut random = [0; OWN_UFRAG + OWN_PASSWORD];
        self.seed.fill(&mut random);
        IceCredentials::of_random(&random)
    }

    /// A line with a new key.
    fn line(&mut self, tag: u32, suite: CryptoSuite) -> Crypto {
        let mut key = vec![0; suite.material_bytes()].into_boxed_slice();
        self.seed.fill(&mut key);
        Crypto { tag, suite, key: CryptoKey::new(key), mki_bytes: 0 }
    }
}

/// The index of the first audio section in our offer.
fn place_of_audio(offer: &SessionDescription) -> Option<usize> {
    offer.media.iter().position(|media| media.is_rtp_audio() && media.port != 0)
}

/// Puts ICE without DTLS into a section of our description, with a candidate for each of its ports.
fn put_ice(description: &mut SessionDescription, place: usize, ice: IceCredentials) {
    let addresses = description.media.get(place).map(|media| {
        let rtcp = description.rtcp_address(media, false).filter(|_| !media.rtcp_mux);
        (description.rtp_address(media), rtcp)
    });
    let Some((media, (rtp, rtcp))) = description.media.get_mut(place).zip(addresses) else { return };
    let transport = IceTransport { ice, is_lite: true, dtls: None, candidates: our_candidates(rtp, rtcp) };
    media.webrtc = Some(Box::new(Webrtc { mid: None, is_bundled: false, transport: Some(transport) }));
}

/// Our only candidate; none without an address.
fn our_candidates(rtp: Option<SocketAddr>, rtcp: Option<SocketAddr>) -> Box<[IceCandidate]> {
    rtp.map(|rtp| IceCandidate { rtp, rtcp }).into_iter().collect()
}

/// The offered suites: the first one is supported by every phone with SRTP. More lines would make an INVITE too long
/// for UDP.
const OFFERED: [CryptoSuite; 2] = [CryptoSuite::AesCm128HmacSha1Tag80, CryptoSuite::AeadAes128Gcm];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_are_not_printed() {
        let mut seed = KeySeed::new([7; 32]);
        let mut srtp = Srtp::new(SrtpRule::Optional, IceRule::Never, seed.split()).unwrap();
        let mut other = Srtp::new(SrtpRule::Optional, IceRule::Never, seed.split()).unwrap();
        let lines: Vec<Crypto> = [&mut srtp, &mut other]
            .into_iter()
            .flat_map(|srtp| [1, 2, 3].map(|tag| srtp.line(tag, CryptoSuite::AeadAes256Gcm)))
            .collect();
        for (place, line) in lines.iter().enumerate() {
            assert!(lines[..place].iter().all(|before| before.key != line.key), "{place}");
            assert_eq!(line.key.material().len(), 44);
        }
        let printed = format!("{srtp:?} {:?}", lines.first());
        assert!(printed.contains("KeySeed(..)") && printed.contains("CryptoKey(..)"), "{printed}");
        assert!(!printed.contains("[7") && !printed.contains("key: ["), "{printed}");
    }
}
