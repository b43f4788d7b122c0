//! Offers and answers for two parties that may have no common codec: common codecs first, then those that we
//! can transcode.
//!
//! T.38 is passed on instead of audio. A codec that both have is relayed unchanged. Audio is transcoded only in a codec
//! that the receiver does not have; each side is then answered from its own offer. Pure: descriptions in, descriptions
//! out.

use std::net::SocketAddr;

use sidetone_call::media_plan;
use sidetone_sip::sdp::{self, Codec, CodecPolicy, NegotiationError, SessionDescription};

/// The offer for the next leg: first the codecs that `offered` and both policies allow, then the codecs that `to`
/// allows and we can transcode the offerer's audio to. In this order a party with a common codec selects that one.
///
/// # Errors
/// When none of the offered audio can be carried, or none of it may be passed on.
pub(super) fn offer_onward(
    offered: &SessionDescription,
    local: SocketAddr,
    from: &CodecPolicy,
    to: &CodecPolicy,
) -> Result<SessionDescription, NegotiationError> {
    if offered.carried_fax().is_some() {
        return sdp::offer_from(offered, local, from, to);
    }
    let (_, audio) = offered.carried_audio().ok_or(NegotiationError::NoAudio)?;
    let allowed = from.apply(&audio.codecs);
    let relayed = sdp::offer_from(offered, local, from, to);
    if !allowed.iter().any(is_transcodable) {
        return relayed;
    }
    let beside = || allowed.iter().filter(|codec| codec.is_auxiliary()).cloned().collect();
    let mut codecs: Vec<Codec> = match &relayed {
        Ok(offer) => offer.media.first().map(|media| media.codecs.clone()).unwrap_or_default(),
        Err(_) => beside(),
    };
    append(&mut codecs, to);
    if codecs.iter().all(Codec::is_auxiliary) {
        return Err(NegotiationError::NoCommonCodec);
    }
    let mut offer = sdp::offer(local, codecs, offered.direction_of(audio));
    for media in &mut offer.media {
        (media.ptime_ms, media.maxptime_ms) = (audio.ptime_ms, audio.maxptime_ms);
    }
    Ok(offer)
}

/// Returns our own offer to a party whose peer made none: the codecs that both policies allow, else those
/// that we can transcode the peer's audio to.
pub(super) fn offer_unasked(from: &CodecPolicy, to: &CodecPolicy) -> Vec<Codec> {
    let mut codecs = to.apply(&from.codecs());
    if codecs.iter().all(Codec::is_auxiliary) {
        append(&mut codecs, to);
    }
    codecs
}

/// Returns the answer for the offerer: the codecs that the other party accepted and `policy` allows. Offered codecs
/// that we can transcode to are added if there are none, or if the other party may send a codec that the offerer lacks.
///
/// # Errors
/// When there are no such codecs.
pub(super) fn answer_back(
    offered: &SessionDescription,
    answered: &SessionDescription,
    local: SocketAddr,
    policy: &CodecPolicy,
) -> Result<SessionDescription, NegotiationError> {
    if offered.carried_fax().is_some() {
        return sdp::answer_to(offered, answered, local);
    }
    let mut allowed = offered.clone();
    for media in allowed.media.iter_mut().filter(|media| media.is_carried()) {
        media.codecs = policy.apply(&media.codecs);
    }
    let relayed = sdp::answer_to(&allowed, answered, local);
    let (_, taken) = answered.carried_audio().ok_or(NegotiationError::Refused)?;
    match &relayed {
        Ok(answer) if reaches(answer, &taken.codecs) => return relayed,
        Ok(_) | Err(NegotiationError::NoCommonCodec) => {}
        Err(_) => return relayed,
    }
    if !taken.codecs.iter().any(is_transcodable) {
        return relayed;
    }
    let mut possible = allowed;
    for media in possible.media.iter_mut().filter(|media| media.is_carried()) {
        media.codecs.retain(media_plan::is_mixable);
    }
    let own = sdp::answer(&possible, local, policy, answered.direction_of(taken));
    match (relayed, own) {
        (Ok(relayed), Ok(own)) => Ok(joined(relayed, own)),
        (Ok(relayed), Err(_)) => Ok(relayed),
        (Err(_), own) => own,
    }
}

/// Whether the receiver of an answer shares all audio codecs of `sent`, or has a codec to transcode the others to. A
/// codec that can only be relayed is no such target.
fn reaches(answer: &SessionDescription, sent: &[Codec]) -> bool {
    let Some((_, audio)) = answer.carried_audio() else { return false };
    let is_shared = |codec: &Codec| audio.codecs.iter().any(|other| other.matches(codec));
    audio.codecs.iter().any(is_transcodable)
        || sent.iter().all(|codec| codec.is_auxiliary() || is_shared(codec))
}

/// An answer with the audio codecs of another answer appended to its own.
fn joined(mut answer: SessionDescription, other: SessionDescription) -> SessionDescription {
    for (media, other) in answer.media.iter_mut().zip(other.media) {
        let place = media.codecs.iter().position(Codec::is_auxiliary).unwrap_or(media.codecs.len());
        let more = other.codecs.into_iter().filter(is_transcodable);
        let more: Vec<Codec> =
            more.filter(|codec| !media.codecs.iter().any(|own| own.matches(codec))).collect();
        media.codecs.splice(place..place, more);
    }
    answer
}

/// Adds codecs that `to` allows and we can encode, after the present audio codecs, with free payload types.
fn append(codecs: &mut Vec<Codec>, to: &CodecPolicy) {
    let mut place = codecs.iter().position(Codec::is_auxiliary).unwrap_or(codecs.len());
    for codec in to.codecs().into_iter().filter(is_transcodable) {
        if codecs.iter().any(|other| other.matches(&codec)) {
            continue;
        }
        let is_free = |number: &u8| codecs.iter().all(|other| other.payload_type != *number);
        let numbers = std::iter::once(codec.payload_type).chain(DYNAMIC);
        let Some(payload_type) = numbers.into_iter().find(is_free) else { continue };
        codecs.insert(place, Codec { payload_type, ..codec });
        place += 1;
    }
}

/// Whether it is an audio codec that we decode and encode.
fn is_transcodable(codec: &Codec) -> bool {
    !codec.is_auxiliary() && media_plan::is_mixable(codec)
}

/// The dynamic payload types (RFC 3551 §3).
const DYNAMIC: std::ops::RangeInclusive<u8> = 96..=127;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(media: &str) -> SessionDescription {
        let text = format!("v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nc=IN IP4 192.0.2.1\nt=0 0\n{media}\n");
        SessionDescription::parse(text.replace('\n', "\r\n").as_bytes()).unwrap()
    }

    fn codecs(description: &SessionDescription) -> String {
        let (_, audio) = description.carried_audio().unwrap();
        let texts: Vec<_> =
            audio.codecs.iter().map(|codec| format!("{} {codec}", codec.payload_type)).collect();
        texts.join(", ")
    }

    fn local() -> SocketAddr {
        "198.51.100.1:20000".parse().unwrap()
    }

    #[test]
    fn the_offerers_codecs_come_first_and_then_what_we_can_make() {
        let any = CodecPolicy::ANY;
        let g722 = CodecPolicy::new(["G722"]);
        let cases = [
            ("m=audio 4 RTP/AVP 0", &any, &any, "0 PCMU/8000, 96 opus/48000/2, 9 G722/8000, 8 PCMA/8000"),
            ("m=audio 4 RTP/AVP 0", &any, &g722, "9 G722/8000"),
            ("m=audio 4 RTP/AVP 0 9", &any, &g722, "9 G722/8000"),
            (
                "m=audio 4 RTP/AVP 8 96\na=rtpmap:96 telephone-event/8000",
                &any,
                &any,
                "8 PCMA/8000, 97 opus/48000/2, 9 G722/8000, 0 PCMU/8000, 96 telephone-event/8000",
            ),
        ];
        for (offered, from, to, wanted) in cases {
            let offer = offer_onward(&parse(offered), local(), from, to).unwrap();
            assert_eq!(codecs(&offer), wanted, "{offered}");
        }
        let relayed = offer_onward(&parse("m=audio 4 RTP/AVP 18"), local(), &any, &any).unwrap();
        assert_eq!(codecs(&relayed), "18 G729/8000", "G.729 is relayed or nothing");
        let none = offer_onward(&parse("m=audio 4 RTP/AVP 18"), local(), &any, &g722);
        assert_eq!(none, Err(NegotiationError::NoCommonCodec), "the callee may not use G.729");
        let barred = offer_onward(&parse("m=audio 4 RTP/AVP 0"), local(), &g722, &any);
        assert_eq!(barred, Err(NegotiationError::NoCommonCodec), "the offerer may not use PCMU");
    }

    #[test]
    fn what_both_have_is_relayed_and_the_rest_is_answered_out_of_its_own_offer() {
        let offered = parse("m=audio 4 RTP/AVP 0 8 18 101\na=rtpmap:101 telephone-event/8000\na=sendonly");
        let answer = |taken: &str| answer_back(&offered, &parse(taken), local(), &CodecPolicy::ANY);
        assert_eq!(codecs(&answer("m=audio 4 RTP/AVP 8").unwrap()), "8 PCMA/8000");
        assert_eq!(codecs(&answer("m=audio 4 RTP/AVP 9 8").unwrap()), "8 PCMA/8000");
        let other = answer("m=audio 4 RTP/AVP 9\na=recvonly").unwrap();
        assert_eq!(codecs(&other), "0 PCMU/8000, 8 PCMA/8000, 101 telephone-event/8000");
        assert_eq!(other.media[0].direction, sdp::Direction::RecvOnly);
        assert_eq!(answer("m=audio 0 RTP/AVP 9"), Err(NegotiationError::Refused));
        let pcma = CodecPolicy::new(["PCMA"]);
        let held = answer_back(&offered, &parse("m=audio 4 RTP/AVP 9"), local(), &pcma).unwrap();
        assert_eq!(codecs(&held), "8 PCMA/8000, 101 telephone-event/8000");
        assert_eq!(codecs(&answer("m=audio 4 RTP/AVP 18").unwrap()), "18 G729/8000");
        // The callee may send G.722, which the offerer can only get as G.711.
        let both = answer("m=audio 4 RTP/AVP 9 18").unwrap();
        assert_eq!(codecs(&both), "18 G729/8000, 0 PCMU/8000, 8 PCMA/8000");
    }

    #[test]
    fn the_offerer_is_answered_only_with_codecs_that_it_may_use() {
        let events = "a=rtpmap:101 telephone-event/8000";
        let offered = parse(&format!("m=audio 4 RTP/AVP 8 0 18 101\n{events}"));
        let answer = |taken: &str, policy: &CodecPolicy| {
            answer_back(&offered, &parse(&format!("{taken}\n{events}")), local(), policy)
        };
        let pcmu = CodecPolicy::new(["PCMU"]);
        let wanted = "0 PCMU/8000, 101 telephone-event/8000";
        for taken in ["m=audio 4 RTP/AVP 0 8 101", "m=audio 4 RTP/AVP 8 0 101", "m=audio 4 RTP/AVP 8 101"] {
            assert_eq!(codecs(&answer(taken, &pcmu).unwrap()), wanted, "{taken}");
        }
        // It is relayed or nothing.
        assert_eq!(answer("m=audio 4 RTP/AVP 18", &pcmu), Err(NegotiationError::NoCommonCodec));
        let g729 = CodecPolicy::new(["G729"]);
        assert_eq!(
            codecs(&answer("m=audio 4 RTP/AVP 18 8 101", &g729).unwrap()),
            "18 G729/8000, 101 telephone-event/8000"
        );
        // An offer of T.38 has no codecs.
        let fax = parse("m=image 4 udptl t38");
        assert!(answer_back(&fax, &fax, local(), &pcmu).is_ok());
    }

    #[test]
    fn without_an_offer_the_callees_policy_decides_what_we_make() {
        let numbers = |from: &CodecPolicy, to: &CodecPolicy| {
            offer_unasked(from, to).iter().map(|codec| codec.payload_type).collect::<Vec<_>>()
        };
        let (pcmu, g722) = (CodecPolicy::new(["PCMU"]), CodecPolicy::new(["G722"]));
        assert_eq!(numbers(&pcmu, &CodecPolicy::ANY), [0, 101, 13]);
        assert_eq!(numbers(&pcmu, &g722), [9, 101, 13]);
    }
}
