//! Cases that other tools misread: one capture for each, with the correct result.

use sidetone_media::simulate::Codec;

use super::capture_builder::CaptureBuilder;
use super::entry::{Golden, absent, between, flag, number, text};
use super::rtcp::{Hears, Reports, goodbye, reports};
use super::rtp::{Sound, Voice, simulate};
use super::sip::{Dialog, Sdp};
use super::verdicts::PCMU;

/// Every capture of a misread case.
pub(super) const MISREAD: [Golden; 20] = [
    Golden {
        name: "quarter_of_the_audio",
        shows: "G.722 whose sender went from packets of 20 ms to packets of 40 and kept sending one every 75 ms: 518 \
                packets with contiguous numbers where some 1,935 should be.",
        misread: "MOS 4.5: no number is missing (team-telnyx/freeswitch PR 658).",
        verdict: "unpaced_sender",
        figures: &[
            number("/streams/0/packets", 518.0),
            number("/calls/0/loss_pct", 0.0),
            between("/calls/0/mean_interval_ms", 74.5, 75.5),
            number("/streams/0/ptime_ms", 40.0),
            between("/calls/0/mos", 1.0, 2.0),
        ],
        record: quarter_of_the_audio,
    },
    Golden {
        name: "silence_at_50_packets_a_second",
        shows: "The caller's stream is healthy and carries digital silence for the whole call.",
        misread: "Nothing wrong at all: no loss, full MOS, no alarm (team-telnyx/webrtc 701).",
        verdict: "ok",
        figures: &[
            number("/calls/0/loss_pct", 0.0),
            number("/streams/0/packets", 560.0),
            text("/calls/0/flags/0", "silent_audio"),
            number("/calls/0/inbound/audio/silent_share_pct", 100.0),
            text("/streams/0/flags/0", "silent_audio"),
            absent("/streams/1/flags/0"),
            number("/streams/1/audio/silent_share_pct", 0.0),
        ],
        record: silence,
    },
    Golden {
        name: "ssrc_change_at_answer",
        shows: "A few packets from number 773 on while it rings, then silence; at the answer another SSRC goes on with \
                the numbers, from 1521 to 3333.",
        misread: "The ring time is counted as loss, 50 packets a second (siphon-ai 330, PR 334).",
        verdict: "ok",
        figures: &[
            number("/calls/0/loss_pct", 0.0),
            number("/streams/0/packets", 10.0),
            number("/streams/2/packets", 1_813.0),
            number("/streams/2/lost", 0.0),
            number("/calls/0/mos", 4.5),
        ],
        record: ssrc_change_at_answer,
    },
    Golden {
        name: "loss_behind_the_capture",
        shows: "Both streams are whole where they were captured; the caller's reports say that a tenth of what it was \
                sent never arrived.",
        misread: "No loss and MOS 4.5, because the capture was taken before the loss (voipmonitor/sniffer 61).",
        verdict: "ok",
        figures: &[
            number("/streams/1/lost", 0.0),
            between("/streams/1/rtcp/far_end/loss_pct", 9.5, 10.5),
            flag("/streams/1/rtcp/far_end/highest_sequence_moves", true),
        ],
        record: |capture| with_loss_reports(capture, "loss_behind_the_capture", 10, |_| 24, &[]),
    },
    Golden {
        name: "cumulative_loss",
        shows: "The caller's reports count 74 lost packets of 495 in all: 15 percent, not 74.",
        misread: "The cumulative count is shown as a percentage, and MOS sticks at 1 (sipcapture/homer 258, homer-api \
                  172, homer-app 410).",
        verdict: "ok",
        figures: &[
            between("/streams/1/rtcp/far_end/lost", 55.0, 80.0),
            between("/streams/1/rtcp/far_end/loss_pct", 14.0, 16.0),
        ],
        record: |capture| with_loss_reports(capture, "cumulative_loss", 15, |_| 24, &[]),
    },
    Golden {
        name: "early_media_injection",
        shows: "An announcement of another SSRC plays to the caller while it rings; the stream of the answer has \
                numbers and timestamps of its own.",
        misread: "The change of source is seen as jitter and loss (sipcapture/homer 430).",
        verdict: "ok",
        figures: &[
            number("/calls/0/loss_pct", 0.0),
            between("/streams/2/jitter_ms", 0.0, 1.0),
            number("/streams/2/lost", 0.0),
        ],
        record: early_media_injection,
    },
    Golden {
        name: "one_bad_jitter_sample",
        shows: "One of the caller's reports states a jitter of 13,936,773 units; those around it state 24.",
        misread: "One sample wrecks the score of the call (asterisk 2095, PR 2096; rtpproxy 66).",
        verdict: "ok",
        figures: &[
            number("/streams/1/rtcp/far_end/jitter_ms", 3.0),
            number("/streams/1/rtcp/far_end/jitter_max_ms", 3.0),
        ],
        record: |capture| with_loss_reports(capture, "one_bad_jitter_sample", 0, bad_jitter, &[]),
    },
    Golden {
        name: "timestamp_jump",
        shows: "The caller's timestamps jump in the middle of the call, at a marker; nothing is lost or late.",
        misread: "Jitter of thousands of milliseconds (rtpengine 185, RFC 3550 A.8 taken to the letter).",
        verdict: "ok",
        figures: &[number("/calls/0/loss_pct", 0.0), between("/calls/0/jitter_ms", 0.0, 1.0)],
        record: |capture| caller_of(capture, "timestamp_jump", "clean stamp_reset=5s duration=10s"),
    },
    Golden {
        name: "deaf_receiver",
        shows: "The caller gets nothing of what is sent: its reports state no loss, and a highest sequence number of 0.",
        misread: "Everything arrived: lost 0 (asterisk 2012).",
        verdict: "ok",
        figures: &[
            absent("/streams/1/rtcp/far_end/loss_pct"),
            flag("/streams/1/rtcp/far_end/highest_sequence_moves", false),
            between("/streams/1/rtcp/far_end/unheard", 380.0, 500.0),
        ],
        record: deaf_receiver,
    },
    Golden {
        name: "keys_are_no_loss",
        shows: "The caller presses three keys; each begins with a marker and repeats its timestamp.",
        misread: "A jitter buffer flushes at the marker and counts its own flush as loss (freeswitch 3070, PR 3071).",
        verdict: "ok",
        figures: &[
            number("/calls/0/loss_pct", 0.0),
            number("/calls/0/mos", 4.5),
            between("/calls/0/jitter_ms", 0.0, 1.0),
        ],
        record: |capture| caller_of(capture, "keys_are_no_loss", "clean digits=3 duration=10s"),
    },
    Golden {
        name: "no_rtcp",
        shows: "A clean call without any RTCP.",
        misread: "No RTCP, so no MOS (rtpengine 874, 603, 1941).",
        verdict: "ok",
        figures: &[number("/calls/0/mos", 4.5), absent("/streams/0/rtcp"), absent("/streams/1/rtcp")],
        record: |capture| caller_of(capture, "no_rtcp", "clean duration=10s"),
    },
    Golden {
        name: "we_sent_they_lost",
        shows: "The caller's reports and VoIP metrics say what became of the packets that it was sent: 4 percent lost, \
                another 5 discarded by its jitter buffer.",
        misread: "Nothing tells how the far end heard us (siphon-ai 320).",
        verdict: "ok",
        figures: &[
            number("/streams/1/packets", 495.0),
            between("/streams/1/rtcp/far_end/loss_pct", 3.5, 4.5),
            between("/streams/1/rtcp/far_end/voip/discard_pct", 5.0, 5.1),
            number("/streams/1/rtcp/far_end/voip/mos_lq", 3.9),
        ],
        record: |capture| with_loss_reports(capture, "we_sent_they_lost", 4, |_| 24, &VOIP_METRICS),
    },
    Golden {
        name: "head_and_tail_missing",
        shows: "The caller's first 40 packets and its last 150 never come. The numbers of those that came have no gap; \
                its sender reports count them all.",
        misread: "No loss: only gaps between numbers are counted.",
        verdict: "ok",
        figures: &[
            number("/streams/1/lost", 0.0),
            number("/streams/1/packets", 305.0),
            number("/streams/1/rtcp/sr_missing_tail", 150.0),
            text("/calls/0/flags/0", "sender_counts_more"),
            text("/calls/0/sentence", HEAD_AND_TAIL),
            flag("/streams/1/rtcp/goodbye", true),
        ],
        record: head_and_tail_missing,
    },
    Golden {
        name: "private_address_that_works",
        shows: "A phone behind NAT: its SDP names a private address, its audio comes from the public one.",
        misread: "An error for every phone behind NAT, or the audio is dropped (livekit/sip 611, 141; rtpengine 1171).",
        verdict: "ok",
        figures: &[number("/calls/0/loss_pct", 0.0), number("/calls/0/mos", 4.5)],
        record: private_address_that_works,
    },
    Golden {
        name: "packet_duration_changes",
        shows: "The caller goes from packets of 20 ms to packets of 30 in the middle of the call, the timestamps with it.",
        misread: "Loss or jitter, and a jitter buffer of the wrong length (freeswitch 3150).",
        verdict: "ok",
        figures: &[number("/calls/0/loss_pct", 0.0), between("/calls/0/jitter_ms", 0.0, 1.0)],
        record: |capture| {
            caller_of(capture, "packet_duration_changes", "clean ptime_switch=5s:30 duration=10s")
        },
    },
    Golden {
        name: "paced_20_40_20_40",
        shows: "Packets of 30 ms that leave after 20, 40, 20, 40 ms: a timer of 20 ms under packets of 30.",
        misread: "High jitter, or a wrong packet duration (freeswitch 2170).",
        verdict: "ok",
        figures: &[
            number("/streams/0/ptime_ms", 30.0),
            number("/calls/0/loss_pct", 0.0),
            between("/calls/0/mean_interval_ms", 29.5, 30.5),
        ],
        record: paced_20_40,
    },
    Golden {
        name: "payload_type_101_is_opus",
        shows: "SDP gives the number 101 to Opus, and 102 to keys.",
        misread: "Opus is read as keys, because 101 usually means keys; one-way audio (freeswitch 1965).",
        verdict: "ok",
        figures: &[number("/streams/0/clock_rate", 48_000.0), number("/streams/0/lost", 0.0)],
        record: payload_type_collision,
    },
    Golden {
        name: "muted_without_rtp",
        shows: "The caller mutes itself for four seconds: no packet comes, and the numbers go on where they stopped.",
        misread: "A dead call, hung up or counted as loss (livekit/sip 812).",
        verdict: "ok",
        figures: &[number("/calls/0/loss_pct", 0.0), number("/calls/0/mos", 4.5)],
        record: |capture| caller_of(capture, "muted_without_rtp", "clean dtx=3s/4s:frozen duration=10s"),
    },
    Golden {
        name: "reordered_is_not_lost",
        shows: "A tenth of the caller's packets change places with the next one; none is missing.",
        misread: "Every overtaken packet is counted as lost.",
        verdict: "ok",
        figures: &[number("/calls/0/loss_pct", 0.0), between("/streams/0/reordered", 20.0, 90.0)],
        record: |capture| caller_of(capture, "reordered_is_not_lost", "clean swap=10 duration=10s seed=4"),
    },
    Golden {
        name: "mirrored_twice",
        shows: "Every packet of the caller is in the capture twice, as from a mirrored port.",
        misread: "A loss of minus 100 percent.",
        verdict: "ok",
        figures: &[
            number("/calls/0/loss_pct", 0.0),
            number("/streams/0/duplicates", 300.0),
            between("/calls/0/mean_interval_ms", 19.9, 20.1),
        ],
        record: |capture| caller_of(capture, "mirrored_twice", "clean duplicate=100 duration=6s"),
    },
];

fn quarter_of_the_audio(capture: &mut CaptureBuilder) {
    let codecs: &[(u8, &str)] = &[(9, "G722/8000"), (13, "CN/8000")];
    Dialog::plain("quarter_of_the_audio", codecs, 38_900_000).play(capture);
    let voice = Voice {
        payload_type: 9,
        sound: Sound::Tone(Codec::G722),
        octets: 320,
        ticks: 320,
        gap_us: 75_000,
        ..Voice::of_caller(518)
    };
    voice.speak(capture, |_| false);
    Voice::sparse(190).speak(capture, |_| false);
}

fn silence(capture: &mut CaptureBuilder) {
    Dialog::plain("silence_at_50_packets_a_second", PCMU, 11_300_000).play(capture);
    Voice { sound: Sound::Silence, ..Voice::of_caller(560) }.speak(capture, |_| false);
    Voice::of_called(560).speak(capture, |_| false);
}

fn ssrc_change_at_answer(capture: &mut CaptureBuilder) {
    let codecs: &[(u8, &str)] = &[(18, "G729/8000"), (13, "CN/8000")];
    let mut dialog = Dialog::plain("ssrc_change_at_answer", codecs, 36_400_000);
    (dialog.early_media, dialog.rings_us) = (true, 15_200_000);
    dialog.play(capture);
    let early = Voice {
        sequence: 773,
        payload_type: 18,
        sound: Sound::Coded,
        octets: 20,
        begins_us: -14_960_000,
        ..Voice::of_caller(10)
    };
    early.speak(capture, |_| false);
    let answered = Voice {
        ssrc: 0x0003_0003,
        sequence: 1_521,
        timestamp: early.timestamp + 748 * 160,
        begins_us: 30_000,
        packets: 1_813,
        ..early
    };
    answered.speak(capture, |_| false);
    Voice::sparse(180).speak(capture, |_| false);
}

/// A clean call in which the caller's reports state that some of the packets sent to it were lost.
fn with_loss_reports(
    capture: &mut CaptureBuilder,
    name: &'static str,
    lost_pct: u32,
    jitter_ticks: fn(usize) -> u32,
    extended: &[u8],
) {
    Dialog::plain(name, PCMU, 10_000_000).play(capture);
    let (caller, called) = (Voice::of_caller(495), Voice::of_called(495));
    caller.speak(capture, |_| false);
    called.speak(capture, |_| false);
    let hears = Hears { lost_pct, jitter_ticks, ..Hears::well(&called) };
    let of_caller = Reports { extended, ..Reports::of(&caller, Some(hears)) };
    reports(capture, 9_700_000, &of_caller, Some(&Reports::of(&called, Some(Hears::well(&caller)))));
}

fn bad_jitter(n: usize) -> u32 {
    if n == 1 { 13_936_773 } else { 24 }
}

fn early_media_injection(capture: &mut CaptureBuilder) {
    let mut dialog = Dialog::plain("early_media_injection", PCMU, 7_000_000);
    (dialog.early_media, dialog.rings_us) = (true, 4_000_000);
    dialog.play(capture);
    Voice { begins_us: -3_900_000, ..Voice::of_caller(540) }.speak(capture, |_| false);
    let announcement =
        Voice { ssrc: 0x0004_0004, sequence: 60_000, begins_us: -3_890_000, ..Voice::of_called(190) };
    announcement.speak(capture, |_| false);
    Voice { begins_us: 25_000, ..Voice::of_called(345) }.speak(capture, |_| false);
}

fn deaf_receiver(capture: &mut CaptureBuilder) {
    Dialog::plain("deaf_receiver", PCMU, 10_000_000).play(capture);
    let (caller, called) = (Voice::of_caller(495), Voice::of_called(495));
    caller.speak(capture, |_| false);
    called.speak(capture, |_| false);
    let hears = Hears { deaf: true, ..Hears::well(&called) };
    reports(capture, 9_700_000, &Reports::of(&caller, Some(hears)), None);
}

fn head_and_tail_missing(capture: &mut CaptureBuilder) {
    Dialog::plain("head_and_tail_missing", PCMU, 10_000_000).play(capture);
    let (caller, called) = (Voice::of_caller(495), Voice::of_called(495));
    caller.speak(capture, |n| !(40..345).contains(&n));
    called.speak(capture, |_| false);
    reports(capture, 9_700_000, &Reports::of(&caller, Some(Hears::well(&called))), None);
    goodbye(capture, 9_920_000, &caller);
}

fn private_address_that_works(capture: &mut CaptureBuilder) {
    let mut dialog = Dialog::plain("private_address_that_works", PCMU, 10_000_000);
    dialog.offer = Sdp { ip: Some([192, 168, 1, 20]), ..dialog.offer };
    dialog.play(capture);
    Voice::of_caller(495).speak(capture, |_| false);
    Voice::of_called(495).speak(capture, |_| false);
}

fn paced_20_40(capture: &mut CaptureBuilder) {
    let mut dialog = Dialog::plain("paced_20_40_20_40", PCMU, 10_300_000);
    dialog.offer.ptime_ms = Some(30);
    dialog.play(capture);
    simulate(capture, "clean ptime=30 pace=20/40 duration=10s");
    Voice::of_called(495).speak(capture, |_| false);
}

fn payload_type_collision(capture: &mut CaptureBuilder) {
    let codecs: &[(u8, &str)] = &[(101, "opus/48000/2"), (102, "telephone-event/48000")];
    Dialog::plain("payload_type_101_is_opus", codecs, 10_000_000).play(capture);
    let opus =
        Voice { payload_type: 101, sound: Sound::Coded, octets: 80, ticks: 960, ..Voice::of_caller(495) };
    opus.speak(capture, |_| false);
    let called = Voice::of_called(495);
    Voice { from_caller: false, ssrc: called.ssrc, begins_us: called.begins_us, ..opus }
        .speak(capture, |_| false);
}

/// The caller as in a scenario, and an undisturbed called party.
fn caller_of(capture: &mut CaptureBuilder, name: &'static str, text: &str) {
    Dialog::plain(name, PCMU, 10_300_000).play(capture);
    simulate(capture, text);
    Voice::of_called(495).speak(capture, |_| false);
}

/// The required sentence when only the sender reports show which packets are missing.
const HEAD_AND_TAIL: &str = "The packets of the caller's audio that arrived were in order, but some are missing at the start or the end. Of \
    the 305 packets from the first to the last that arrived, none is missing, and the jitter was 0.06 ms at most (limit 30 ms). By the sender reports (RTCP) \
    of the caller's device, which count 495 packets, 190 never came, 40 of them before the first that came and 150 \
    after the last.";

/// An extended report of the caller with one VoIP metrics block about the stream that it receives (RFC 3611
/// §4.7).
const VOIP_METRICS: [u8; 44] = [
    0x80, 207, 0, 10, 0, 1, 0, 1, // The caller reports.
    7, 0, 0, 8, 0, 2, 0, 2, // About the stream it is sent.
    10, 13, 64, 5, 0, 120, 0x13, 0x88, 0, 60, 0, 80, // Shares in 256ths, durations and delays in ms.
    0xec, 0xc4, 127, 16, 78, 127, 39, 38, 0x30, 0, 0, 60, 0, 80, 0,
    200, // Levels, R, MOS, jitter buffer.
];
