//! Worked examples of every verdict, fed to a session as by a switch: T must have it, N must not.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::BTreeSet;

use crate::support;
use crate::support::leg::{Case, Leg, check, check_with, default_leg};
use crate::support::{addr, ip};
use sidetone_media::rtp::Packet;
use sidetone_media::session::{PayloadKind, SessionConfig, StrictSource, Verdict};

#[test]
fn without_sdp_there_is_no_verdict() {
    check(None, &[("unanswered N1: rejected before any SDP", |leg| leg.wait(5_000))]);
}

#[test]
fn unanswered() {
    check(
        Some(Verdict::Unanswered),
        &[
            ("T1: ringing, cancelled, no RTP", |leg| {
                leg.describe(|_| {});
                leg.wait(20_000);
            }),
            ("T2: early media, busy", |leg| {
                leg.describe(|_| {});
                leg.talk(500);
            }),
            ("T3: ringback with 10 % loss", |leg| {
                leg.describe(|_| {});
                for _ in 0..300 {
                    leg.talk(9);
                    leg.lose(1);
                }
            }),
        ],
    );
}

#[test]
fn unanswered_still_has_figures() {
    let mut leg = default_leg();
    leg.describe(|_| {});
    for _ in 0..300 {
        leg.talk(9);
        leg.lose(1);
    }
    let loss = leg.close().figures.loss_pct.unwrap();
    assert!((9.9..=10.0).contains(&loss.as_f64()), "{loss}");
}

#[test]
fn no_inbound_media() {
    check(
        Some(Verdict::NoInboundMedia),
        &[
            ("T1: nothing for 10 s", |leg| {
                leg.connect();
                leg.reply(500);
                leg.wait(10_000);
            }),
            ("the address in SDP is a host name", |leg| {
                leg.describe(|sdp| (sdp.remote, sdp.unresolved) = (None, true));
                leg.answer();
                leg.reply(500);
                leg.wait(10_000);
            }),
            ("T2: three packets, then nothing", |leg| {
                leg.connect();
                leg.talk(3);
                leg.reply(500);
                leg.wait(10_000);
            }),
            ("T3: packets before the answer only", |leg| {
                leg.describe(|_| {});
                leg.talk(200);
                leg.answer();
                leg.reply(500);
                leg.wait(10_000);
            }),
            ("nothing either way is theirs first", |leg| {
                leg.connect();
                leg.wait(10_000);
            }),
            ("wrong_advertised_address N6: both addresses global", |leg| {
                leg.describe(|sdp| {
                    sdp.remote = Some(addr("8.8.8.8:4000"));
                    sdp.signalling = Some(ip("9.9.9.9"));
                    sdp.own_advertised = Some(ip("1.1.1.1"));
                });
                leg.answer();
                leg.reply(500);
                leg.wait(10_000);
            }),
            ("wrong_advertised_address N3: LAN, both private", |leg| {
                leg.describe(|sdp| {
                    sdp.remote = Some(addr("192.168.1.7:4000"));
                    sdp.signalling = Some(ip("10.0.0.9"));
                });
                leg.answer();
                leg.reply(500);
                leg.wait(10_000);
            }),
        ],
    );
}

#[test]
fn silence_that_is_no_fault() {
    check(
        Some(Verdict::Ok),
        &[
            ("no_inbound N1: the caller only receives", |leg| {
                leg.describe(|sdp| sdp.receive = false);
                leg.answer();
                leg.reply(500);
                leg.wait(10_000);
            }),
            ("no_inbound N1: on hold for the whole call", |leg| {
                leg.describe(|sdp| sdp.send = false);
                leg.answer();
                leg.wait(10_000);
            }),
            ("no_inbound N2: digits only", |leg| {
                leg.connect();
                leg.packet.payload_type = 101;
                leg.step = 0;
                leg.talk(104);
                leg.reply(500);
            }),
            ("no_inbound N3: comfort noise only", |leg| {
                leg.connect();
                leg.packet.payload_type = 13;
                leg.packet.payload_len = 1;
                leg.step = 1_600;
                leg.interval_ms = 200;
                leg.talk(50);
                leg.reply(500);
            }),
            ("no_inbound N4: the first packet 4 s after the answer", |leg| {
                leg.connect();
                leg.wait(4_000);
                leg.talk(200);
                leg.reply(500);
            }),
            ("no_inbound N5, unanswered N2: 200 ms", |leg| {
                leg.connect();
                leg.wait(200);
            }),
            ("wrong_advertised_address N4: c=0.0.0.0 for the whole call", |leg| {
                leg.describe(|sdp| {
                    sdp.remote = None;
                    sdp.signalling = Some(ip("8.8.8.8"));
                });
                leg.answer();
                leg.wait(10_000);
            }),
            ("unanswered N3: early media, then the answer", |leg| {
                leg.describe(|_| {});
                leg.talk(250);
                leg.answer();
                leg.reply(500);
                leg.talk(500);
            }),
        ],
    );
}

#[test]
fn a_late_first_packet_is_told() {
    let mut leg = default_leg();
    leg.connect();
    leg.wait(4_000);
    leg.talk(200);
    assert_eq!(leg.close().first_after_answer_ms.unwrap().to_string(), "4000.00");
}

#[test]
fn no_outbound_media() {
    check(
        Some(Verdict::NoOutboundMedia),
        &[
            ("T1: we sent nothing for 10 s", |leg| {
                leg.connect();
                leg.talk(500);
            }),
            ("T2: early ringback sent, nothing after the answer", |leg| {
                leg.describe(|_| {});
                leg.reply(500);
                leg.wait(5_000);
                leg.answer();
                leg.talk(500);
            }),
            ("T3: four packets relayed", |leg| {
                leg.connect();
                leg.reply(4);
                leg.talk(500);
            }),
        ],
    );
    check(
        Some(Verdict::Ok),
        &[
            ("N1: held by us", |leg| {
                leg.describe(|sdp| (sdp.receive, sdp.send) = (true, false));
                leg.answer();
                leg.talk(500);
            }),
            ("N3: the other side pauses, 40 packets in 10 s", |leg| {
                leg.connect();
                leg.reply(40);
                leg.talk(500);
            }),
        ],
    );
}

#[test]
fn lossy_inbound() {
    check(
        Some(Verdict::LossyInbound),
        &[
            ("T3: a hole of 2 s in 60 s", |leg| {
                leg.connect();
                leg.reply(500);
                leg.talk(1_450);
                leg.lose(100);
                leg.talk(1_450);
            }),
            ("T4: 30 ms instead of 20, with loss", |leg| {
                leg.describe(|sdp| sdp.ptime_ms = Some(20));
                leg.answer();
                leg.reply(500);
                (leg.step, leg.interval_ms, leg.packet.payload_len) = (240, 30, 240);
                (0..50).for_each(|_| {
                    leg.talk(19);
                    leg.lose(1);
                });
                leg.talk(5);
            }),
        ],
    );
    check(
        Some(Verdict::Ok),
        &[
            ("N2: a hole of 1 s in 60 s", |leg| {
                leg.connect();
                leg.reply(500);
                leg.talk(1_475);
                leg.lose(50);
                leg.talk(1_475);
            }),
            ("N5: numbers jump at a change of SSRC", |leg| {
                leg.connect();
                leg.reply(500);
                leg.talk(500);
                leg.packet.ssrc = 0x2222;
                leg.packet.sequence = leg.packet.sequence.wrapping_add(900);
                leg.talk(500);
            }),
            ("N5: numbers jump at a re-INVITE", |leg| {
                leg.connect();
                leg.reply(500);
                leg.talk(500);
                leg.describe(|sdp| sdp.ptime_ms = Some(20));
                leg.packet.sequence = leg.packet.sequence.wrapping_add(900);
                leg.talk(500);
            }),
            ("N5: numbers jump over a hold", |leg| {
                leg.connect();
                leg.reply(500);
                leg.talk(500);
                leg.describe(|sdp| sdp.send = false);
                leg.wait(20_000);
                leg.describe(|sdp| sdp.send = true);
                leg.packet.sequence = leg.packet.sequence.wrapping_add(900);
                leg.talk(500);
            }),
            ("N5: numbers jump at the answer", |leg| {
                leg.describe(|_| {});
                leg.talk(500);
                leg.answer();
                leg.reply(500);
                leg.packet.sequence = leg.packet.sequence.wrapping_add(900);
                leg.talk(500);
            }),
            ("N7: 0.8 s, 3 of 30 missing", |leg| {
                leg.connect();
                leg.reply(500);
                for _ in 0..3 {
                    leg.talk(9);
                    leg.lose(1);
                }
                leg.talk(3);
            }),
            ("N8: our own queue dropped them", |leg| {
                leg.connect();
                leg.reply(500);
                for _ in 0..100 {
                    leg.talk(9);
                    leg.lose(1);
                }
                leg.talk(1);
                leg.session.local_drop(100);
            }),
        ],
    );
}

#[test]
fn ssrc_that_changes_at_the_answer_is_no_loss() {
    // Ringing has one SSRC, the answer another, and the numbers continue: siphon-ai's 773, 1521, 3333.
    let mut leg = default_leg();
    leg.describe(|_| {});
    leg.packet.sequence = 773;
    leg.talk(500);
    leg.answer();
    for (ssrc, sequence) in [(0x2222, 1521), (0x3333, 3333)] {
        (leg.packet.ssrc, leg.packet.sequence) = (ssrc, sequence);
        leg.talk(500);
    }
    let figures = leg.close().figures;
    assert_eq!((figures.lost, figures.received, figures.expected), (0, 1500, 1500));
    assert_eq!((figures.ssrc_changes, figures.segments), (2, 3));
}

/// SRTP that is not decrypted has its authentication tag in the payload, which is no audio (media.md §5.2).
#[test]
fn the_tag_of_srtp_is_no_audio() {
    let observed =
        SessionConfig { strict_source: StrictSource::Observed, observed: true, ..SessionConfig::default() };
    let rows = [
        // (name, bytes per millisecond, payload bytes, whether it is SRTP, in a capture, verdict)
        ("G.729 and a tag", 1, 30, true, true, Verdict::Ok),
        ("G.729, a tag and an MKI", 1, 34, true, true, Verdict::Ok),
        ("G.728 and a tag", 2, 50, true, true, Verdict::Ok),
        ("30 ms of G.729", 1, 30, false, true, Verdict::PtimeMismatch),
        ("30 ms of G.729, decrypted", 1, 30, true, false, Verdict::PtimeMismatch),
        ("PCMU and the longest tag", 8, 176, true, true, Verdict::Ok),
        ("30 ms of PCMU and a tag", 8, 250, true, true, Verdict::PtimeMismatch),
    ];
    for (name, bytes_per_ms, payload_len, protected, is_captured, expected) in rows {
        let config = if is_captured { observed.clone() } else { SessionConfig::default() };
        let mut leg = Leg::with(config);
        leg.describe(|sdp| {
            sdp.protected = protected;
            sdp.payloads[0].bytes_per_ms = Some(bytes_per_ms);
        });
        leg.answer();
        leg.reply(500);
        leg.packet.payload_len = payload_len;
        leg.talk(500);
        assert_eq!(leg.close().verdict, Some(expected), "{name}");
    }
}

/// Error correction with an SSRC of its own is beside the audio.
#[test]
fn a_stream_that_is_no_audio_interrupts_none() {
    let mut leg = default_leg();
    leg.describe(|sdp| sdp.payloads.push(support::payload(98, "ulpfec", PayloadKind::Other, 8_000)));
    leg.answer();
    leg.reply(500);
    let mut repair = Packet { ssrc: 0x4444, payload_type: 98, ..leg.packet };
    for n in 0..1_000 {
        leg.send_one();
        if n % 5 == 0 {
            let audio = std::mem::replace(&mut leg.packet, repair);
            leg.send_one();
            repair = std::mem::replace(&mut leg.packet, audio);
        }
        leg.wait(20);
    }
    let report = leg.close();
    let figures = &report.figures;
    assert_eq!(figures.mean_interval_ms.unwrap().to_string(), "20.00");
    assert_eq!((figures.received, figures.ssrc_changes, figures.stray_ssrc), (1_000, 0, 200));
    assert_eq!(report.verdict, Some(Verdict::Ok));
}

#[test]
fn ptime_mismatch() {
    check(
        Some(Verdict::PtimeMismatch),
        &[
            ("T1: 30 ms instead of 20", |leg| {
                leg.describe(|sdp| sdp.ptime_ms = Some(20));
                leg.answer();
                leg.reply(500);
                (leg.step, leg.interval_ms, leg.packet.payload_len) = (240, 30, 240);
                leg.talk(500);
            }),
            ("T3: 10 ms instead of 20", |leg| {
                leg.connect();
                leg.reply(500);
                (leg.step, leg.interval_ms, leg.packet.payload_len) = (80, 10, 80);
                leg.talk(500);
            }),
            ("T4: 30 ms of audio stamped as 20, sent every 30", |leg| {
                leg.connect();
                leg.reply(500);
                (leg.step, leg.interval_ms, leg.packet.payload_len) = (160, 30, 240);
                leg.talk(500);
            }),
            ("T4: 30 ms of audio stamped as 20, sent every 20", |leg| {
                leg.connect();
                leg.reply(500);
                leg.packet.payload_len = 240;
                leg.talk(500);
            }),
            ("more than our maxptime", |leg| {
                leg.describe(|sdp| (sdp.ptime_ms, sdp.own_maxptime_ms) = (Some(60), Some(40)));
                leg.answer();
                leg.reply(500);
                (leg.step, leg.interval_ms, leg.packet.payload_len) = (480, 60, 480);
                leg.talk(500);
            }),
        ],
    );
    check(
        Some(Verdict::Ok),
        &[
            ("N1: no a=ptime, 20 ms", |leg| {
                leg.connect();
                leg.reply(500);
                leg.talk(500);
            }),
            ("N2: theirs 30, ours 20, 30 ms sent", |leg| {
                leg.describe(|sdp| (sdp.ptime_ms, sdp.own_ptime_ms) = (Some(30), Some(20)));
                leg.answer();
                leg.reply(500);
                (leg.step, leg.interval_ms, leg.packet.payload_len) = (240, 30, 240);
                leg.talk(500);
            }),
            ("theirs 30, ours 20, 20 ms sent", |leg| {
                leg.describe(|sdp| (sdp.ptime_ms, sdp.own_ptime_ms) = (Some(30), Some(20)));
                leg.answer();
                leg.reply(500);
                leg.talk(500);
            }),
            ("N7: PCMU, then PCMA", |leg| {
                leg.connect();
                leg.reply(500);
                leg.talk(300);
                leg.packet.payload_type = 8;
                leg.talk(300);
            }),
        ],
    );
}

#[test]
fn dead_tails() {
    check(
        Some(Verdict::DegradedAudio),
        &[
            ("T1: dies at 20 s of 60", |leg| {
                leg.connect();
                leg.reply(500);
                leg.talk(1_000);
                leg.wait(40_000);
            }),
            ("T3: 12 packets, then nothing for 30 s", |leg| {
                leg.connect();
                leg.reply(500);
                leg.talk(12);
                leg.wait(30_000);
            }),
        ],
    );
    check(
        Some(Verdict::Ok),
        &[
            ("N2: hold at the end", |leg| {
                leg.connect();
                leg.reply(500);
                leg.talk(1_000);
                leg.describe(|sdp| sdp.send = false);
                leg.wait(40_000);
            }),
            ("silent a moment after a hold", |leg| {
                leg.connect();
                leg.reply(500);
                leg.talk(1_000);
                leg.describe(|sdp| sdp.remote = None);
                leg.wait(40_000);
                leg.describe(|sdp| sdp.remote = Some(support::party()));
                leg.wait(2_000);
            }),
            ("N3: a sender that pauses, silent at the end", |leg| {
                leg.connect();
                leg.reply(500);
                leg.talk(500);
                leg.packet.timestamp += 8_000;
                leg.wait(1_000);
                leg.talk(500);
                leg.wait(40_000);
            }),
            ("N4: mute without RTP, the numbers go on", |leg| {
                leg.connect();
                leg.reply(500);
                leg.talk(500);
                leg.wait(20_000);
                leg.talk(500);
            }),
            ("N5: hung up 2 s after the last packet", |leg| {
                leg.connect();
                leg.reply(500);
                leg.talk(1_000);
                leg.wait(2_000);
            }),
        ],
    );
}

#[test]
fn thresholds_are_obeyed() {
    let mut config = SessionConfig::default();
    config.thresholds.set("loss_pct", 0.5).unwrap();
    let one_percent: Case = ("1 % of loss", |leg| {
        leg.connect();
        leg.reply(500);
        for _ in 0..10 {
            leg.talk(99);
            leg.lose(1);
        }
        leg.talk(10);
    });
    check(Some(Verdict::Ok), &[one_percent]);
    check_with(config, Some(Verdict::LossyInbound), &[one_percent]);
}

#[test]
fn a_report_disturbs_nothing() {
    let mut quiet = default_leg();
    let mut watched = default_leg();
    for leg in [&mut quiet, &mut watched] {
        leg.connect();
        leg.reply(500);
    }
    for _ in 0..100 {
        for leg in [&mut quiet, &mut watched] {
            leg.talk(19);
            leg.lose(1);
        }
        watched.session.report(watched.now());
    }
    let (quiet, watched) = (quiet.close(), watched.close());
    assert_eq!(quiet, watched);
}

#[test]
fn nothing_counts_after_the_end() {
    let mut leg = default_leg();
    leg.connect();
    leg.reply(500);
    leg.talk(500);
    let report = leg.close();
    leg.talk(500);
    leg.wait(60_000);
    assert_eq!(leg.session.report(leg.now()), report);
}

#[test]
fn evidence_names_each_number_once() {
    let cases: &[Case] = &[
        ("fine", |leg| leg.talk(500)),
        ("lossy", |leg| {
            leg.talk(100);
            leg.lose(50);
            leg.talk(500);
        }),
        ("silent", |leg| leg.wait(10_000)),
        ("short", |leg| leg.talk(7)),
    ];
    for (name, play) in cases {
        let mut leg = default_leg();
        leg.connect();
        leg.reply(500);
        play(&mut leg);
        let evidence = leg.close().evidence;
        let names: BTreeSet<&str> = evidence.measures.iter().map(|measure| measure.name).collect();
        assert_eq!(names.len(), evidence.measures.len(), "{name}: {evidence:#?}");
        assert!(names.contains("advertised"), "{name}");
    }
}
