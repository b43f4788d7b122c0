//! Named scenarios: one for each kind of media fault, and for streams that only look faulty.

use crate::verdict::Verdict;

/// A named scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, and the first word of its text form.
    pub name: &'static str,
    /// The expected verdict.
    pub expected: Verdict,
    /// What it demonstrates.
    pub about: &'static str,
    /// Its settings, with the keys of [`super::KEYS`].
    pub settings: &'static str,
}

const fn entry(name: &'static str, expected: Verdict, settings: &'static str, about: &'static str) -> Entry {
    Entry { name, expected, about, settings }
}

/// Every named scenario; those for a first look come first.
pub const CATALOGUE: [Entry; 77] = [
    entry("clean", Verdict::Ok, "", "one minute of undisturbed audio"),
    entry("lossy", Verdict::LossyInbound, "loss=5", "5 % of the packets are lost at random"),
    entry("jittery", Verdict::JitteryInbound, "jitter=normal:100:40", "a queue delays packets by 100±40 ms"),
    entry("unpaced", Verdict::UnpacedSender, "clump=5", "five packets at a time, every 100 ms"),
    entry("wrong-ptime", Verdict::PtimeMismatch, "ptime=30 advertised=20", "30 ms packets where SDP says 20"),
    entry("degraded", Verdict::DegradedAudio, "stop=20s", "audio dies after 20 s of a minute's call"),
    entry("no-inbound", Verdict::NoInboundMedia, "packets=0 duration=10s", "the caller sends nothing"),
    entry("no-outbound", Verdict::NoOutboundMedia, "returned=no duration=10s", "the caller is sent nothing"),
    entry(
        "wrong-address",
        Verdict::WrongAdvertisedAddress,
        "source=elsewhere duration=10s",
        "audio comes from where SDP does not say, and latching is off",
    ),
    entry("unanswered", Verdict::Unanswered, "answer=never duration=10s", "early media, but no answer"),
    // Numbering.
    entry("short", Verdict::Ok, "duration=2s", "a call of 100 packets"),
    entry("sequence-wrap", Verdict::Ok, "sequence=65000 timestamp=4294900000", "numbers wrap around"),
    entry("ssrc-change", Verdict::Ok, "ssrc_change=20s,40s", "a new SSRC, twice"),
    entry("restart", Verdict::Ok, "restart=20s duration=40s", "new numbering under the same SSRC"),
    entry("stamp-reset", Verdict::Ok, "stamp_reset=20s duration=40s", "timestamps jump at a marker"),
    entry("stray", Verdict::Ok, "stray=1s", "somebody else's packet every second"),
    entry("codec-switch", Verdict::Ok, "codec_switch=30s:pcma", "PCMU becomes PCMA"),
    // Codecs.
    entry("g722", Verdict::Ok, "codec=g722", "the clock of 8,000 Hz that samples at 16,000"),
    entry("opus", Verdict::Ok, "codec=opus jitter=0..10", "a clock of 48,000 Hz, and a little jitter"),
    // Loss.
    entry("loss-half", Verdict::Ok, "loss=0.5 duration=2m", "0.5 % random loss"),
    entry("loss-1", Verdict::Ok, "loss=1 duration=2m", "1 % random loss"),
    entry("loss-3", Verdict::LossyInbound, "loss=3 duration=2m", "3 % random loss"),
    entry("loss-10", Verdict::LossyInbound, "loss=10 duration=2m", "10 % random loss"),
    entry("loss-30", Verdict::LossyInbound, "loss=30 duration=2m", "30 % random loss"),
    entry(
        "loss-periodic",
        Verdict::LossyInbound,
        "loss_every=3",
        "every third packet; the gaps look like 30 ms",
    ),
    entry("hole-1s", Verdict::Ok, "hole=30s..31s", "one second lost in a minute"),
    entry("hole-2s", Verdict::LossyInbound, "hole=30s..32s", "two seconds lost in a minute"),
    entry("bursts", Verdict::LossyInbound, "burst=6:8 duration=2m", "6 % lost, eight packets at a time"),
    entry(
        "alternating",
        Verdict::Ok,
        "alternate=5s:12 alternate=20s:12 alternate=35s:12 alternate=50s:12",
        "spells of every other packet lost: 1.6 % in all",
    ),
    entry("lost-2-of-60", Verdict::Ok, "duration=1200ms lose=20,40", "two packets are no verdict"),
    entry("lost-3-of-33", Verdict::Ok, "duration=720ms lose=9,18,27", "too short to judge"),
    entry(
        "lost-10-of-100",
        Verdict::LossyInbound,
        "duration=2s lose=5,14,23,32,41,50,59,68,77,86",
        "a short call, but long enough",
    ),
    // Order.
    entry("swaps", Verdict::Ok, "swap=10", "a tenth of the packets swap places, none is lost"),
    entry("duplicates", Verdict::Ok, "duplicate=100", "every packet arrives twice"),
    entry("overtaken", Verdict::JitteryInbound, "overtaken=200:1s", "one packet in 200 is a second late"),
    // Jitter.
    entry("jitter-10", Verdict::Ok, "jitter=0..10", "a queue of up to 10 ms"),
    entry("jitter-40", Verdict::Ok, "jitter=0..40", "a queue of up to 40 ms"),
    entry("jitter-60", Verdict::Ok, "jitter=0..60", "a queue of up to 60 ms"),
    entry("jitter-60-reordered", Verdict::Ok, "jitter=0..60 order=any", "up to 60 ms, in any order"),
    entry("jitter-120", Verdict::JitteryInbound, "jitter=0..120", "a queue of up to 120 ms"),
    entry(
        "jitter-120-reordered",
        Verdict::JitteryInbound,
        "jitter=0..120 order=any",
        "up to 120 ms, in any order",
    ),
    entry("jitter-50-20", Verdict::Ok, "jitter=normal:50:20", "a queue of 50±20 ms"),
    entry(
        "jitter-100-40-reordered",
        Verdict::JitteryInbound,
        "jitter=normal:100:40 order=any",
        "100±40 ms, in any order",
    ),
    entry("heavy-tail", Verdict::JitteryInbound, "jitter=pareto:10:1.4", "rare but very long delays"),
    entry("stall-once", Verdict::Ok, "stall=30s..30500ms", "one stall of half a second in a minute"),
    entry(
        "stalls-300",
        Verdict::JitteryInbound,
        "stalls=5s:300ms duration=2m",
        "stalls of 300 ms about every 5 s",
    ),
    entry("stalls-200", Verdict::JitteryInbound, "stalls=1s:200ms", "stalls of 200 ms about every second"),
    entry("wifi-scan", Verdict::Ok, "stalls=10s:120ms", "a Wi-Fi scan of 120 ms every 10 s"),
    entry("step-150", Verdict::Ok, "step=30s:150", "the route changes: 150 ms more, for good"),
    entry("step-400", Verdict::Ok, "step=30s:400", "the route changes: 400 ms more, for good"),
    entry("ramp", Verdict::Ok, "ramp=20s..30s:300", "a queue that fills slowly to 300 ms"),
    entry("skew", Verdict::Ok, "skew=300 duration=10m", "a talker's clock off by 300 ppm for ten minutes"),
    // Pace.
    entry("clumps-3", Verdict::UnpacedSender, "clump=3", "three packets every 60 ms"),
    entry("clumps-10", Verdict::UnpacedSender, "clump=10", "ten packets every 200 ms"),
    entry(
        "clumps-uneven",
        Verdict::UnpacedSender,
        "clump=3..7 jitter=0..30",
        "3 to 7 packets, and a network",
    ),
    entry("clumps-by-network", Verdict::UnpacedSender, "delivery=100ms", "the network delivers every 100 ms"),
    entry("pairs", Verdict::Ok, "clump=2", "two packets every 40 ms"),
    entry("blast", Verdict::UnpacedSender, "pace=blast", "a minute's file in a tenth of a second"),
    entry("slow", Verdict::UnpacedSender, "pace=25", "20 ms packets every 25 ms"),
    entry("slightly-slow", Verdict::Ok, "pace=21", "20 ms packets every 21 ms"),
    entry("sleeps-double", Verdict::UnpacedSender, "pace=0..80", "sleeps of 0 to 80 ms for 20 ms of audio"),
    entry("sleeps", Verdict::Ok, "pace=10..30", "sleeps of 10 to 30 ms"),
    entry(
        "sleeps-wide",
        Verdict::DegradedAudio,
        "pace=0..42",
        "sleeps of 0 to 42 ms: many packets come too late for a phone",
    ),
    entry("poisson", Verdict::JitteryInbound, "pace=exp:20", "gaps without any rhythm"),
    entry("coarse-timer", Verdict::Ok, "pace=timer:15.625", "a timer that ticks every 15.6 ms"),
    entry("uneven-30", Verdict::Ok, "ptime=30 pace=20/40", "30 ms packets sent after 20 and 40 ms in turn"),
    entry("startup-flush", Verdict::Ok, "flush=10", "ten saved-up packets at the start"),
    // Packet duration.
    entry("ptime-10", Verdict::PtimeMismatch, "ptime=10 advertised=20", "10 ms packets where SDP says 20"),
    entry(
        "ptime-60-lossy",
        Verdict::PtimeMismatch,
        "ptime=60 advertised=20 loss_every=80",
        "60 ms packets where SDP says 20, and 1.25 % loss",
    ),
    entry("ptime-payload", Verdict::PtimeMismatch, "payload=30", "240 bytes stamped as 160"),
    entry("ptime-late-switch", Verdict::Ok, "ptime_switch=54s:30", "30 ms packets for the last tenth"),
    // Silence and digits.
    entry("dtx-noise", Verdict::Ok, "dtx=2s/4s:cn", "pauses opened by comfort noise"),
    entry("dtx-marker", Verdict::Ok, "dtx=2s/4s:marker", "pauses ended by a marker"),
    entry("dtx-plain", Verdict::Ok, "dtx=2s/4s:plain", "pauses that only the timestamps tell of"),
    entry("dtx-frozen", Verdict::Ok, "dtx=2s/4s:frozen", "pauses in which the timestamps stand still"),
    entry("digits", Verdict::Ok, "digits=3 duration=20s", "three keypad digits in the audio"),
    entry("digits-alone", Verdict::Ok, "digits=13:alone duration=16s", "keypad digits and no audio"),
];
