//! Cases that other tools miscount: sequence numbers that are used and not lost, clocks that no SDP announced, and
//! packets that are not audio.

use sidetone_media::simulate::Codec;

use super::capture_builder::{CaptureBuilder, Host, Plane};
use super::entry::{Golden, absent, between, flag, number, text};
use super::rtp::{Sound, Voice};
use super::sip::{Dialog, Sdp};
use super::verdicts::PCMU;

/// Every capture of a miscounted case.
pub(super) const MISCOUNTED: [Golden; 8] = [
    Golden {
        name: "comfort_noise_unannounced",
        shows: "Every twentieth packet of the caller is comfort noise, payload type 13, which the SDP of neither side \
                names. All 495 numbers come.",
        misread: "24 of 495 lost, 4.85 percent: a packet of a type that was not agreed on is thrown away before its number \
                  is read.",
        verdict: "ok",
        figures: &[
            number("/calls/0/loss_pct", 0.0),
            number("/calls/0/mos", 4.5),
            number("/calls/0/inbound/cn_packets", 24.0),
            number("/calls/0/inbound/rejected_payload_type", 24.0),
            number("/streams/0/packets", 495.0),
            number("/streams/0/lost", 0.0),
        ],
        record: comfort_noise_unannounced,
    },
    Golden {
        name: "types_not_agreed_on",
        shows: "In the middle of the call the caller sends 166 packets of payload type 98, as for a fax, which no SDP names. \
                All 495 numbers come.",
        misread: "166 of 495 lost, and the network is to blame.",
        verdict: "ok",
        figures: &[
            number("/calls/0/loss_pct", 0.0),
            number("/calls/0/inbound/packets", 495.0),
            number("/calls/0/inbound/rejected_payload_type", 166.0),
            absent("/calls/0/inbound/mos_e_model"),
            number("/streams/0/lost", 0.0),
        ],
        record: types_not_agreed_on,
    },
    Golden {
        name: "probes_without_payload",
        shows: "After every ten packets the caller sends two that hold nothing but padding, with numbers of their own, as \
                WebRTC does to probe the path.",
        misread: "98 of 593 lost, or 593 packets of audio.",
        verdict: "ok",
        figures: &[
            number("/calls/0/loss_pct", 0.0),
            number("/calls/0/mos", 4.5),
            number("/calls/0/inbound/empty", 98.0),
            number("/streams/0/packets", 495.0),
            number("/streams/0/expected", 495.0),
            between("/calls/0/jitter_ms", 0.0, 1.0),
        ],
        record: probes_without_payload,
    },
    Golden {
        name: "late_opus_without_sdp",
        shows: "Beside a clean call, Opus of which no SDP is in the capture (payload type 124): none of 600 packets is lost, \
                two of five come up to 200 ms late.",
        misread: "Jitter 0.00 ms, no problem: without a clock rate nothing is measured (TShark, and reports that call what \
                  they did not measure good).",
        verdict: "ok",
        figures: &[
            number("/streams/2/clock_rate", 48_000.0),
            flag("/streams/2/clock_rate_inferred", true),
            number("/streams/2/packets", 600.0),
            text("/streams/2/verdict", "jittery_inbound"),
            between("/streams/2/jitter_ms", 30.0, 200.0),
            absent("/streams/0/clock_rate_inferred"),
        ],
        record: late_opus_without_sdp,
    },
    Golden {
        name: "video_and_keys_without_sdp",
        shows: "Beside a clean call, video (payload type 96, three packets to a frame) and keys (payload type 101) of which no \
                SDP is in the capture.",
        misread: "Audio of MOS 4.5 with no digit pressed.",
        verdict: "ok",
        figures: &[
            number("/streams/2/clock_rate", 90_000.0),
            flag("/streams/2/clock_rate_inferred", true),
            number("/streams/2/packets", 300.0),
            text("/streams/2/reason", "not_audio"),
            absent("/streams/2/mos"),
            absent("/streams/2/quality_pct"),
            absent("/streams/2/jitter_ms"),
            text("/streams/3/reason", "not_audio"),
            absent("/streams/3/clock_rate"),
            absent("/streams/3/dtmf_events"),
            absent("/streams/3/mos"),
            number("/streams/0/dtmf_events", 0.0),
        ],
        record: video_and_keys_without_sdp,
    },
    Golden {
        name: "numbering_jumps",
        shows: "In the middle of the call the caller's numbers jump ahead by 700. Its timestamps and its packets go on every \
                20 ms.",
        misread: "700 of 1,195 lost, 58.58 percent, the longest gap 14 seconds: in a call of ten.",
        verdict: "ok",
        figures: &[
            number("/calls/0/loss_pct", 0.0),
            number("/calls/0/mos", 4.5),
            number("/calls/0/inbound/sequence_jumps", 1.0),
            number("/calls/0/inbound/longest_loss_ms", 0.0),
            number("/streams/0/lost", 0.0),
        ],
        record: numbering_jumps,
    },
    Golden {
        name: "codec_changes_at_the_end",
        shows: "The caller talks in G.722 and sends its last five packets in PCMU.",
        misread: "A score of the E-model for PCMU, which five of 495 packets are.",
        verdict: "ok",
        figures: &[
            number("/calls/0/loss_pct", 0.0),
            number("/calls/0/mos", 4.5),
            absent("/calls/0/inbound/mos_e_model"),
            absent("/streams/0/mos_e_model"),
            between("/streams/1/mos_e_model", 4.0, 4.3),
        ],
        record: codec_changes_at_the_end,
    },
    Golden {
        name: "caller_only_listens",
        shows: "The caller offers to listen only (recvonly), as for an announcement, and sends nothing in ten seconds.",
        misread: "One-way audio, or a call that was too short, or on hold.",
        verdict: "ok",
        figures: &[
            text(
                "/calls/0/sentence",
                "The SDP of the call has the caller listen only (recvonly), so no audio was expected from the caller and \
                 there is nothing to judge.",
            ),
            absent("/calls/0/mos"),
            number("/streams/0/packets", 495.0),
        ],
        record: caller_only_listens,
    },
];

/// The codecs of both sides of a call that offers no telephone-event and no comfort noise.
const PCMU_ALONE: &[(u8, &str)] = &[(0, "PCMU/8000")];

fn comfort_noise_unannounced(capture: &mut CaptureBuilder) {
    Dialog::plain("comfort_noise_unannounced", PCMU_ALONE, 10_000_000).play(capture);
    let (voice, noise) =
        (Voice::of_caller(495), Voice { payload_type: 13, ..small(Voice::of_caller(495), 1) });
    voice.speak(capture, |n| n % 20 == 19);
    noise.speak(capture, |n| n % 20 != 19);
    Voice::of_called(495).speak(capture, |_| false);
}

fn types_not_agreed_on(capture: &mut CaptureBuilder) {
    Dialog::plain("types_not_agreed_on", PCMU, 10_000_000).play(capture);
    let (voice, fax) =
        (Voice::of_caller(495), Voice { payload_type: 98, ..small(Voice::of_caller(495), 40) });
    voice.speak(capture, |n| (150..316).contains(&n));
    fax.speak(capture, |n| !(150..316).contains(&n));
    Voice::of_called(495).speak(capture, |_| false);
}

fn probes_without_payload(capture: &mut CaptureBuilder) {
    Dialog::plain("probes_without_payload", PCMU, 10_000_000).play(capture);
    let voice = Voice::of_caller(495);
    for n in 0..voice.packets {
        // The sequence numbers advance; the timestamps and times are those of the audio only.
        let sequence = voice.sequence.wrapping_add((n / 10 * 2) as u16);
        Voice { sequence, ..voice }.speak(capture, |other| other != n);
        if n % 10 == 9 {
            for probe in 0..2 {
                let number = sequence.wrapping_add(n as u16 + 1 + probe);
                let at_us = voice.at_us(n) + 4_000 + i64::from(probe) * 300;
                capture.push(at_us, Plane::Rtp, true, padding(number, voice.timestamp + n * 160, voice.ssrc));
            }
        }
    }
    Voice::of_called(495).speak(capture, |_| false);
}

/// A packet that holds only padding (RFC 3550 §5.1).
fn padding(sequence: u16, timestamp: u32, ssrc: u32) -> Vec<u8> {
    let mut packet = vec![0xa0, 0];
    packet.extend(sequence.to_be_bytes());
    packet.extend(timestamp.to_be_bytes());
    packet.extend(ssrc.to_be_bytes());
    packet.extend([0; 119]);
    packet.push(120);
    packet
}

/// The same packets with a payload of this many octets, which is not decoded.
const fn small(voice: Voice, octets: u16) -> Voice {
    Voice { sound: Sound::Coded, octets, ..voice }
}

/// Runs `play` between two hosts that no SDP of the capture names, instead of the hosts of the call.
fn elsewhere(capture: &mut CaptureBuilder, port: u16, play: impl FnOnce(&mut CaptureBuilder)) {
    let (caller, switch) = (capture.caller, capture.switch);
    capture.caller = Host::at([192, 0, 2, 30], port);
    capture.switch = Host::at([192, 0, 2, 40], port);
    play(capture);
    (capture.caller, capture.switch) = (caller, switch);
}

/// A clean call whose signalling does not mention the other packets in the capture.
fn clean(capture: &mut CaptureBuilder, name: &'static str) {
    Dialog::plain(name, PCMU, 6_300_000).play(capture);
    Voice::of_caller(300).speak(capture, |_| false);
    Voice::of_called(300).speak(capture, |_| false);
}

fn late_opus_without_sdp(capture: &mut CaptureBuilder) {
    clean(capture, "late_opus_without_sdp");
    let opus = Voice {
        ssrc: 0x0005_0005,
        payload_type: 124,
        ticks: 960,
        begins_us: 20_000,
        ..small(Voice::of_caller(600), 60)
    };
    elsewhere(capture, 6_000, |capture| {
        for n in 0..opus.packets {
            let late_us = if n * 7 % 5 > 2 { 100_000 + i64::from(n * 7_919 % 100) * 1_000 } else { 0 };
            Voice { begins_us: opus.begins_us + late_us, ..opus }.speak(capture, |other| other != n);
        }
    });
}

fn video_and_keys_without_sdp(capture: &mut CaptureBuilder) {
    clean(capture, "video_and_keys_without_sdp");
    let video = Voice {
        ssrc: 0x0006_0006,
        payload_type: 96,
        ticks: 0,
        begins_us: 25_000,
        ..small(Voice::of_caller(300), 400)
    };
    elsewhere(capture, 6_000, |capture| {
        for frame in 0..100_u32 {
            let part = Voice {
                timestamp: video.timestamp + frame * 3_600,
                begins_us: video.begins_us + i64::from(frame) * 40_000,
                gap_us: 200,
                ..video
            };
            let first = frame * 3;
            // The sequence numbers are those of all packets; the times are those of the frame.
            let begins_us = part.begins_us - i64::from(first) * part.gap_us;
            Voice { begins_us, ..part }.speak(capture, |n| !(first..first + 3).contains(&n));
        }
    });
    let keys = Voice {
        ssrc: 0x0007_0007,
        payload_type: 101,
        ticks: 0,
        begins_us: 30_000,
        ..small(Voice::of_caller(96), 4)
    };
    elsewhere(capture, 7_000, |capture| {
        for key in 0..8_u32 {
            let pressed = Voice { timestamp: keys.timestamp + key * 4_000, ..keys };
            let begins_us = keys.begins_us + i64::from(key) * 260_000;
            Voice { begins_us, ..pressed }.speak(capture, |n| n / 12 != key);
        }
    });
}

fn numbering_jumps(capture: &mut CaptureBuilder) {
    Dialog::plain("numbering_jumps", PCMU, 10_000_000).play(capture);
    let voice = Voice::of_caller(495);
    voice.speak(capture, |n| n >= 240);
    Voice { sequence: voice.sequence + 700, ..voice }.speak(capture, |n| n < 240);
    Voice::of_called(495).speak(capture, |_| false);
}

fn codec_changes_at_the_end(capture: &mut CaptureBuilder) {
    let codecs: &[(u8, &str)] = &[(9, "G722/8000"), (0, "PCMU/8000")];
    Dialog::plain("codec_changes_at_the_end", codecs, 10_000_000).play(capture);
    let voice = Voice::of_caller(495);
    let wide = Voice { payload_type: 9, sound: Sound::Tone(Codec::G722), ..voice };
    wide.speak(capture, |n| n >= 490);
    voice.speak(capture, |n| n < 490);
    Voice::of_called(495).speak(capture, |_| false);
}

fn caller_only_listens(capture: &mut CaptureBuilder) {
    let mut dialog = Dialog::plain("caller_only_listens", PCMU, 10_000_000);
    dialog.offer = Sdp { direction: "recvonly", ..dialog.offer };
    dialog.answer = Sdp { direction: "sendonly", ..dialog.answer };
    dialog.play(capture);
    Voice::of_called(495).speak(capture, |_| false);
}
