//! The sending side: media time, numbering, silence, digits, and sending times.

use super::packet::{COMFORT_NOISE, Content, Packet, TELEPHONE_EVENT};
use super::random::Random;
use super::scenario::{Codec, Digits, Pace, Scenario, Silence, SilenceMode, Span, Talker};
use super::tone::payload_len;
use crate::time::Micros;

/// Produces packets in sending order; `at` is the sending time.
#[derive(Debug)]
pub(super) struct Sender {
    talker: Talker,
    hold: Option<Span>,
    duration_us: i64,
    schedule: Schedule,
    random: Random,
    /// Media produced so far; the timestamps count it.
    media_us: i64,
    frame: u32,
    sent: u32,
    ssrc: u32,
    sequence: u16,
    /// Timestamp of media time 0.
    stamp_base: u32,
    /// Time by which the timestamps did not advance.
    frozen_us: i64,
    marker: bool,
    /// Number of events of each list that have happened.
    happened: [usize; 3],
    in_pause: bool,
    digit: Option<Digit>,
    digits_begun: u32,
    strays: u32,
    /// A frame that waits until the stray packets before it are sent.
    next_frame: Option<Packet>,
}

#[derive(Clone, Copy, Debug)]
struct Digit {
    number: u8,
    stamp: u32,
    began_us: i64,
    packets: u32,
}

impl Sender {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let talker = scenario.talker.clone();
        Sender {
            hold: scenario.call.hold,
            duration_us: us(scenario.duration_ms),
            schedule: Schedule::new(&talker, scenario.seed),
            random: Random::for_purpose(scenario.seed, "numbering"),
            media_us: us(talker.start_ms),
            frame: 0,
            sent: 0,
            ssrc: talker.ssrc,
            sequence: talker.first_sequence,
            stamp_base: talker.first_timestamp.wrapping_sub(ticks(talker.codec, us(talker.start_ms))),
            frozen_us: 0,
            marker: true,
            happened: [0; 3],
            in_pause: false,
            digit: None,
            digits_begun: 0,
            strays: 0,
            next_frame: None,
            talker,
        }
    }

    /// The next packet; `None` when the talker sends no more.
    pub(super) fn next(&mut self) -> Option<Packet> {
        if self.next_frame.is_none() {
            self.next_frame = self.produce();
        }
        let frame = self.next_frame?;
        if let Some(every_ms) = self.talker.stray_every_ms {
            let due = Micros(us(every_ms).max(1_000) * (i64::from(self.strays) + 1));
            if due < frame.at {
                self.strays += 1;
                let (sequence, timestamp) = (self.random.bits() as u16, self.random.bits() as u32);
                let ssrc = !self.talker.ssrc;
                return Some(Packet { at: due, sequence, timestamp, ssrc, marker: false, ..frame });
            }
        }
        self.next_frame = None;
        Some(frame)
    }

    /// Advances media time until a frame makes a packet.
    fn produce(&mut self) -> Option<Packet> {
        // Each iteration advances media time by at least a millisecond, and the call has an end.
        loop {
            let at = self.schedule.leave(self.frame, self.media_us, self.ptime_us());
            let over = self.talker.stop_ms.is_some_and(|stop| self.media_us >= us(stop))
                || self.talker.packets_max.is_some_and(|max| self.sent >= max);
            if over || self.media_us >= self.duration_us || at.0 >= self.duration_us {
                return None;
            }
            self.renumber();
            let content = self.content();
            let packet = content.map(|(content, stamp)| self.packet(at, content, stamp));
            self.frame += 1;
            self.media_us += self.ptime_us();
            if packet.is_some() {
                self.sent += 1;
                return packet;
            }
        }
    }

    fn packet(&mut self, at: Micros, content: Content, timestamp: u32) -> Packet {
        let codec = self.codec();
        let (payload_type, len) = match content {
            Content::Audio { .. } => {
                let ms = self.talker.payload_ms.unwrap_or((self.ptime_us() / 1_000) as u32);
                (codec.payload_type(), payload_len(codec, ms))
            }
            Content::ComfortNoise => (COMFORT_NOISE, 1),
            Content::Event { .. } => (TELEPHONE_EVENT, 4),
        };
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        let marker = std::mem::take(&mut self.marker) && !matches!(content, Content::ComfortNoise);
        Packet { at, sequence, timestamp, ssrc: self.ssrc, payload_type, marker, payload_len: len, content }
    }

    /// The content of this frame of media time, with its timestamp.
    fn content(&mut self) -> Option<(Content, u32)> {
        let stamp = self.stamp_base.wrapping_add(ticks(self.codec(), self.media_us - self.frozen_us));
        if self.hold.is_some_and(|hold| (us(hold.from_ms)..us(hold.to_ms)).contains(&self.media_us)) {
            self.frozen_us += self.ptime_us();
            return None;
        }
        if let Some(digits) = self.talker.digits {
            if let Some(event) = self.digit_content(digits, stamp) {
                return Some(event);
            }
            if digits.alone {
                return None;
            }
        }
        if let Some(silence) = self.talker.silence
            && self.is_pause(silence)
        {
            let begins = !std::mem::replace(&mut self.in_pause, true);
            self.marker = matches!(silence.mode, SilenceMode::ComfortNoise | SilenceMode::Marker);
            if silence.mode == SilenceMode::Frozen {
                self.frozen_us += self.ptime_us();
            }
            let noise = begins && silence.mode == SilenceMode::ComfortNoise;
            return noise.then_some((Content::ComfortNoise, stamp));
        }
        self.in_pause = false;
        Some((Content::Audio { codec: self.codec(), position: (self.media_us / 125) as u32 }, stamp))
    }

    fn is_pause(&self, silence: Silence) -> bool {
        let period = us(silence.talk_ms) + us(silence.pause_ms);
        period > 0 && self.media_us % period >= us(silence.talk_ms)
    }

    /// A digit of 100 ms: its packets have the same timestamp, and its end is sent three times (RFC 4733
    /// §2.5).
    fn digit_content(&mut self, digits: Digits, stamp: u32) -> Option<(Content, u32)> {
        if self.digit.is_none() {
            let spacing = self.duration_us / (i64::from(digits.count) + 1);
            let due = spacing * (i64::from(self.digits_begun) + 1);
            if self.digits_begun >= digits.count || self.media_us < due {
                return None;
            }
            let number = (self.digits_begun % 12) as u8;
            self.digits_begun += 1;
            self.digit = Some(Digit { number, stamp, began_us: self.media_us, packets: 0 });
            self.marker = true;
        }
        let ptime_us = self.ptime_us();
        let codec = self.codec();
        let digit = self.digit.as_mut()?;
        digit.packets += 1;
        let end = digit.packets > DIGIT_PACKETS - DIGIT_END_PACKETS;
        // The repetitions of the end have the same duration as the first one.
        let counted = i64::from(digit.packets.min(DIGIT_PACKETS - DIGIT_END_PACKETS + 1)) * ptime_us;
        let content = Content::Event { digit: digit.number, end, duration: ticks(codec, counted) as u16 };
        let stamp = digit.stamp;
        debug_assert!(self.media_us >= digit.began_us);
        if digit.packets >= DIGIT_PACKETS {
            self.digit = None;
        }
        Some((content, stamp))
    }

    /// Applies the changes of SSRC and numbering that are due.
    fn renumber(&mut self) {
        let lists = [&self.talker.ssrc_changes_ms, &self.talker.restarts_ms, &self.talker.stamp_resets_ms];
        let mut due = [false; 3];
        for ((list, happened), due) in lists.into_iter().zip(&mut self.happened).zip(&mut due) {
            if list.get(*happened).is_some_and(|at_ms| self.media_us >= us(*at_ms)) {
                *happened += 1;
                *due = true;
            }
        }
        let [ssrc_change, restart, stamp_reset] = due;
        if ssrc_change {
            self.ssrc = self.random.bits() as u32;
        }
        if ssrc_change || restart {
            // Far from the old numbers, so that the step does not count as loss.
            self.sequence = self.sequence.wrapping_add(self.random.integer(10_000, 50_000) as u16);
        }
        if ssrc_change || restart || stamp_reset {
            self.stamp_base = self.stamp_base.wrapping_add(self.random.integer(1 << 28, 3 << 28));
            self.marker = true;
        }
    }

    fn codec(&self) -> Codec {
        match self.talker.codec_switch {
            Some((at_ms, codec)) if self.media_us >= us(at_ms) => codec,
            _ => self.talker.codec,
        }
    }

    fn ptime_us(&self) -> i64 {
        let ms = match self.talker.ptime_switch {
            Some((at_ms, ptime_ms)) if self.media_us >= us(at_ms) => ptime_ms,
            _ => self.talker.ptime_ms,
        };
        us(ms.max(1))
    }
}

/// Determines when frames are sent.
#[derive(Debug)]
struct Schedule {
    pace: Pace,
    clump: Option<(u32, u32)>,
    flush: u32,
    skew_ppm: i32,
    random: Random,
    /// Current time of the paces that sleep between packets.
    clock_us: f64,
    started: bool,
    /// Frame number and time of the end of the current clump.
    clump_end: Option<(u32, i64)>,
    clump_begin: u32,
}

impl Schedule {
    fn new(talker: &Talker, seed: u64) -> Self {
        Schedule {
            pace: talker.pace.clone(),
            clump: talker.clump,
            flush: talker.flush,
            skew_ppm: talker.skew_ppm,
            random: Random::for_purpose(seed, "pace"),
            clock_us: f64::from(talker.start_ms) * 1_000.0,
            started: false,
            clump_end: None,
            clump_begin: 0,
        }
    }

    /// When frame number `frame` is sent; called once per frame, in order.
    fn leave(&mut self, frame: u32, media_us: i64, ptime_us: i64) -> Micros {
        let first = !std::mem::replace(&mut self.started, true);
        let steady = if let Some((least, most)) = self.clump {
            self.leave_in_clump(frame, media_us, ptime_us, least, most)
        } else {
            let sleep_ms = match &self.pace {
                Pace::Steady | Pace::Timer(_) => None,
                Pace::Exponential(mean) => Some(self.random.exponential(*mean)),
                Pace::Uniform(low, high) => Some(self.random.uniform(*low, *high)),
                Pace::Pattern(gaps) => {
                    Some(gaps.get(frame.wrapping_sub(1) as usize % gaps.len().max(1)).copied().unwrap_or(0.0))
                }
            };
            match (sleep_ms, &self.pace) {
                (Some(ms), _) => {
                    if !first {
                        self.clock_us += ms * 1_000.0;
                    }
                    self.clock_us as i64
                }
                (None, Pace::Timer(tick_ms)) => {
                    let tick_us = (tick_ms * 1_000.0).max(1.0);
                    ((media_us as f64 / tick_us).ceil() * tick_us) as i64
                }
                (None, _) => media_us,
            }
        };
        // Packets that a sound card has buffered are sent together with the last of them.
        let flushed = i64::from(self.flush.saturating_sub(frame)) * ptime_us;
        let at = if self.flush > 0 { steady + flushed } else { steady };
        Micros(at + at / 1_000 * i64::from(self.skew_ppm) / 1_000)
    }

    fn leave_in_clump(&mut self, frame: u32, media_us: i64, ptime_us: i64, least: u32, most: u32) -> i64 {
        let (last, end_us) = match self.clump_end {
            Some((last, end_us)) if frame <= last => (last, end_us),
            _ => {
                let len = self.random.integer(least.max(1), most.max(1));
                self.clump_begin = frame;
                (frame + len - 1, media_us + i64::from(len) * ptime_us)
            }
        };
        self.clump_end = Some((last, end_us));
        end_us + i64::from(frame - self.clump_begin) * CLUMP_SPACING_US
    }
}

/// RTP ticks of a duration.
fn ticks(codec: Codec, us: i64) -> u32 {
    (us * i64::from(codec.clock().hz()) / 1_000_000) as u32
}

fn us(ms: u32) -> i64 {
    i64::from(ms) * 1_000
}

/// Time between two packets that are sent together: their transmission time on a slow Ethernet.
const CLUMP_SPACING_US: i64 = 30;
/// Packets of one digit.
const DIGIT_PACKETS: u32 = 8;
/// Packets of a digit with the end bit.
const DIGIT_END_PACKETS: u32 = 3;
