//! Explanations: every rule checked, and the sentences reviewed.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::support::leg::{Case, Leg, default_leg};
use crate::support::{addr, ip};
use expect_test::expect;
use sidetone_media::rtcp::{FarEnd, SenderCount};
use sidetone_media::session::{Hundredths, Report, Session, SessionConfig, Verdict};
use sidetone_media::simulate::{CATALOGUE, Scenario, play};
use sidetone_media::verdict::{Explanation, Outcome, Party, RULES_VERSION, Thresholds, explain};

fn played(text: &str) -> Report {
    let scenario: Scenario = text.parse().unwrap();
    let symmetric = scenario.call.advertised_source;
    play(&scenario, &mut Session::new(SessionConfig { symmetric, ..SessionConfig::default() }))
}

fn told(report: &Report, party: Party) -> String {
    let Explanation { verdict, reason, blame, sentence, flags, affected, .. } = explain(report, party);
    let verdict = verdict.map_or("no verdict", Verdict::as_str);
    let blame = blame.map_or("nobody", |blame| blame.as_str());
    let times = affected.map_or_else(String::new, |it| format!(", {}..{} s", it.first_s, it.last_s));
    format!("{verdict} {reason} ({blame}{times}) {flags:?}\n  {sentence}\n")
}

#[test]
fn the_rule_that_fired_is_the_verdict_and_those_before_it_are_clear() {
    for entry in &CATALOGUE {
        let report = played(entry.name);
        let explanation = explain(&report, Party::Caller);
        assert_eq!(explanation.rules_version, RULES_VERSION);
        assert_eq!(explanation.checks.len(), 19, "{}", entry.name);
        let fired = explanation.checks.iter().position(|check| check.outcome == Outcome::Fired);
        match fired {
            Some(place) => {
                let check = &explanation.checks[place];
                assert_eq!((Some(check.verdict), check.reason), (report.verdict, report.evidence.reason));
                assert!(check.reached_pct.unwrap().0 >= 10_000, "{}", entry.name);
                let before = &explanation.checks[..place];
                assert!(before.iter().all(|check| check.reached_pct.is_none_or(|pct| pct.0 < 10_000)));
                // The evidence begins with the measures of the rule.
                assert!(report.evidence.measures.starts_with(&check.measures), "{}", entry.name);
            }
            None => assert_eq!(report.verdict, Some(Verdict::Ok), "{}", entry.name),
        }
        for check in &explanation.checks {
            let judged = check.outcome != Outcome::NotJudged;
            assert_eq!(check.reached_pct.is_some(), judged);
            assert_eq!(check.not_judged.is_some(), !judged);
        }
        let blamed = !matches!(report.verdict, Some(Verdict::Ok | Verdict::Unanswered));
        assert_eq!(explanation.blame.is_some(), blamed, "{}", entry.name);
        assert!(!explanation.sentence.contains('?'), "{}: {}", entry.name, explanation.sentence);
    }
}

#[test]
fn a_leg_without_sdp_is_explained_too() {
    let report = Session::new(SessionConfig::default()).close(sidetone_media::time::Micros(1_000_000));
    assert!(explain(&report, Party::Unnamed).checks.is_empty());
    expect![[r#"
        no verdict  (nobody) []
          SDP settled no audio with this party, so there is nothing to judge.
    "#]]
    .assert_eq(&told(&report, Party::Unnamed));
}

#[test]
fn every_verdict_is_said_in_plain_words() {
    let names = [
        "clean noise=0",
        "loss-1",
        "clean duration=400ms",
        "unanswered",
        "no-inbound",
        "no-outbound",
        "wrong-address",
        "loss-periodic",
        "hole-2s",
        "unpaced noise=0",
        "slow noise=0",
        "blast",
        "jitter-120",
        "stalls-300",
        "overtaken",
        "wrong-ptime",
        "ptime-payload",
        "sleeps-wide",
        "degraded",
    ];
    let text: String =
        names.iter().map(|name| format!("{name}: {}", told(&played(name), Party::Caller))).collect();
    expect![[r#"
        clean noise=0: ok  (nobody) []
          Nothing was wrong with the caller's audio where it was measured: of 3,000 packets none was lost, and the jitter was 0 ms at most (limit 30 ms). What happens to it after that point cannot be seen from here.
        loss-1: ok  (nobody) []
          Nothing was wrong with the caller's audio where it was measured: of 6,000 packets 68 were lost (1.13 %, limit 2 %), and the jitter was 0.1 ms at most (limit 30 ms). What happens to it after that point cannot be seen from here.
        clean duration=400ms: ok too_little_audio (nobody) []
          Only 20 packets of the caller's audio arrived, which is too little to judge.
        unanswered: unanswered  (nobody) []
          The call was never answered, so there was no conversation to judge.
        no-inbound: no_inbound_media silent (remote, 0..9 s) []
          The caller could not be heard: no audio arrived during the 10 seconds for which it was expected. Either the caller's device sent nothing, or something on its way blocked it, such as a firewall in the caller's own network: that is where to look first.
        no-outbound: no_outbound_media silent (us, 0..9 s) []
          No audio was sent to the caller during the 10 seconds for which audio was expected, so the caller could hear nothing. Either the other party's audio never reached us, or the fault is ours: look at the other party's side of this call first.
        wrong-address: wrong_advertised_address rejected_source (remote, 0..9 s) ["rejected_source"]
          The caller could not be heard: no audio arrived during the 10 seconds for which it was expected. 500 packets came from 192.0.2.77:4000 instead of 192.0.2.1:4000, the address that the caller's device had announced, and were refused. Check the address settings (NAT, STUN) of the caller's device or router.
        loss-periodic: lossy_inbound loss (network, 0..59 s) []
          999 of the 2,999 packets of the caller's audio (33.31 %, limit 2 %) were lost on the way here, from beginning to end. Look at the network between the caller and here: a full internet line or poor Wi-Fi is the usual cause.
        hole-2s: lossy_inbound loss (network, 30..31 s) []
          100 of the 3,000 packets of the caller's audio (3.33 %, limit 2 %) were lost on the way here, between second 30 and second 31. The longest gap lasted 2 seconds. Look at the network between the caller and here: a full internet line or poor Wi-Fi is the usual cause.
        unpaced noise=0: unpaced_sender clumps (remote, 0..59 s) []
          The caller's device sent its audio in bursts, one every 100 ms, instead of a packet every 20 ms: 80.03 % of the packets came right behind another (limit 50 %). Phones with buffers of 80 ms and of 200 ms would have had to conceal none of 2,995 packets. Look at the device: its software, or the power saving of its Wi-Fi.
        slow noise=0: unpaced_sender pace (remote, 0..59 s) []
          The caller's device sent its audio too slowly, at 80 % of the speed of speech (a packet every 25 ms instead of every 20 ms). A phone with a buffer of 80 ms would have had to conceal 1,155 of 2,400 packets, one of 200 ms 645. Look at the device and its software.
        blast: unpaced_sender pace (remote, 0..0 s) []
          The caller's device sent its audio too fast, at 605.61 times the speed of speech (a packet every 0.03 ms instead of every 20 ms). A phone with a buffer of 80 ms would have had to conceal 2,790 of 3,000 packets, one of 200 ms 2,790. Look at the device and its software.
        jitter-120: jittery_inbound late (network, 2..59 s) []
          309 of the 2,996 packets of the caller's audio (10.31 %, limit 2 %) arrived more than 100 ms late, between second 2 and second 59. Phones with buffers of 80 ms and of 200 ms would have had to conceal none of 2,996 packets. Look at the network between the caller and here: a full internet line or poor Wi-Fi is the usual cause.
        stalls-300: jittery_inbound late (network, 5..116 s) []
          240 of the 6,000 packets of the caller's audio (4 %, limit 2 %) arrived more than 100 ms late, between second 5 and second 116. A phone with a buffer of 80 ms would have had to conceal 238 of 6,000 packets, one of 200 ms 94. Look at the network between the caller and here: a full internet line or poor Wi-Fi is the usual cause.
        overtaken: jittery_inbound jitter (network, 4..57 s) []
          The caller's audio arrived unevenly, between second 4 and second 57: the jitter reached 121.16 ms, and was 30 ms or more in 10.74 % of the packets (limit 5 %). A phone with a buffer of 80 ms would have had to conceal 14 of 2,999 packets, one of 200 ms 14. Look at the network between the caller and here: a full internet line or poor Wi-Fi is the usual cause.
        wrong-ptime: ptime_mismatch ptime (remote, 0..59 s) []
          The caller's device put 30 ms of audio into each packet, although 20 ms had been announced; equipment that goes by the packet time that was announced may play such audio wrongly. Check the packet time in the settings of the device, and its software.
        ptime-payload: ptime_mismatch timestamps (remote, 0..59 s) []
          The caller's device put 30 ms of audio into each packet while its time stamps say 20 ms; equipment that goes by the time stamps may play such audio wrongly. Check the packet time in the settings of the device, and its software.
        sleeps-wide: degraded_audio quality (network, 0..59 s) []
          88.91 % of the caller's audio could be played without a flaw (limit 95 %): packets came too late, from beginning to end. A phone with a buffer of 80 ms would have had to conceal 423 of 2,832 packets, one of 200 ms 206. Look at the network between the caller and here: a full internet line or poor Wi-Fi is the usual cause.
        degraded: degraded_audio dead_tail (remote, 19..59 s) []
          The caller's audio stopped 40 seconds before the end and did not come back. Either the caller's device stopped sending or its connection was cut: look at the device and its network first.
    "#]].assert_eq(&text);
}

#[test]
fn every_address_verdict_is_said_in_plain_words() {
    let cases: [Case; 9] = [
        ("private address", |leg| {
            leg.describe(|sdp| {
                sdp.remote = Some(addr("10.1.1.9:4000"));
                sdp.signalling = Some(ip("203.0.113.7"));
            });
            leg.answer();
            leg.wait(10_000);
        }),
        ("our own address", |leg| {
            leg.describe(|sdp| {
                sdp.remote = Some(addr("198.51.100.7:4000"));
                sdp.signalling = Some(ip("198.51.100.7"));
                sdp.own_advertised = Some(ip("10.0.0.5"));
            });
            leg.answer();
            leg.wait(10_000);
        }),
        ("closed port", |leg| {
            leg.connect();
            leg.reply(500);
            for _ in 0..4 {
                leg.session.unreachable();
            }
            leg.wait(10_000);
        }),
        ("silence and one returned packet", |leg| {
            leg.connect();
            leg.reply(500);
            leg.session.unreachable();
            leg.wait(10_000);
        }),
        ("audio before the answer only", |leg| {
            leg.describe(|_| {});
            leg.talk(200);
            leg.answer();
            leg.reply(500);
            leg.wait(10_000);
        }),
        ("a few packets", |leg| {
            leg.connect();
            leg.talk(3);
            leg.reply(500);
            leg.wait(10_000);
        }),
        ("on hold from the start", |leg| {
            leg.describe(|sdp| (sdp.receive, sdp.send) = (false, false));
            leg.answer();
            leg.wait(10_000);
        }),
        ("longer than allowed", |leg| {
            leg.describe(|sdp| {
                sdp.ptime_ms = Some(40);
                sdp.own_ptime_ms = Some(20);
                sdp.own_maxptime_ms = Some(20);
            });
            leg.answer();
            (leg.step, leg.interval_ms, leg.packet.payload_len) = (320, 40, 320);
            leg.reply(500);
            leg.talk(200);
        }),
        ("our own queue", |leg| {
            leg.connect();
            leg.reply(500);
            for _ in 0..100 {
                leg.talk(9);
                leg.lose(2);
            }
            leg.session.local_drop(150);
        }),
    ];
    let mut text = String::new();
    for (name, play) in cases {
        let mut leg = default_leg();
        play(&mut leg);
        text.push_str(&format!("{name}: {}", told(&leg.close(), Party::Called)));
    }
    expect![[r#"
        private address: wrong_advertised_address advertised_unreachable (remote, 0..9 s) []
          The called party could not be heard: no audio arrived during the 10 seconds for which it was expected. The called party's device had announced 10.1.1.9:4000 for its audio, an address that cannot be reached from outside its own network. Check the address settings (NAT, STUN) of the called party's device or router.
        our own address: wrong_advertised_address own_unreachable (us, 0..9 s) []
          The called party could not be heard: no audio arrived during the 10 seconds for which it was expected. We had announced 10.0.0.5 as our address for audio, which cannot be reached from 198.51.100.7, where the called party is. Set the public address in the configuration of our switch.
        closed port: wrong_advertised_address icmp_unreachable (remote, 0..9 s) []
          The called party could not be heard: no audio arrived during the 10 seconds for which it was expected. The called party's device had announced 10.0.0.1:4000 for its audio, but nothing listened there: 4 packets came back as undeliverable. Restart the called party's device, and check its firewall.
        silence and one returned packet: no_inbound_media silent (network, 0..9 s) []
          The called party could not be heard: no audio arrived during the 10 seconds for which it was expected. 1 packet sent to the called party came back as undeliverable: check the connection between the called party and here, firewalls first.
        audio before the answer only: no_inbound_media silent (remote, 4..13 s) []
          The called party could not be heard: no audio arrived during the 10 seconds for which it was expected (200 packets had come while the phone was still ringing). Either the called party's device sent nothing, or something on its way blocked it, such as a firewall in the called party's own network: that is where to look first.
        a few packets: no_inbound_media silent (remote, 0..10 s) []
          The called party could not be heard: only 3 packets arrived during the 10.1 seconds for which it was expected. Either the called party's device sent nothing, or something on its way blocked it, such as a firewall in the called party's own network: that is where to look first.
        on hold from the start: ok too_little_audio (nobody) []
          No audio from the called party was expected at any time (on hold), so there is nothing to judge.
        longer than allowed: ptime_mismatch maxptime (remote, 0..7 s) []
          The called party's device put 40 ms of audio into each packet, although 20 ms is the most that was allowed; equipment that goes by the packet time that was agreed may play such audio wrongly. Check the packet time in the settings of the device, and its software.
        our own queue: lossy_inbound loss (us, 0..21 s) ["local_drop"]
          48 of the 1,098 packets of the called party's audio (4.37 %, limit 2 %) were lost on the way here, between second 0 and second 21. Our own machine was overloaded and dropped 150 more: look there first.
    "#]].assert_eq(&text);
}

#[test]
fn what_a_device_does_wrong_and_what_we_drop_are_said_in_plain_words() {
    let cases: [Case; 4] = [
        ("a clock that jumps", |leg| {
            for _ in 0..100 {
                leg.talk(5);
                leg.packet.timestamp = leg.packet.timestamp.wrapping_add(1 << 20);
            }
        }),
        ("a short call with a hole", |leg| {
            leg.talk(60);
            leg.lose(3);
            leg.talk(20);
        }),
        ("signs of silence alone", |leg| {
            (leg.packet.payload_type, leg.packet.payload_len, leg.interval_ms) = (13, 1, 200);
            leg.talk(50);
        }),
        ("a queue that was short once", |leg| {
            leg.talk(500);
            leg.lose(1);
            leg.talk(500);
            leg.session.local_drop(1);
        }),
    ];
    let mut text = String::new();
    for (name, play) in cases {
        let mut leg = default_leg();
        leg.connect();
        leg.reply(500);
        play(&mut leg);
        text.push_str(&format!("{name}: {}", told(&leg.close(), Party::Caller)));
    }
    expect![[r#"
        a clock that jumps: degraded_audio quality (remote, 0..9 s) []
          80.2 % of the caller's audio could be played without a flaw (limit 95 %): the time stamps of the caller's device jumped 99 times. Look at the device and its software.
        a short call with a hole: lossy_inbound loss (network, 1..1 s) []
          3 of the 83 packets of the caller's audio (3.61 %, limit 2 %) were lost on the way here, in second 1. Look at the network between the caller and here: a full internet line or poor Wi-Fi is the usual cause.
        signs of silence alone: ok  (nobody) ["comfort_noise_only"]
          Nothing was wrong with the caller's audio where it was measured: of 50 packets none was lost. What happens to it after that point cannot be seen from here. The caller's device sent comfort noise alone and no speech, as a muted microphone does.
        a queue that was short once: ok  (nobody) ["local_drop"]
          Nothing was wrong with the caller's audio where it was measured: of 1,001 packets none was lost, and the jitter was 0 ms at most (limit 30 ms). What happens to it after that point cannot be seen from here. Our own machine dropped 1 more packet because it was overloaded.
    "#]].assert_eq(&text);
}

/// The party's audio comes from an address that its SDP does not name.
#[test]
fn audio_from_elsewhere_is_said_in_plain_words() {
    let mut unheard = default_leg();
    unheard.describe(|sdp| {
        sdp.remote = Some(addr("192.168.1.20:4000"));
        sdp.signalling = Some(ip("203.0.113.7"));
    });
    unheard.answer();
    unheard.source = addr("203.0.113.7:4000");
    for _ in 0..100 {
        unheard.talk(5);
        unheard.session.sent(unheard.now(), 5, addr("192.168.1.20:4000"));
    }
    let thresholds = Thresholds { strict_address: true, ..Thresholds::default() };
    let mut moved = Leg::with(SessionConfig { thresholds, ..SessionConfig::default() });
    moved.describe(|sdp| sdp.remote = Some(addr("10.0.0.2:4000")));
    moved.answer();
    for _ in 0..100 {
        moved.talk(5);
        moved.reply(5);
    }
    let text: String = [unheard, moved].iter_mut().map(|leg| told(&leg.close(), Party::Caller)).collect();
    expect![[r#"
        wrong_advertised_address blackhole (remote, 0..9 s) ["latched"]
          The caller could be heard, but the audio for the caller went to 192.168.1.20:4000 for 9.9 seconds (99 % of the time): the address that the caller's device had announced, which cannot be reached from outside its own network. Check the address settings (NAT, STUN) of the device or its router.
        wrong_advertised_address relocated (remote) ["latched"]
          The caller's device had announced 10.0.0.2:4000 for its audio, which came from 10.0.0.1:4000 instead. It was found there all the same, so the caller could be heard. Check the address settings (NAT, STUN) of the device or its router.
    "#]].assert_eq(&text);
}

/// The party's audio comes from the address in its SDP, so ours reaches it there: a private network may be routed to,
/// and a browser's address is one that ICE has tried.
#[test]
fn a_private_address_that_the_audio_comes_from_is_no_dead_end() {
    let mut leg = default_leg();
    leg.describe(|sdp| {
        sdp.remote = Some(addr("192.168.1.20:4000"));
        sdp.signalling = Some(ip("203.0.113.7"));
    });
    leg.answer();
    leg.source = addr("192.168.1.20:4000");
    for _ in 0..100 {
        // Ours is sent before the first packet arrives.
        leg.session.sent(leg.now(), 5, addr("192.168.1.20:4000"));
        leg.talk(5);
    }
    assert_eq!(leg.close().verdict, Some(Verdict::Ok));
}

#[test]
fn what_a_party_reports_itself_is_told() {
    let mut silent = played("no-inbound");
    silent.rtcp.sent_by_party = Some(SenderCount { reports: 2, packets: 500, ..SenderCount::default() });
    let mut cut_off = played("degraded");
    cut_off.rtcp.sent_by_party =
        Some(SenderCount { reports: 9, packets: 3_000, tail_missing: 2_000, ..SenderCount::default() });
    let mut loses = played("clean");
    let far_end = FarEnd { reports: 9, highest_sequence_moves: true, ..FarEnd::default() };
    loses.rtcp.far_end = Some(FarEnd { loss_pct: Some(Hundredths(730)), ..far_end.clone() });
    let mut deaf = played("clean");
    deaf.rtcp.far_end = Some(FarEnd { highest_sequence_moves: false, unheard: 2_900, ..far_end });
    let text: String =
        [silent, cut_off, loses, deaf].iter().map(|report| told(report, Party::Caller)).collect();
    expect![[r#"
        no_inbound_media silent (network, 0..9 s) []
          The caller could not be heard: no audio arrived during the 10 seconds for which it was expected. The caller's device reports by RTCP that it sent 500 packets, so the audio was lost on the way: check the firewalls and routers between the caller and here.
        degraded_audio dead_tail (network, 19..59 s) []
          The caller's audio stopped 40 seconds before the end and did not come back. The caller's device reports by RTCP that it sent 2,000 packets after that: look at the network between the caller and here.
        ok  (nobody) ["far_end_loss"]
          Nothing was wrong with the caller's audio where it was measured: of 3,000 packets none was lost, and the jitter was 0.1 ms at most (limit 30 ms). What happens to it after that point cannot be seen from here. In the other direction, the caller's device reports by RTCP that it lost 7.3 % of what was sent to it.
        ok  (nobody) ["far_end_deaf"]
          Nothing was wrong with the caller's audio where it was measured: of 3,000 packets none was lost, and the jitter was 0.1 ms at most (limit 30 ms). What happens to it after that point cannot be seen from here. The caller's device reports by RTCP that it receives none of the packets sent to it.
    "#]].assert_eq(&text);
}
