//! The settings of a scenario: the call, its talker, and the network path.
//!
//! All times are milliseconds from the start of the simulation unless stated otherwise.

use crate::time::ClockRate;
use crate::verdict::Verdict;

/// One party's media in one call, and the effects of the network on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The catalogue entry that it is based on.
    pub name: String,
    /// What it demonstrates, in one line.
    pub about: String,
    /// The expected verdict; `None` once the scenario was changed.
    pub expected: Option<Verdict>,
    /// The seed of all random values.
    pub seed: u64,
    /// Duration of the call.
    pub duration_ms: u32,
    /// The `a=ptime` of the party's SDP; `None` for the talker's actual packet duration.
    pub advertised_ptime_ms: Option<u32>,
    /// The call around the media.
    pub call: Call,
    /// The sender.
    pub talker: Talker,
    /// The network.
    pub path: Path,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario {
            name: "clean".to_owned(),
            about: "one minute of undisturbed audio".to_owned(),
            expected: Some(Verdict::Ok),
            seed: 1,
            duration_ms: 60_000,
            advertised_ptime_ms: None,
            call: Call::default(),
            talker: Talker::default(),
            path: Path::default(),
        }
    }
}

impl Scenario {
    /// The packet duration in the party's SDP.
    pub fn advertised_ptime_ms(&self) -> u32 {
        self.advertised_ptime_ms.unwrap_or(self.talker.ptime_ms)
    }

    /// The same scenario with other random draws.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
}

/// The signalling of the call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// When the call is answered; `None` when it is never answered and all media is early media.
    pub answer_ms: Option<u32>,
    /// While the party is on hold it sends nothing.
    pub hold: Option<Span>,
    /// Whether the other party's media reaches this one.
    pub returned: bool,
    /// Whether the media comes from the address in SDP.
    pub advertised_source: bool,
}

impl Default for Call {
    fn default() -> Self {
        Call { answer_ms: Some(0), hold: None, returned: true, advertised_source: true }
    }
}

/// An interval of milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first millisecond.
    pub from_ms: u32,
    /// The first millisecond after it.
    pub to_ms: u32,
}

/// The sender's settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Talker {
    /// The codec of the audio.
    pub codec: Codec,
    /// From this time on, another codec.
    pub codec_switch: Option<(u32, Codec)>,
    /// Actual duration of one packet.
    pub ptime_ms: u32,
    /// From this time on, another packet duration.
    pub ptime_switch: Option<(u32, u32)>,
    /// Actual audio in the payload, for timestamps that do not match it.
    pub payload_ms: Option<u32>,
    /// Synchronisation source of the first segment.
    pub ssrc: u32,
    /// First sequence number.
    pub first_sequence: u16,
    /// First timestamp.
    pub first_timestamp: u32,
    /// When packets leave.
    pub pace: Pace,
    /// Packets are held back and sent this many at a time (minimum, maximum).
    pub clump: Option<(u32, u32)>,
    /// Time of the first packet.
    pub start_ms: u32,
    /// No packets after this time, although the call continues.
    pub stop_ms: Option<u32>,
    /// The largest number of packets.
    pub packets_max: Option<u32>,
    /// Packets that a sound card has buffered and sends together at the start.
    pub flush: u32,
    /// Silence suppression.
    pub silence: Option<Silence>,
    /// Keypad digits (RFC 4733).
    pub digits: Option<Digits>,
    /// Times of a new SSRC, with new numbering.
    pub ssrc_changes_ms: Vec<u32>,
    /// Times of new sequence numbers and timestamps under the same SSRC.
    pub restarts_ms: Vec<u32>,
    /// Times of new timestamps only.
    pub stamp_resets_ms: Vec<u32>,
    /// A packet with a foreign SSRC at this interval.
    pub stray_every_ms: Option<u32>,
    /// How much slower the talker's clock is, in parts per million.
    pub skew_ppm: i32,
}

impl Default for Talker {
    fn default() -> Self {
        Talker {
            codec: Codec::Pcmu,
            codec_switch: None,
            ptime_ms: 20,
            ptime_switch: None,
            payload_ms: None,
            ssrc: 0x1111,
            first_sequence: 1_000,
            first_timestamp: 5_000,
            pace: Pace::Steady,
            clump: None,
            start_ms: 0,
            stop_ms: None,
            packets_max: None,
            flush: 0,
            silence: None,
            digits: None,
            ssrc_changes_ms: Vec::new(),
            restarts_ms: Vec::new(),
            stamp_resets_ms: Vec::new(),
            stray_every_ms: None,
            skew_ppm: 0,
        }
    }
}

/// An audio codec of the talker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// G.722: an RTP clock of 8,000 Hz for 16,000 samples (RFC 3551 §4.5.2).
    G722,
    /// Opus, with a clock of 48,000 Hz (RFC 7587).
    Opus,
    /// G.711 A-law.
    Pcma,
    /// G.711 µ-law.
    Pcmu,
}

impl Codec {
    /// The payload type: static where RFC 3551 has one.
    pub const fn payload_type(self) -> u8 {
        match self {
            Codec::G722 => 9,
            Codec::Opus => 111,
            Codec::Pcma => 8,
            Codec::Pcmu => 0,
        }
    }

    /// The RTP clock.
    pub const fn clock(self) -> ClockRate {
        match self {
            Codec::G722 | Codec::Pcma | Codec::Pcmu => ClockRate::HZ_8000,
            Codec::Opus => OPUS_CLOCK,
        }
    }

    /// The encoding name of `a=rtpmap`.
    pub const fn name(self) -> &'static str {
        match self {
            Codec::G722 => "G722",
            Codec::Opus => "opus",
            Codec::Pcma => "PCMA",
            Codec::Pcmu => "PCMU",
        }
    }

    /// Payload bytes per millisecond; `None` when they vary.
    pub const fn bytes_per_ms(self) -> Option<u32> {
        match self {
            Codec::G722 | Codec::Pcma | Codec::Pcmu => Some(8),
            Codec::Opus => None,
        }
    }
}

/// RFC 7587 §4.1.
const OPUS_CLOCK: ClockRate = match ClockRate::new(48_000) {
    Some(clock) => clock,
    None => ClockRate::HZ_8000,
};

/// When packets leave the talker.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// Gaps of exponential length around a mean, in milliseconds.
    Exponential(f64),
    /// Gaps of these lengths in turn, in milliseconds.
    Pattern(Vec<f64>),
    /// One packet per packet duration, on a clock that does not drift.
    Steady,
    /// Steady, but on the ticks of a timer with this period in milliseconds.
    Timer(f64),
    /// Random gaps from this range, in milliseconds.
    Uniform(f64, f64),
}

/// Silence suppression: alternating talk and pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Length of a talk spurt.
    pub talk_ms: u32,
    /// Length of the pause after it.
    pub pause_ms: u32,
    /// The form of the pause on the wire.
    pub mode: SilenceMode,
}

/// The form of a silence suppression pause on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilenceMode {
    /// One comfort noise packet (RFC 3389) begins it; a marker ends it.
    ComfortNoise,
    /// It is not announced, and the timestamps do not advance.
    Frozen,
    /// A marker ends it.
    Marker,
    /// Only the timestamps show it.
    Plain,
}

/// Keypad digits as events (RFC 4733).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits {
    /// Number of digits, spread evenly over the call.
    pub count: u32,
    /// Whether there is no audio between them.
    pub alone: bool,
}

/// The effects of the network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// Losses, each independent of the others.
    pub losses: Vec<Loss>,
    /// A random delay of every packet.
    pub delay: Option<Delay>,
    /// Whether a later packet may overtake an earlier one; otherwise the delay is that of a queue.
    pub reordering: bool,
    /// From this time on, this much additional delay, both in milliseconds; negative means less.
    pub steps: Vec<(u32, i32)>,
    /// Additional delay that rises to this many milliseconds and falls again over the span.
    pub ramp: Option<(Span, u32)>,
    /// Nothing is delivered within these spans; all of it is delivered at their end.
    pub stalls: Vec<Span>,
    /// Random stalls.
    pub random_stalls: Option<Stalls>,
    /// Packets are delivered only at multiples of this many milliseconds.
    pub delivery_every_ms: Option<u32>,
    /// Percentage of packets that swap places with the next one.
    pub swap_pct: f64,
    /// Every n-th packet is late by this many milliseconds.
    pub overtaken: Option<(u32, u32)>,
    /// Percentage of packets that arrive twice.
    pub duplicate_pct: f64,
    /// Random variation of every arrival, up to this many microseconds.
    pub noise_us: Option<u32>,
}

/// A loss model.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// In bursts of this mean length, with this total percentage (Gilbert).
    Bursts {
        /// Percentage of all packets.
        pct: f64,
        /// Mean number of packets lost together.
        mean_len: f64,
    },
    /// Every n-th packet.
    Every(u32),
    /// Every packet sent within the span.
    Hole(Span),
    /// The packets with these indexes, starting at 0.
    Numbers(Vec<u32>),
    /// Each packet independently with this percentage.
    Random(f64),
    /// Every other packet from a given time on, for a given number of losses.
    Spell(Holes),
}

/// A period in which every other packet is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holes {
    /// Time of its first packet.
    pub from_ms: u32,
    /// Number of lost packets.
    pub lost: u32,
}

/// Distribution of a random delay, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Delay {
    /// Normal with mean and deviation, never below 0.
    Normal(f64, f64),
    /// Pareto: a minimum delay, and a shape above 1 for the weight of the tail; at most 2 s.
    Pareto(f64, f64),
    /// Uniform between two values.
    Uniform(f64, f64),
}

/// Random stalls: the network delivers nothing, then everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalls {
    /// Mean distance of two stalls; actual distances are between half and one and a half of it.
    pub every_ms: u32,
    /// Length of each.
    pub len_ms: u32,
}
