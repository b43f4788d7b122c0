//! One capture per verdict, in the order of the rules.

use sidetone_media::simulate::Codec;

use super::capture_builder::CaptureBuilder;
use super::entry::{Expected, Golden, between, number};
use super::rtcp::{Hears, Reports, reports};
use super::rtp::{Sound, Voice, simulate};
use super::sip::{Dialog, Sdp};

const fn plain(
    name: &'static str,
    shows: &'static str,
    verdict: &'static str,
    figures: &'static [Expected],
    record: fn(&mut CaptureBuilder),
) -> Golden {
    Golden { name, shows, misread: "", verdict, figures, record }
}

/// A call for each value of `media_verdict`.
pub(super) const VERDICTS: [Golden; 10] = [
    plain(
        "unanswered",
        "Early media for ten seconds, then the caller gives up.",
        "unanswered",
        &[number("/streams/0/packets", 500.0)],
        unanswered,
    ),
    plain(
        "no_inbound_media",
        "The call is answered and the caller hears the other side, but none of the caller's 480 packets comes; its \
         sender reports say that they were sent.",
        "no_inbound_media",
        &[],
        no_inbound_media,
    ),
    plain(
        "no_outbound_media",
        "The caller talks and is sent nothing.",
        "no_outbound_media",
        &[number("/streams/0/lost", 0.0), number("/streams/0/packets", 500.0)],
        no_outbound_media,
    ),
    plain(
        "wrong_advertised_address",
        "The caller's SDP names a private address that cannot be reached from where its SIP comes from, and nothing \
         arrives.",
        "wrong_advertised_address",
        &[],
        wrong_advertised_address,
    ),
    plain(
        "lossy_inbound",
        "Five percent of the caller's packets are lost at random.",
        "lossy_inbound",
        &[between("/calls/0/loss_pct", 3.0, 8.0), between("/calls/0/mos", 3.2, 3.8)],
        |capture| scenario(capture, "lossy_inbound", "clean loss=5 duration=10s seed=4"),
    ),
    plain(
        "unpaced_sender",
        "The caller sends five packets at once every 100 ms; nothing is lost.",
        "unpaced_sender",
        &[number("/calls/0/loss_pct", 0.0), between("/calls/0/mean_interval_ms", 19.8, 20.2)],
        |capture| scenario(capture, "unpaced_sender", "clean clump=5 duration=10s"),
    ),
    plain(
        "jittery_inbound",
        "A queue delays the caller's packets by 100±40 ms; nothing is lost.",
        "jittery_inbound",
        &[number("/calls/0/loss_pct", 0.0), between("/calls/0/jitter_ms", 15.0, 60.0)],
        |capture| scenario(capture, "jittery_inbound", "clean jitter=normal:100:40 duration=10s"),
    ),
    plain(
        "ptime_mismatch",
        "The caller's SDP says 20 ms, its packets hold 30.",
        "ptime_mismatch",
        &[number("/streams/0/ptime_ms", 30.0), number("/calls/0/loss_pct", 0.0)],
        |capture| scenario(capture, "ptime_mismatch", "clean ptime=30 duration=10s"),
    ),
    plain(
        "degraded_audio",
        "The caller's audio dies after three seconds of a call of eleven.",
        "degraded_audio",
        &[number("/streams/0/packets", 150.0), number("/calls/0/loss_pct", 0.0)],
        degraded_audio,
    ),
    plain(
        "ok",
        "Ten undisturbed seconds, with reports of both sides.",
        "ok",
        &[
            number("/calls/0/loss_pct", 0.0),
            number("/calls/0/mos", 4.5),
            number("/streams/0/rtcp/sr_missing", 0.0),
            number("/streams/1/rtcp/far_end/loss_pct", 0.0),
            between("/streams/1/rtcp/round_trip_ms/mean", 59.0, 61.0),
        ],
        ok,
    ),
];

/// PCMU, telephone-event and comfort noise, as most phones offer.
pub(super) const PCMU: &[(u8, &str)] = &[(0, "PCMU/8000"), (101, "telephone-event/8000"), (13, "CN/8000")];

fn unanswered(capture: &mut CaptureBuilder) {
    let mut dialog = Dialog::plain("unanswered", PCMU, 0);
    (dialog.answered, dialog.early_media, dialog.rings_us) = (false, true, 10_100_000);
    dialog.play(capture);
    Voice { begins_us: -10_000_000, ..Voice::of_called(495) }.speak(capture, |_| false);
    Voice { begins_us: -10_050_000, ..Voice::of_caller(500) }.speak(capture, |_| false);
}

fn no_inbound_media(capture: &mut CaptureBuilder) {
    Dialog::plain("no_inbound_media", PCMU, 10_000_000).play(capture);
    let (sent, heard) = (Voice::of_caller(480), Voice::of_called(500));
    heard.speak(capture, |_| false);
    reports(capture, 9_000_000, &Reports::of(&sent, Some(Hears::well(&heard))), None);
}

fn no_outbound_media(capture: &mut CaptureBuilder) {
    Dialog::plain("no_outbound_media", PCMU, 10_020_000).play(capture);
    Voice::of_caller(500).speak(capture, |_| false);
}

fn wrong_advertised_address(capture: &mut CaptureBuilder) {
    let mut dialog = Dialog::plain("wrong_advertised_address", PCMU, 10_000_000);
    dialog.offer = Sdp { ip: Some([10, 1, 1, 9]), ..dialog.offer };
    dialog.play(capture);
    let private = capture.caller.rtp;
    capture.caller.rtp.set_ip([10, 1, 1, 9].into());
    Voice::of_called(495).speak(capture, |_| false);
    capture.caller.rtp = private;
}

fn degraded_audio(capture: &mut CaptureBuilder) {
    Dialog::plain("degraded_audio", PCMU, 11_000_000).play(capture);
    let (caller, called) = (Voice::of_caller(150), Voice::of_called(545));
    caller.speak(capture, |_| false);
    called.speak(capture, |_| false);
}

fn ok(capture: &mut CaptureBuilder) {
    Dialog::plain("ok", PCMU, 10_000_000).play(capture);
    let (caller, called) = (Voice::of_caller(495), Voice::of_called(495));
    caller.speak(capture, |_| false);
    called.speak(capture, |_| false);
    let from_called = Reports::of(&called, Some(Hears::well(&caller)));
    reports(capture, 9_700_000, &Reports::of(&caller, Some(Hears::well(&called))), Some(&from_called));
}

/// The caller as in a scenario, and an undisturbed called party.
fn scenario(capture: &mut CaptureBuilder, name: &'static str, text: &str) {
    Dialog::plain(name, PCMU, 10_300_000).play(capture);
    simulate(capture, text);
    Voice { sound: Sound::Tone(Codec::Pcmu), ..Voice::of_called(495) }.speak(capture, |_| false);
}
