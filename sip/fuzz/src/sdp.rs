//! Session descriptions: one alone, and one that answers another.

use sidetone_sip::sdp::{
    ATTRIBUTES_MAX, CodecPolicy, Direction, MEDIA_MAX, Negotiated, Role, SessionDescription, answer,
    answer_to, offer_from, payload_map,
};

/// A description that can be parsed survives writing and parsing; an exchange of two keeps the bounds of payload types.
pub fn sdp(data: &[u8]) {
    let cut = data.iter().position(|byte| *byte == 0);
    let (first, second) = cut.map_or((data, data), |cut| (&data[..cut], &data[cut + 1..]));
    let Ok(offered) = SessionDescription::parse(first) else { return };
    check(&offered);
    let local = "192.0.2.9:20000".parse().unwrap();
    let policy = CodecPolicy::default();
    if let Ok(offer) = offer_from(&offered, local, &policy, &policy) {
        check(&offer);
    }
    if let Ok(answer) = answer(&offered, local, &policy, Direction::default()) {
        check(&answer);
        assert_eq!(answer.media.len(), offered.media.len(), "a section is missing");
        negotiate(&offered, &answer);
    }
    let Ok(answered) = SessionDescription::parse(second) else { return };
    check(&answered);
    negotiate(&offered, &answered);
    if let Ok(answer) = answer_to(&offered, &answered, local) {
        check(&answer);
        assert_eq!(answer.media.len(), offered.media.len(), "a section is missing");
    }
}

fn check(description: &SessionDescription) {
    assert!(description.media.len() <= MEDIA_MAX);
    for media in &description.media {
        assert!(
            media.codecs.len() <= ATTRIBUTES_MAX + 128 && media.codecs.iter().all(|c| c.payload_type < 128)
        );
        let _ = (description.rtp_address(media), description.direction_of(media));
        let _ = description.rtcp_address(media, media.rtcp_mux);
    }
    // A refused section is written without the encodings of its static numbers; parsing adds them.
    let once = SessionDescription::parse(&description.to_bytes()).expect("what was written is read");
    let twice = SessionDescription::parse(&once.to_bytes()).expect("what was read is written and read");
    assert_eq!(twice.to_bytes(), once.to_bytes(), "it settles");
}

fn negotiate(offer: &SessionDescription, answer: &SessionDescription) {
    let one = Negotiated::new(offer, answer, Role::Answerer);
    let other = Negotiated::new(offer, answer, Role::Offerer);
    for negotiated in [&one, &other].into_iter().flatten() {
        assert!(negotiated.codec().is_some(), "a call without audio");
        assert!(negotiated.payloads.iter().all(|payload| payload.send < 128 && payload.receive < 128));
        let _ = negotiated.telephone_event();
    }
    if let (Ok(one), Ok(other)) = (one, other) {
        let _ = payload_map(&one, &other);
    }
}
