//! Converts the negotiated SDP to the types of the media core. The only module that uses both `sip` and
//! `media`: live calls and captures both use it, so both are judged by the same description.

use std::net::IpAddr;

use sidetone_media::codec;
use sidetone_media::mix::Formats;
use sidetone_media::rtp::PayloadKind;
use sidetone_media::session::{Description, Payload, StrictSource, XrReports};
use sidetone_media::srtp::{MasterKey, SrtpKeys, Suite};
use sidetone_media::time::ClockRate;
use sidetone_media::transcode::{EventPlan, TranscodePlan};
use sidetone_media::webrtc::{IceTerms, Protection, WebrtcTerms};
use sidetone_model::directory;
use sidetone_sip::sdp::{Codec, Crypto, CryptoSuite, Negotiated, SrtpRule, Video};

/// The description of a leg's RTP session; `signalling` is the source of the party's SIP.
pub fn description(negotiated: &Negotiated, signalling: Option<IpAddr>) -> Description {
    Description {
        remote: negotiated.remote,
        // In a capture the packets of two parties with host names cannot be assigned to their call, so their absence is
        // no evidence.
        unresolved: negotiated.unresolved && negotiated.local.is_some(),
        remote_rtcp: negotiated.remote_rtcp,
        rtcp_mux: negotiated.rtcp_mux,
        receive: negotiated.direction.receives(),
        send: negotiated.direction.sends(),
        payloads: negotiated
            .payloads
            .iter()
            .filter_map(|agreed| {
                let payload = payload(&agreed.codec, agreed.receive)?;
                Some(Payload { default_ptime_ms: agreed.frame_ms.map(u32::from), ..payload })
            })
            .collect(),
        ptime_ms: negotiated.ptime_ms,
        own_ptime_ms: negotiated.own_ptime_ms,
        own_maxptime_ms: negotiated.own_maxptime_ms,
        signalling,
        own_advertised: negotiated.local.map(|local| local.ip()),
        strict_source: None,
        xr: XrReports {
            round_trip: negotiated.xr.round_trip,
            summary: negotiated.xr.summary,
            voip: negotiated.xr.voip,
        },
        udptl: negotiated.is_fax(),
        protected: negotiated.protected,
        video: false,
    }
}

/// The description of the RTP session of a leg's video.
pub fn video_description(video: &Video, signalling: Option<IpAddr>) -> Description {
    Description { video: true, ..description(&video.terms, signalling) }
}

/// The protection and the path of a leg's packets; `None` for plain RTP without ICE.
pub fn protection(negotiated: &Negotiated) -> Option<Protection> {
    let keys = srtp_keys(negotiated);
    let Some(terms) = &negotiated.ice else { return keys.map(Protection::Sdes) };
    let ice = IceTerms::new(&terms.own.ufrag, &terms.own.password, &terms.theirs.ufrag);
    Some(match terms.dtls {
        Some(dtls) => {
            let (fingerprint, is_client) = (dtls.fingerprint.0, dtls.is_client);
            Protection::Webrtc(WebrtcTerms { ice, fingerprint, is_client })
        }
        None => Protection::Ice(ice, keys),
    })
}

/// The keys in SDP of a leg; `None` without any.
pub fn srtp_keys(negotiated: &Negotiated) -> Option<SrtpKeys> {
    let terms = negotiated.srtp.as_ref()?;
    Some(SrtpKeys { receive: master_key(&terms.receive)?, send: master_key(&terms.send)? })
}

fn master_key(line: &Crypto) -> Option<MasterKey> {
    let suite = match line.suite {
        CryptoSuite::AeadAes128Gcm => Suite::AeadAes128Gcm,
        CryptoSuite::AeadAes256Gcm => Suite::AeadAes256Gcm,
        CryptoSuite::AesCm128HmacSha1Tag32 => Suite::AesCm128HmacSha1Tag32,
        CryptoSuite::AesCm128HmacSha1Tag80 => Suite::AesCm128HmacSha1Tag80,
    };
    // Both crates have the same lengths, so that every line becomes a key.
    MasterKey::new(suite, line.key.material()).map(|key| key.with_mki_bytes(line.mki_bytes))
}

/// The stored rule for SRTP, as a type of the SIP core.
pub fn srtp_rule(rule: directory::Srtp) -> SrtpRule {
    match rule {
        directory::Srtp::Off => SrtpRule::Off,
        directory::Srtp::Optional => SrtpRule::Optional,
        directory::Srtp::Required => SrtpRule::Required,
        directory::Srtp::Webrtc => SrtpRule::Webrtc,
    }
}

/// The stored rule for a leg's source address, as a type of the media core.
pub fn strict_source(rule: directory::StrictSource) -> StrictSource {
    match rule {
        directory::StrictSource::Any => StrictSource::Any,
        directory::StrictSource::Sdp => StrictSource::Sdp,
        directory::StrictSource::Signalling => StrictSource::Signalling,
    }
}

/// The formats of a leg in a mix; `None` when no codec of the leg is supported here.
///
/// The mix sends the party's first supported codec; the party may send any supported one. A party that holds
/// by address (RFC 3264 §8.4) is not mixed, like one that holds by direction.
pub fn formats(negotiated: &Negotiated) -> Option<Formats> {
    let mut receive = Vec::new();
    let mut send = None;
    let mut noise_receive = Vec::new();
    for agreed in &negotiated.payloads {
        if agreed.codec.is("CN") {
            noise_receive.push(agreed.receive);
        } else if let Some(codec) = decodable(&agreed.codec) {
            receive.push((agreed.receive, codec));
            send.get_or_insert((agreed.send, codec));
        }
    }
    let event = negotiated.telephone_event();
    Some(Formats {
        receive,
        send: send?,
        event_receive: event.map(|event| event.receive),
        event_send: event.map(|event| event.send),
        noise_receive,
        ptime_ms: sent_ptime_ms(negotiated),
        hears: negotiated.direction.sends(),
        // With ICE, SDP need not have an address.
        speaks: negotiated.direction.receives() && (negotiated.remote.is_some() || negotiated.ice.is_some()),
    })
}

/// The audio that `own` may send and `theirs` does not support, and how it is converted; `None` when all of
/// it is relayed.
///
/// If the legs have a common codec, telephone-events and comfort noise are relayed with it. If not,
/// telephone-events change their payload type and clock, and comfort noise becomes audio.
pub fn transcoding(own: &Negotiated, theirs: &Negotiated) -> Option<TranscodePlan> {
    let is_known = |codec: &Codec| theirs.payloads.iter().any(|other| other.codec.matches(codec));
    let audio: Vec<_> = own
        .payloads
        .iter()
        .filter(|agreed| !is_known(&agreed.codec))
        .filter_map(|agreed| Some((agreed.receive, decodable(&agreed.codec)?)))
        .collect();
    if audio.is_empty() {
        return None;
    }
    let send = formats(theirs)?.send;
    let relays = own.payloads.iter().any(|agreed| !agreed.codec.is_auxiliary() && is_known(&agreed.codec));
    let noise =
        own.payloads.iter().filter(|agreed| !relays && agreed.codec.is("CN")).map(|noise| noise.receive);
    let events = own.telephone_event().zip(theirs.telephone_event()).filter(|_| !relays);
    let events = events.map(|(own, theirs)| EventPlan {
        from: (own.receive, own.codec.clock_rate),
        to: (theirs.send, theirs.codec.clock_rate),
    });
    Some(TranscodePlan { audio, noise: noise.collect(), events, send, ptime_ms: sent_ptime_ms(theirs) })
}

/// Whether a mix supports this format: as a codec, or as an auxiliary format beside the audio.
pub fn is_mixable(codec: &Codec) -> bool {
    codec.is_auxiliary() || decodable(codec).is_some()
}

/// The supported codec that an `a=rtpmap` names.
fn decodable(codec: &Codec) -> Option<codec::Codec> {
    codec::Codec::find(&codec.name, ClockRate::new(codec.clock_rate)?, codec.channels)
}

/// The packet duration for the party: its requested ptime, rounded down to ten milliseconds.
fn sent_ptime_ms(negotiated: &Negotiated) -> u32 {
    let most = negotiated.maxptime_ms.unwrap_or(PTIME_MAX_MS).min(PTIME_MAX_MS);
    let wanted = negotiated.ptime_ms.unwrap_or(PTIME_DEFAULT_MS).min(most);
    (wanted / 10 * 10).max(10)
}

/// The payload type with which a party sends `codec`, by its own description alone; `None` for a clock rate of zero,
/// which is not valid.
pub fn payload(codec: &Codec, number: u8) -> Option<Payload> {
    let clock = ClockRate::new(codec.clock_rate)?;
    let kind = if codec.is("telephone-event") {
        PayloadKind::Event
    } else if codec.is("CN") {
        PayloadKind::ComfortNoise
    } else if REPAIR.iter().any(|name| codec.is(name)) {
        PayloadKind::Other
    } else {
        PayloadKind::Audio
    };
    Some(Payload {
        number,
        kind,
        clock,
        bytes_per_ms: bytes_per_ms(codec),
        default_ptime_ms: codec.frame_ms().map(u32::from),
        name: canonical_name(&codec.name),
    })
}

/// The registered form of an encoding name; names are case-insensitive (RFC 8866 §6.6), records are not.
pub fn canonical_name(name: &str) -> String {
    const REGISTERED: [&str; 16] = [
        "AMR",
        "AMR-WB",
        "CN",
        "EVS",
        "G722",
        "G723",
        "G726-32",
        "G729",
        "GSM",
        "iLBC",
        "L16",
        "opus",
        "PCMA",
        "PCMU",
        "speex",
        "telephone-event",
    ];
    let registered = REGISTERED.iter().find(|known| known.eq_ignore_ascii_case(name));
    registered.map_or_else(|| name.to_owned(), |known| (*known).to_owned())
}

/// Payload bytes per millisecond of the codecs with a constant bit rate (RFC 3551 §4.5).
fn bytes_per_ms(codec: &Codec) -> Option<u32> {
    let constant = [("PCMU", 8), ("PCMA", 8), ("G722", 8), ("G729", 1), ("L16", 2)];
    let (name, bytes) = constant.into_iter().find(|(name, _)| codec.is(name))?;
    match name {
        // Two bytes per sample and channel; the RTP clock counts samples.
        "L16" => {
            Some(bytes * codec.clock_rate * u32::from(codec.channels.max(1)) / 1000).filter(|rate| *rate > 0)
        }
        _ => Some(bytes),
    }
}

/// Formats that repair the audio, mostly in streams of their own (RFC 4588, 5109, 6015, 8627). `red` (RFC 2198) is none
/// of them: its packets carry the audio itself.
const REPAIR: [&str; 6] = ["1d-interleaved-parityfec", "flexfec", "flexfec-03", "parityfec", "rtx", "ulpfec"];
/// RFC 3551 §4.2.
const PTIME_DEFAULT_MS: u32 = 20;
/// The longest packet that a mix makes.
const PTIME_MAX_MS: u32 = 60;

#[cfg(test)]
mod tests {
    use sidetone_sip::sdp::{Role, SessionDescription};

    use super::*;

    fn negotiated(offer: &str, answer: &str) -> Negotiated {
        let parse = |text: &str| SessionDescription::parse(text.replace('\n', "\r\n").as_bytes()).unwrap();
        Negotiated::new(&parse(offer), &parse(answer), Role::Answerer).unwrap()
    }

    const OFFER: &str = "v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nc=IN IP4 192.0.2.1\nt=0 0\n\
        m=audio 4000 RTP/AVP 96 0 101 13\na=rtpmap:96 opus/48000/2\na=rtpmap:101 telephone-event/8000\n\
        a=ptime:30\na=sendonly\n";
    const ANSWER: &str = "v=0\no=- 1 1 IN IP4 198.51.100.1\ns=-\nc=IN IP4 198.51.100.1\nt=0 0\n\
        m=audio 20000 RTP/AVP 0 101 13\na=rtpmap:101 telephone-event/8000\na=recvonly\n";

    #[test]
    fn an_exchange_becomes_a_description() {
        let description = description(&negotiated(OFFER, ANSWER), Some("192.0.2.1".parse().unwrap()));
        assert_eq!(description.remote, Some("192.0.2.1:4000".parse().unwrap()));
        assert_eq!(description.own_advertised, Some("198.51.100.1".parse().unwrap()));
        assert_eq!((description.receive, description.send), (true, false));
        assert_eq!(description.ptime_ms, Some(30));
        let kinds: Vec<_> = description.payloads.iter().map(|p| (p.number, p.kind, p.bytes_per_ms)).collect();
        assert_eq!(
            kinds,
            [
                (0, PayloadKind::Audio, Some(8)),
                (101, PayloadKind::Event, None),
                (13, PayloadKind::ComfortNoise, None),
            ]
        );
    }

    #[test]
    fn a_host_name_is_no_hold_where_the_packets_are_known() {
        let named = |text: &str| text.replace("c=IN IP4 192.0.2.1", "c=IN IP4 media.example");
        let cases = [
            ("an address", OFFER.to_owned(), ANSWER.to_owned(), (true, false)),
            ("a host name", named(OFFER), ANSWER.to_owned(), (false, true)),
            (
                "two host names",
                named(OFFER),
                ANSWER.replace("c=IN IP4 198.51.100.1", "c=IN IP4 b.example"),
                (false, false),
            ),
            (
                "a hold",
                OFFER.replace("c=IN IP4 192.0.2.1", "c=IN IP4 0.0.0.0"),
                ANSWER.to_owned(),
                (false, false),
            ),
            (
                "only candidates of ICE",
                OFFER.replace("c=IN IP4 192.0.2.1", "c=IN IP4 0.0.0.0")
                    + "a=ice-ufrag:kQ3f\na=ice-pwd:yRbX7mPJO0YT7ZvWc4kBvR9c\n",
                ANSWER.to_owned(),
                (false, true),
            ),
        ];
        for (name, offer, answer, expected) in cases {
            let description = description(&negotiated(&offer, &answer), None);
            assert_eq!((description.remote.is_some(), description.unresolved), expected, "{name}");
        }
    }

    #[test]
    fn every_suite_becomes_a_key() {
        assert_eq!(srtp_keys(&negotiated(OFFER, ANSWER)), None);
        for suite in CryptoSuite::ALL {
            let key = "A".repeat((suite.material_bytes() * 4).div_ceil(3));
            let line = format!("a=crypto:7 {} inline:{key}|1:4\n", suite.as_str());
            let agreed = negotiated(&format!("{OFFER}{line}"), &format!("{ANSWER}{line}"));
            let keys = srtp_keys(&agreed).unwrap();
            assert_eq!(keys.receive.suite().as_str(), suite.as_str());
            assert_eq!(keys.send.suite(), keys.receive.suite());
        }
    }

    #[test]
    fn an_exchange_becomes_a_seat() {
        let seat = formats(&negotiated(OFFER, ANSWER)).unwrap();
        assert_eq!(seat.receive, [(0, codec::Codec::Pcmu)]);
        assert_eq!(seat.send, (0, codec::Codec::Pcmu));
        assert_eq!((seat.event_receive, seat.event_send), (Some(101), Some(101)));
        assert_eq!(seat.noise_receive, [13]);
        assert_eq!((seat.hears, seat.speaks, seat.ptime_ms), (false, true, 30));
    }

    #[test]
    fn who_holds_is_not_heard_and_who_has_no_codec_of_ours_has_no_seat() {
        let held = formats(&negotiated(&OFFER.replace("c=IN IP4 192.0.2.1", "c=IN IP4 0.0.0.0"), ANSWER));
        assert!(held.is_some_and(|seat| !seat.speaks));
        let [offer, answer] = [OFFER, ANSWER].map(|text| {
            text.replace("AVP 96 0", "AVP 18").replace("AVP 0", "AVP 18").replace("a=ptime:30\n", "")
        });
        assert_eq!(formats(&negotiated(&offer, &answer)), None, "G.729 alone");
    }

    #[test]
    fn only_what_the_other_side_does_not_know_is_transcoded() {
        let leg = |media: &str| {
            let text = format!("v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nc=IN IP4 192.0.2.1\nt=0 0\n{media}\n");
            negotiated(&text, &text)
        };
        let pcmu = leg("m=audio 4 RTP/AVP 0 13 101\na=rtpmap:101 telephone-event/8000");
        let g722 = leg("m=audio 4 RTP/AVP 9 96\na=rtpmap:96 telephone-event/48000\na=ptime:40");
        let both = leg("m=audio 4 RTP/AVP 9 0");
        assert_eq!(transcoding(&pcmu, &pcmu), None);
        assert_eq!(transcoding(&pcmu, &both), None);
        let plan = transcoding(&pcmu, &g722).unwrap();
        let events = EventPlan { from: (101, 8_000), to: (96, 48_000) };
        let wanted = TranscodePlan {
            audio: vec![(0, codec::Codec::Pcmu)],
            noise: vec![13],
            events: Some(events),
            send: (9, codec::Codec::G722),
            ptime_ms: 40,
        };
        assert_eq!(plan, wanted);
        let some = transcoding(&both, &pcmu).unwrap();
        assert_eq!((some.audio, some.events), (vec![(9, codec::Codec::G722)], None), "PCMU is relayed");
        assert_eq!(transcoding(&leg("m=audio 4 RTP/AVP 18"), &pcmu), None, "G.729 is none of ours");
    }

    #[test]
    fn packets_are_as_long_as_the_party_wants_them() {
        for (wanted, expected) in [
            ("a=ptime:20", 20),
            ("a=ptime:5", 10),
            ("a=ptime:35", 30),
            ("a=ptime:200", 60),
            ("a=maxptime:10", 10),
            ("a=ptime:40\na=maxptime:30", 30),
            ("a=ptime:30\na=maxptime:0", 30),
        ] {
            let offer = OFFER.replace("a=ptime:30", wanted);
            assert_eq!(formats(&negotiated(&offer, ANSWER)).unwrap().ptime_ms, expected, "{wanted}");
        }
    }

    #[test]
    fn only_constant_rates_have_a_size_per_millisecond() {
        let cases = [
            (Codec::new(9, "G722", 8000, 1), Some(8)),
            (Codec::new(11, "L16", 44_100, 2), Some(176)),
            (Codec::new(96, "opus", 48_000, 2), None),
        ];
        for (codec, rate) in cases {
            assert_eq!(bytes_per_ms(&codec), rate, "{}", codec.name);
        }
    }
}
