//! Tests of the source filter alone; each packet's decision is one letter.

use super::*;

const DESCRIBED: &str = "10.0.0.1:4000";
const OTHER: &str = "192.0.2.1:4000";
const STRANGER: &str = "192.0.2.66:4000";

/// Time, source and sequence number of packets.
type Sent = Vec<(i64, &'static str, u16)>;

/// Feeds (milliseconds, source, number) to a filter that expects `DESCRIBED`. One letter per packet: a
/// accepted, l latched, f found, h held back, r rejected, t taken back.
fn letters(symmetric: bool, packets: &[(i64, &str, u16)]) -> String {
    let mut filter = SourceFilter::new(symmetric);
    observe(&mut filter, Micros(0), DESCRIBED);
    packets.iter().map(|packet| letter(&mut filter, *packet)).collect()
}

/// Sets `remote` by signalling, with the rule for captures.
fn observe(filter: &mut SourceFilter, now: Micros, remote: &str) {
    filter.describe(now, Some(remote.parse().unwrap()), None, StrictSource::Observed);
}

fn letter(filter: &mut SourceFilter, (ms, source, sequence): (i64, &str, u16)) -> char {
    let packet = Packet { sequence, ..Packet::default() };
    let (now, source) = (Micros::from_millis(ms), source.parse().unwrap());
    if filter.admit_known(now, &source) {
        return 'a';
    }
    match filter.admit_other(now, source, &packet, (true, false)) {
        Admission::Accepted => 'a',
        Admission::Latched => 'l',
        Admission::Found { .. } => 'f',
        Admission::Held => 'h',
        Admission::Rejected => 'r',
        Admission::TakenBack { .. } => 't',
    }
}

#[test]
fn sources_of_a_capture_are_judged() {
    let run = |source, from: i64, count: i64| {
        (from..from + count).map(move |n| (n * 20, source, u16::try_from(n % 65_536).unwrap()))
    };
    let cases: Vec<(&str, bool, Sent, &str)> = vec![
        ("as described", true, run(DESCRIBED, 0, 5).collect(), "aaaaa"),
        ("from elsewhere", true, run(OTHER, 0, 6).collect(), "hhhfaa"),
        ("from elsewhere, latching off", false, run(OTHER, 0, 6).collect(), "rrrrrr"),
        (
            "from elsewhere with a gap",
            true,
            [0, 1, 2, 4, 5, 6, 7].map(|n| (n * 20, OTHER, n as u16)).to_vec(),
            "hhhhhhf",
        ),
        (
            "each packet captured twice",
            true,
            run(OTHER, 0, 5).flat_map(|(ms, source, n)| [(ms, source, n), (ms + 1, source, n)]).collect(),
            "hhhhhhfaaa",
        ),
        (
            "copies that come two packets later",
            true,
            [0, 1, 2, 0, 3, 1].map(|n| (n * 20, OTHER, n as u16)).to_vec(),
            "hhhhfa",
        ),
        (
            "each third packet lost",
            true,
            [0, 1, 3, 4, 6, 7, 9, 10, 12].map(|n| (n * 20, OTHER, n as u16)).to_vec(),
            "hhhhhhhfa",
        ),
        (
            "each pair swapped",
            true,
            [1, 0, 3, 2, 5, 4, 7, 6, 9].map(|n| (n * 20, OTHER, n as u16)).to_vec(),
            "hhhhhhhfa",
        ),
        (
            "numbers that are far apart",
            true,
            (0..12).map(|n| (n * 20, OTHER, (n * 101) as u16)).collect(),
            "hhhhhhhhhhhh",
        ),
        ("comfort noise alone", true, (0..5).map(|n| (n * 2_500, OTHER, n as u16)).collect(), "hhhfa"),
        (
            "a mapped address is the same",
            true,
            vec![(0, "[::ffff:10.0.0.1]:4000", 1), (20, "[::ffff:10.0.0.1]:4000", 2)],
            "aa",
        ),
        (
            "a stranger beside the party",
            true,
            run(DESCRIBED, 0, 6).zip(run(STRANGER, 0, 6)).flat_map(|(a, b)| [a, b]).collect(),
            "arararararar",
        ),
        (
            "a stranger once the party is silent",
            true,
            run(DESCRIBED, 0, 2).chain(run(STRANGER, 99, 5)).collect(),
            "aarrrfa",
        ),
        (
            "a stranger who began before the silence",
            true,
            run(DESCRIBED, 0, 1).chain(run(STRANGER, 96, 6)).collect(),
            "arrrrfa",
        ),
        (
            "the described one wins back what was latched",
            true,
            run(OTHER, 0, 5).chain(run(DESCRIBED, 5, 5)).collect(),
            "hhhfarrrfa",
        ),
        (
            "a stranger cannot disturb a candidate",
            true,
            run(OTHER, 0, 5)
                .zip(run(STRANGER, 7, 5))
                .flat_map(|(a, (ms, source, n))| [a, (ms - 140, source, n)])
                .collect(),
            "hrhrhrfrar",
        ),
    ];
    for (name, symmetric, packets, expected) in cases {
        assert_eq!(letters(symmetric, &packets), expected, "{name}");
    }
}

/// A packet that is repeated keeps the slot of its source no longer than one that is not.
#[test]
fn copies_do_not_keep_the_slot() {
    let mut filter = SourceFilter::new(true);
    let signalling = PHONE.parse::<SocketAddr>().unwrap().ip();
    filter.describe(Micros(0), Some(PRIVATE.parse().unwrap()), Some(signalling), StrictSource::Any);
    let mut heard = String::new();
    for n in 0..14 {
        heard.push(letter(&mut filter, (n * 20, ATTACKER, 7)));
        heard.push(letter(&mut filter, (n * 20, OTHER, n as u16)));
    }
    // From 200 ms on the other source has the slot.
    assert_eq!(heard, "hrhrhrhrhrhrhrhrhrhrhhrhrhrf");
}

/// What continues the accepted stream in a capture has the SSRC and the numbers of it.
#[test]
fn a_party_of_a_capture_keeps_its_stream_behind_a_new_address() {
    let continues = |filter: &mut SourceFilter, ms: i64, source: &str| {
        let packet = Packet::default();
        filter.admit_other(Micros::from_millis(ms), source.parse().unwrap(), &packet, (true, true))
    };
    let accepted = |rule| {
        let mut filter = SourceFilter::new(true);
        filter.describe(Micros(0), Some(DESCRIBED.parse().unwrap()), None, rule);
        assert_eq!(letter(&mut filter, (0, DESCRIBED, 0)), 'a');
        filter
    };
    let mut observed = accepted(StrictSource::Observed);
    assert_eq!(continues(&mut observed, 20, OTHER), Admission::Latched);
    assert_eq!((observed.accepted(), observed.changes()), (Some(OTHER.parse().unwrap()), 1));
    assert_eq!(continues(&mut observed, 40, STRANGER), Admission::Latched, "it may happen again");
    // A source that sends copies of the stream is not the party behind a new address.
    let mut copied = accepted(StrictSource::Observed);
    assert_eq!(letter(&mut copied, (1, OTHER, 0)), 'r');
    assert_eq!(continues(&mut copied, 41, OTHER), Admission::Rejected);
    for rule in [StrictSource::Any, StrictSource::Signalling, StrictSource::Sdp] {
        assert_eq!(continues(&mut accepted(rule), 20, OTHER), Admission::Rejected, "{rule:?}");
    }
}

#[test]
fn without_latching_signalling_is_obeyed_at_once() {
    let mut filter = SourceFilter::new(false);
    observe(&mut filter, Micros(0), DESCRIBED);
    assert_eq!(letter(&mut filter, (0, DESCRIBED, 0)), 'a');
    observe(&mut filter, Micros(10_000), OTHER);
    assert_eq!(letter(&mut filter, (20, DESCRIBED, 1)), 'r');
    assert_eq!(letter(&mut filter, (40, OTHER, 2)), 'a');
}

#[test]
fn signalling_unsettles_the_source() {
    let mut filter = SourceFilter::new(true);
    let feed = |filter: &mut SourceFilter, packets: &[(i64, &str, u16)]| {
        packets.iter().map(|packet| letter(filter, *packet)).collect::<String>()
    };
    observe(&mut filter, Micros(0), DESCRIBED);
    assert_eq!(feed(&mut filter, &[(0, DESCRIBED, 0)]), "a");
    observe(&mut filter, Micros(10_000), OTHER);
    assert_eq!(filter.target(), Some(OTHER.parse().unwrap()));
    assert_eq!(feed(&mut filter, &[(20, DESCRIBED, 1), (40, OTHER, 2), (60, DESCRIBED, 3)]), "aar");
    assert_eq!(filter.target(), Some(OTHER.parse().unwrap()));
    assert!(!filter.is_latched());
    // Signalling names the new address but packets still come from the old one: the party is behind NAT.
    observe(&mut filter, Micros(100_000), STRANGER);
    assert_eq!(feed(&mut filter, &[(120, OTHER, 4), (1_090, OTHER, 5), (1_100, OTHER, 6)]), "aal");
    assert_eq!(filter.target(), Some(OTHER.parse().unwrap()));
    observe(&mut filter, Micros(2_000_000), STRANGER);
    assert!(filter.is_latched(), "the same description again changes nothing");
}

/// An address in the phone's network, its public address, another port of it, and an attacker's address.
const PRIVATE: &str = "10.1.1.9:4000";
const PHONE: &str = "203.0.113.7:31000";
const REBOUND: &str = "203.0.113.7:31002";
const ATTACKER: &str = "198.51.100.66:4000";

/// Feeds runs of (first, last tick of 20 ms, source) to a filter with this rule; one letter per packet.
fn judged(rule: StrictSource, described: &str, runs: &[(i64, i64, &'static str)]) -> String {
    let mut filter = SourceFilter::new(true);
    let signalling = PHONE.parse::<SocketAddr>().unwrap().ip();
    filter.describe(Micros(0), Some(described.parse().unwrap()), Some(signalling), rule);
    let last = runs.iter().map(|(_, to, _)| *to).max().unwrap_or_default();
    let mut out = String::new();
    for tick in 0..=last {
        for (from, to, source) in runs {
            if (*from..=*to).contains(&tick) {
                out.push(letter(&mut filter, (tick * 20, source, tick as u16)));
            }
        }
    }
    out
}

#[test]
fn sources_of_a_live_leg_are_judged_by_rank() {
    use StrictSource::{Any, Sdp, Signalling};
    type Runs = &'static [(i64, i64, &'static str)];
    let cases: [(&str, StrictSource, &str, Runs, &str); 19] = [
        ("the phone as described", Signalling, PHONE, &[(0, 3, PHONE)], "aaaa"),
        ("behind NAT", Signalling, PRIVATE, &[(0, 4, PHONE)], "hhhfa"),
        ("each packet twice", Signalling, PRIVATE, &[(0, 4, PHONE), (0, 4, PHONE)], "hhhhhhfaaa"),
        (
            "packets that are near each other prove nothing",
            Signalling,
            PRIVATE,
            &[(0, 1, PHONE), (3, 4, PHONE), (6, 7, PHONE), (9, 10, PHONE), (12, 13, PHONE)],
            "hhhhhhhhhh",
        ),
        ("a stranger first", Signalling, PRIVATE, &[(0, 5, ATTACKER), (2, 7, PHONE)], "rrrhrhrhrfaa"),
        ("a stranger, for ever", Signalling, PHONE, &[(0, 9, ATTACKER)], "rrrrrrrrrr"),
        ("a stranger is admitted last", Any, PRIVATE, &[(0, 4, ATTACKER)], "hhhfa"),
        ("the phone takes it from a stranger", Any, PRIVATE, &[(0, 6, ATTACKER), (5, 6, PHONE)], "hhhfaatra"),
        ("a stranger cannot keep the slot", Any, PRIVATE, &[(0, 1, ATTACKER), (1, 5, PHONE)], "hhhhhfa"),
        ("SDP takes it from the address", Signalling, PHONE, &[(0, 5, REBOUND), (5, 6, PHONE)], "hhhfaala"),
        ("nobody takes it from SDP", Signalling, PHONE, &[(0, 0, PHONE), (300, 305, REBOUND)], "arrrrrr"),
        ("SDP alone", Sdp, PRIVATE, &[(0, 4, PHONE), (5, 6, PRIVATE)], "rrrrraa"),
        (
            "a new port while the old one sends",
            Signalling,
            PRIVATE,
            &[(0, 8, PHONE), (4, 8, REBOUND)],
            "hhhfararararar",
        ),
        (
            "a new port, four seconds later",
            Signalling,
            PRIVATE,
            &[(0, 3, PHONE), (200, 204, REBOUND)],
            "hhhfrrrrr",
        ),
        (
            "a new port, five seconds later",
            Signalling,
            PRIVATE,
            &[(0, 3, PHONE), (253, 257, REBOUND)],
            "hhhfrrrfa",
        ),
        (
            "the earlier port takes it back at once",
            Signalling,
            PRIVATE,
            &[(0, 3, PHONE), (253, 258, REBOUND), (257, 258, PHONE)],
            "hhhfrrrfatra",
        ),
        (
            "a stranger after silence, any",
            Any,
            PRIVATE,
            &[(0, 3, PHONE), (900, 906, ATTACKER)],
            "hhhfrrrrrrr",
        ),
        (
            "a forged private address takes nothing",
            Signalling,
            PRIVATE,
            &[(0, 6, PHONE), (4, 6, PRIVATE)],
            "hhhfarar ar",
        ),
        ("two strangers, any", Any, PRIVATE, &[(0, 3, ATTACKER), (300, 304, OTHER)], "hhhfrrrfa"),
    ];
    for (name, rule, described, runs, expected) in cases {
        assert_eq!(judged(rule, described, runs), expected.replace(' ', ""), "{name}");
    }
}
