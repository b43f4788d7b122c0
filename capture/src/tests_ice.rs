//! Calls with ICE: RTP flows between candidates, which SDP names beside the address of `c=` and `m=` (RFC 8839).

use super::ladder::{Hop, Rtp, analyzed, answered, both_ways, later, sdp, verdicts};
use crate::Analysis;

/// The hosts' own addresses, in one network behind one router.
const A: &str = "192.168.1.10:4000";
const B: &str = "192.168.1.20:6000";
const SOUND: (Option<&str>, Option<&str>) = (Some("ok"), Some("ok"));

/// Audio at the address that a STUN server saw, or another one, with candidates.
fn with_ice(ip: &str, media: &str, candidates: &[&str]) -> String {
    let lines: String = candidates.iter().map(|line| format!("a=candidate:{line}\r\n")).collect();
    sdp(ip, &format!("{media}\r\na=ice-ufrag:kQ3f\r\na=ice-pwd:yRbX7mPJO0YT7ZvWc4kBvR9c\r\n{lines}"))
}

fn host(address: &str) -> String {
    format!("1 1 udp 2130706431 {} typ host", address.replace(':', " "))
}

/// The offer and the answer of two phones behind one router.
fn offer() -> String {
    with_ice("203.0.113.5", "m=audio 40000 RTP/AVP 0", &[&host(A), "2 1 udp 1 203.0.113.5 40000 typ srflx"])
}

fn answer() -> String {
    with_ice("203.0.113.5", "m=audio 60000 RTP/AVP 0", &[&host(B), "2 1 UDP 1 203.0.113.5 60000 typ srflx"])
}

fn messages(offer: &str, answer: &str) -> Vec<super::Frame> {
    Hop::new("one", "192.0.2.10", "192.0.2.20").frames(&answered(offer, answer, 5_000))
}

fn directions(analysis: &Analysis) -> Vec<Option<&'static str>> {
    analysis.streams.iter().map(|stream| stream.direction).collect()
}

#[test]
fn audio_between_candidates_is_the_calls() {
    let cases = [
        ("host candidates", offer(), answer(), (A, B)),
        ("a host candidate and an address of c=", offer(), answer(), (A, "203.0.113.5:60000")),
        (
            "no address before the candidates, as browsers write it",
            with_ice("0.0.0.0", "m=audio 9 RTP/AVP 0", &[&host(A)]),
            with_ice("0.0.0.0", "m=audio 9 RTP/AVP 0", &[&host(B)]),
            (A, B),
        ),
    ];
    for (name, offer, answer, ends) in cases {
        let analysis = analyzed(&[messages(&offer, &answer), both_ways(ends, (0, 5_000))]);
        assert_eq!(verdicts(&analysis), [SOUND], "{name}");
        assert_eq!(directions(&analysis), [Some("from_caller"), Some("to_caller")], "{name}");
        assert_eq!(analysis.calls[0].streams, [0, 1], "{name}");
    }
}

#[test]
fn lost_packets_between_candidates_are_lost_in_the_call() {
    let from_caller = Rtp { lost: Some(20), ..Rtp::new(1) }.frames((A, B), (0, 5_000));
    let media = [from_caller, Rtp::new(2).frames((B, A), (0, 5_000))];
    let analysis = analyzed(&[messages(&offer(), &answer()), media.concat()]);
    assert_eq!(analysis.calls[0].media_verdict, Some("lossy_inbound"));
}

/// RFC 8840 §4.1.3: without an address before the candidates, the party is not on hold. If neither party names an address
/// or a candidate, the packets cannot be recognised, and their absence is no evidence.
#[test]
fn missing_audio_of_a_party_with_only_candidates_is_missing() {
    let without = |candidates: &[&str]| with_ice("0.0.0.0", "m=audio 9 RTP/AVP 0", candidates);
    let to_caller = Rtp::new(2).frames((B, A), (0, 5_000));
    let answer = with_ice("192.168.1.20", "m=audio 6000 RTP/AVP 0", &[&host(B)]);
    let analysis = analyzed(&[messages(&without(&[&host(A)]), &answer), to_caller]);
    assert_eq!(verdicts(&analysis), [(Some("no_inbound_media"), Some("no_outbound_media"))]);
    let names = "1 1 udp 2122260223 3f0d.local 50162 typ host";
    let analysis =
        analyzed(&[messages(&without(&[names]), &without(&[names])), both_ways((A, B), (0, 5_000))]);
    assert_eq!(verdicts(&analysis), [SOUND]);
}

/// Behind their routers, the phones of many customers have the same private addresses.
#[test]
fn a_candidate_without_a_peer_of_the_call_shows_nothing() {
    let elsewhere = "198.51.100.7:9000";
    let analysis = analyzed(&[messages(&offer(), &answer()), both_ways((A, elsewhere), (0, 5_000))]);
    assert_eq!(directions(&analysis), [None, None]);
    assert_eq!(analysis.calls[0].streams, [0; 0]);
}

/// Both phones have one private address, each behind its own router, and the called one sends through a NAT.
#[test]
fn a_candidate_does_not_take_the_address_of_the_other_party() {
    let offer = with_ice("192.168.1.10", "m=audio 4000 RTP/AVP 0", &[&host(A)]);
    let answer = with_ice("203.0.113.5", "m=audio 60000 RTP/AVP 0", &[&host(A)]);
    let analysis = analyzed(&[messages(&offer, &answer), both_ways((A, "198.51.100.9:1234"), (0, 5_000))]);
    assert_eq!(directions(&analysis), [Some("from_caller"), Some("to_caller")]);
    assert_eq!(verdicts(&analysis), [SOUND]);
}

/// Two calls whose callers have the same private address: the other end decides.
#[test]
fn of_two_calls_with_one_candidate_the_peer_decides() {
    let other = "192.168.1.30:7000";
    let (offer, second_answer) =
        (offer(), with_ice("203.0.113.5", "m=audio 61000 RTP/AVP 0", &[&host(other)]));
    let second = Hop::new("two", "192.0.2.30", "192.0.2.40");
    let second = second.frames(&later(answered(&offer, &second_answer, 5_000), 3));
    let first = Rtp { lost: Some(20), ..Rtp::new(1) }.frames((A, B), (0, 5_000));
    let media = [
        first,
        Rtp::new(2).frames((B, A), (0, 5_000)),
        Rtp::new(3).frames((A, other), (0, 5_000)),
        Rtp::new(4).frames((other, A), (0, 5_000)),
    ];
    let analysis = analyzed(&[messages(&offer, &answer()), second, media.concat()]);
    assert_eq!(verdicts(&analysis), [(Some("lossy_inbound"), Some("ok")), SOUND]);
}
