//! Offers and answers of a switch that inserts its own ports between the parties (RFC 7092 "media-relay").

use std::net::SocketAddr;

use crate::sdp::{Codec, CodecPolicy, Direction, Media, NegotiationError, SessionDescription, XrWish};

/// Our own offer: one audio section at `local` with these codecs.
pub fn offer(local: SocketAddr, codecs: Vec<Codec>, direction: Direction) -> SessionDescription {
    let audio = Media { direction, ..Media::audio(local.port(), codecs) };
    SessionDescription::new(local.ip(), vec![audio])
}

/// The offer for the next leg, based on the offer of a party.
///
/// It has one audio section at our address `local`, with the offerer's codecs that `from` (the offering
/// party's policy) and `to` (the called party's) allow, in `to`'s order or otherwise the offerer's, with the
/// offerer's numbers; and the offer's direction, ptime and maxptime. A hold by address becomes `sendonly`.
///
/// An offer with T.38 and without audio becomes one with T.38. For an offer with both, only the audio is passed on: a
/// fax device that accepts it changes to T.38 with its own offer.
///
/// # Errors
/// When the offer has neither audio that we support nor T.38, or no codec remains.
pub fn offer_from(
    offered: &SessionDescription,
    local: SocketAddr,
    from: &CodecPolicy,
    to: &CodecPolicy,
) -> Result<SessionDescription, NegotiationError> {
    if let Some((_, fax)) = offered.carried_fax() {
        return Ok(SessionDescription::new(local.ip(), vec![passed_on(fax, offered, local.port())]));
    }
    let (_, audio) = offered.carried_audio().ok_or(NegotiationError::NoAudio)?;
    let codecs = with_audio(to.apply(&from.apply(&audio.codecs)))?;
    let mut offer = offer(local, codecs, offered.direction_of(audio));
    if let Some(media) = offer.media.first_mut() {
        media.ptime_ms = audio.ptime_ms;
        media.maxptime_ms = audio.maxptime_ms;
    }
    Ok(offer)
}

/// The answer for the offering party, based on the answer of the next leg.
///
/// It has every section of the offer in its position: the audio at our address `local` with the codecs that
/// the next leg accepted, in its order and with the offerer's numbers; all others are refused.
///
/// # Errors
/// When the offer has neither audio that we support nor T.38, the answer refuses it, or no codec remains.
pub fn answer_to(
    offered: &SessionDescription,
    answered: &SessionDescription,
    local: SocketAddr,
) -> Result<SessionDescription, NegotiationError> {
    if let Some((place, fax)) = offered.carried_fax() {
        let (_, taken) = answered.carried_fax().ok_or(NegotiationError::Refused)?;
        let wish = passed_on(taken, answered, local.port());
        let direction = wish.direction.answering(offered.direction_of(fax));
        return Ok(answer_at(offered, local, place, Media { direction, ..wish }));
    }
    let (_, audio) = offered.carried_audio().ok_or(NegotiationError::NoAudio)?;
    let (_, taken) = answered.carried_audio().ok_or(NegotiationError::Refused)?;
    let mut codecs: Vec<Codec> = Vec::new();
    for codec in &taken.codecs {
        if let Some(offer) = codec.found_in(&audio.codecs)
            && !codecs.iter().any(|other| other.payload_type == offer.payload_type || codec.repeats(other))
        {
            codecs.push(Codec { fmtp: codec.fmtp.clone(), ..offer.clone() });
        }
    }
    let direction = answered.direction_of(taken);
    let media = Media { ptime_ms: taken.ptime_ms, maxptime_ms: taken.maxptime_ms, ..Media::audio(0, codecs) };
    answer_with(offered, local, Media { direction, ..media })
}

/// Our own answer: the offered codecs of ours that `policy` allows in the offerer's order, as from a phone or an
/// announcement.
///
/// # Errors
/// When the offer has no audio that we support, or no codec remains.
pub fn answer(
    offered: &SessionDescription,
    local: SocketAddr,
    policy: &CodecPolicy,
    direction: Direction,
) -> Result<SessionDescription, NegotiationError> {
    let (_, audio) = offered.carried_audio().ok_or(NegotiationError::NoAudio)?;
    let allowed = policy.apply(&audio.codecs);
    let own = CodecPolicy::ANY.apply(&audio.codecs).into_iter().filter(Codec::is_own);
    let codecs = own.filter(|codec| allowed.contains(codec)).collect();
    answer_with(offered, local, Media { direction, ..Media::audio(0, codecs) })
}

/// The answer whose audio section follows `wish` as far as the offer allows (RFC 3264 §6).
fn answer_with(
    offered: &SessionDescription,
    local: SocketAddr,
    wish: Media,
) -> Result<SessionDescription, NegotiationError> {
    let (place, audio) = offered.carried_audio().ok_or(NegotiationError::NoAudio)?;
    let accepted = Media {
        port: local.port(),
        protocol: audio.protocol.clone(),
        codecs: with_audio(wish.codecs)?,
        direction: wish.direction.answering(offered.direction_of(audio)),
        rtcp_mux: audio.rtcp_mux,
        // Both sides take part in the measurement (RFC 3611 §5.2). We request no other report.
        xr: XrWish { round_trip: audio.xr.round_trip, ..XrWish::default() },
        ..Media { codecs: Vec::new(), ..wish }
    };
    Ok(answer_at(offered, local, place, accepted))
}

/// The answer that accepts the section at `place` and refuses the others.
fn answer_at(
    offered: &SessionDescription,
    local: SocketAddr,
    place: usize,
    accepted: Media,
) -> SessionDescription {
    let mut media: Vec<Media> = offered.media.iter().map(Media::refused).collect();
    if let Some(section) = media.get_mut(place) {
        *section = accepted;
    }
    SessionDescription::new(local.ip(), media)
}

/// A party's T.38 section with our port, for the other party.
fn passed_on(fax: &Media, of: &SessionDescription, port: u16) -> Media {
    Media::fax(port, fax.t38.as_deref().cloned().unwrap_or_default(), of.direction_of(fax))
}

/// Returns `codecs` when they contain audio: events do not suffice for a call.
fn with_audio(codecs: Vec<Codec>) -> Result<Vec<Codec>, NegotiationError> {
    if codecs.iter().any(|codec| !codec.is_auxiliary()) {
        Ok(codecs)
    } else {
        Err(NegotiationError::NoCommonCodec)
    }
}
