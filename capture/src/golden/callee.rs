//! Calls in which only the called party's audio is damaged.

use super::capture_builder::CaptureBuilder;
use super::entry::{Golden, between, number, text};
use super::rtp::Voice;
use super::sip::Dialog;
use super::verdicts::PCMU;

/// Every capture with a damaged called party.
pub(super) const CALLEE: [Golden; 1] = [Golden {
    name: "lossy_towards_the_caller",
    shows: "The caller's audio arrives whole; 15 percent of the called party's packets are lost on their way to the \
            caller.",
    misread: "A good call: only the caller's direction is judged.",
    verdict: "ok",
    figures: &[
        number("/calls/0/loss_pct", 0.0),
        number("/calls/0/mos", 4.5),
        text("/calls/0/callee/media_verdict", "lossy_inbound"),
        text("/calls/0/callee/blame", "network"),
        between("/calls/0/callee/loss_pct", 14.0, 16.0),
        between("/calls/0/callee/mos", 1.0, 3.0),
        text("/calls/0/media_verdict_worse", "lossy_inbound"),
    ],
    record: lossy_towards_the_caller,
}];

fn lossy_towards_the_caller(capture: &mut CaptureBuilder) {
    Dialog::plain("lossy_towards_the_caller", PCMU, 10_000_000).play(capture);
    Voice::of_caller(495).speak(capture, |_| false);
    // A multiplicative hash spreads the losses: single packets and short runs.
    Voice::of_called(495).speak(capture, |n| (n.wrapping_mul(2_654_435_761) >> 16) % 100 < 15);
}
