//! The work of a tick: selects the next packet, conceals a missing one, and adjusts the delay.
//!
//! When no packet arrives in time, the playout conceals and *holds* its position: a packet that is only late is still
//! played afterwards, and the delay has grown by its lateness. When the next packet shows that one was lost, the time
//! already concealed counts as that packet. A delay that is longer than needed is shortened period by period.

use crate::codec::Codec;
use crate::playout::machine::{Peek, Playout, Pulled, Quiet};
use crate::playout::slots::{Content, PLACES};
use crate::playout::timing::TICK_US;
use crate::playout::voice::samples;
use crate::time::Micros;

/// The result of one step of filling a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Concealed,
    /// There is no audio until a packet has waited for its time.
    Ended,
    Played,
}

impl Playout {
    /// The rate of the next frame in Hz.
    pub fn rate_hz(&self) -> u32 {
        if self.voice.filled() > 0 {
            return self.voice.rate_hz();
        }
        match self.slots.first(self.state.next).map(|slot| slot.content) {
            Some(Content::Audio(lane)) => self.voice.rate_of(lane),
            _ => self.voice.rate_hz(),
        }
    }

    /// The samples of the next frame: 20 ms.
    pub fn frame_samples(&self) -> usize {
        samples(TICK_US, self.rate_hz())
    }

    /// The level of the frame of the tick at `now`, without decoding it.
    pub fn peek(&self, now: Micros) -> Peek {
        let filled = self.voice.filled();
        let left = if filled > 0 { self.voice.filled_power() } else { 0 };
        if filled >= self.frame_samples() {
            return Peek::Level(left);
        }
        let slot = self.slots.first(self.state.next);
        let is_due = |media_us: i64| self.state.is_playing || self.is_due(now, media_us);
        match slot.map(|slot| (slot.content, slot)) {
            Some((Content::Audio(lane), slot)) if is_due(slot.media_us) => self
                .voice
                .power(lane, &slot.payload)
                .map_or(Peek::Unknown, |power| Peek::Level(power.max(left))),
            _ if filled > 0 => Peek::Level(left),
            // A missing packet of a party that was heard is concealed.
            None if self.state.is_playing && self.state.was_heard && self.state.quiet == Quiet::No => {
                Peek::Unknown
            }
            _ => Peek::Nothing,
        }
    }

    /// Writes the frame of the tick at `now` into the first [`frame_samples`](Playout::frame_samples) of
    /// `pcm`.
    pub fn pull(&mut self, now: Micros, pcm: &mut [i16]) -> Pulled {
        let want = self.frame_samples();
        let pulled = self.advance(now, want, true);
        let pcm = pcm.get_mut(..want).unwrap_or_default();
        if pulled == Pulled::Noise {
            self.noise.fill(pcm);
        } else {
            self.voice.pop(pcm);
        }
        pulled
    }

    /// Skips the frame of the tick at `now` without decoding it.
    pub fn skip(&mut self, now: Micros) -> Pulled {
        let want = self.frame_samples();
        let pulled = self.advance(now, want, false);
        self.voice.drop_first(want);
        pulled
    }

    fn advance(&mut self, now: Micros, want: usize, is_heard: bool) -> Pulled {
        self.voice.set_rate(self.rate_hz());
        self.bound(now);
        if !self.state.is_playing && !self.start(now) {
            self.figures.delay_us = 0;
            return if self.state.quiet == Quiet::Noise { Pulled::Noise } else { Pulled::Nothing };
        }
        if is_heard {
            self.adapt(now, want);
        }
        self.state.was_heard = is_heard;
        let mut pulled = if self.voice.filled() > 0 { Pulled::Voice } else { Pulled::Nothing };
        for _ in 0..=PLACES {
            let need = want.saturating_sub(self.voice.filled());
            if need == 0 {
                break;
            }
            match self.step(need, is_heard) {
                Step::Concealed => pulled = Pulled::Concealed,
                Step::Played if pulled == Pulled::Nothing => pulled = Pulled::Voice,
                Step::Played => {}
                Step::Ended => {
                    self.state.is_playing = false;
                    break;
                }
            }
        }
        // A packet in order whose timestamp jumped back exceeds the limit until the next tick drops what is too old.
        self.figures.delay_us = self.delay_us(now).min(DELAY_MAX_US);
        pulled
    }

    /// The delay of the next samples: their wait compared with a packet without lateness.
    fn delay_us(&self, now: Micros) -> i64 {
        now.0 - self.timing.base_us() - (self.state.cursor_us - self.voice.filled_us())
    }

    fn is_due(&self, now: Micros, media_us: i64) -> bool {
        now.0 - self.timing.base_us() - media_us >= self.timing.target_us()
    }

    /// Starts with the first waiting packet, if its time has come.
    fn start(&mut self, now: Micros) -> bool {
        while let Some(slot) = self.slots.first(self.state.next) {
            let (sequence, media_us) = (slot.sequence, slot.media_us);
            if slot.content == Content::Noise {
                self.noise.set_level(&slot.payload);
                self.state.quiet = Quiet::Noise;
                self.state.next = sequence + 1;
                self.slots.played(sequence);
                continue;
            }
            if !self.is_due(now, media_us) {
                return false;
            }
            let state = &mut self.state;
            (state.is_playing, state.next, state.cursor_us) = (true, sequence, media_us);
            (state.held_us, state.quiet) = (0, Quiet::No);
            (state.least_excess_us, state.ticks) = (i64::MAX, 0);
            return true;
        }
        false
    }

    /// Drops packets that waited too long, because too many arrived together or the ticks stopped.
    fn bound(&mut self, now: Micros) {
        let first_us = self.slots.first(self.state.next).map(|slot| slot.media_us);
        let oldest_us = match first_us {
            _ if self.state.is_playing => self.state.cursor_us - self.voice.filled_us(),
            Some(media_us) => media_us,
            None => return,
        };
        let now_us = now.0 - self.timing.base_us();
        if now_us - oldest_us <= DELAY_MAX_US {
            return;
        }
        while let Some(slot) = self.slots.first(self.state.next) {
            if now_us - slot.media_us <= self.timing.target_us() + TICK_US {
                break;
            }
            let sequence = slot.sequence;
            self.slots.played(sequence);
            self.state.next = sequence + 1;
            self.figures.early += 1;
        }
        match self.slots.first(self.state.next) {
            Some(slot) => self.state.cursor_us = slot.media_us,
            None => self.state.is_playing = false,
        }
        self.state.held_us = 0;
    }

    /// Lengthens immediately when packets are needed before they are certain to have arrived; shortens slowly when the
    /// delay is longer than needed.
    fn adapt(&mut self, now: Micros, want: usize) {
        let filled_us = self.voice.filled_us();
        if self.voice.filled() >= want {
            return;
        }
        let excess_us = self.delay_us(now) - self.timing.target_us();
        let duration_us = self.slots.first(self.state.next).map_or(TICK_US, |slot| slot.duration_us.max(1));
        // Media time of the packets needed for this frame, after the first one.
        let later_us = (TICK_US - filled_us - 1) / duration_us * duration_us;
        let needed_us = now.0 - self.timing.base_us() - self.state.cursor_us - later_us;
        let state = &mut self.state;
        state.least_excess_us = state.least_excess_us.min(excess_us);
        state.ticks += 1;
        if needed_us < self.timing.lateness_target_us() - SLACK_US {
            self.fill(want);
            let more = self.voice.lengthen();
            self.figures.stretched_us += self.us(more);
        } else if self.state.ticks < ADAPT_TICKS {
            return;
        } else if self.state.least_excess_us > TICK_US + SLACK_US {
            self.fill(want + samples(AHEAD_US, self.voice.rate_hz()));
            let less = self.voice.shorten(want);
            self.figures.shortened_us += self.us(less);
        }
        (self.state.least_excess_us, self.state.ticks) = (i64::MAX, 0);
    }

    /// Decodes packets that are there and in order, until `wanted` samples are ready.
    fn fill(&mut self, wanted: usize) {
        while self.voice.filled() < wanted {
            let Some(slot) = self.slots.first(self.state.next) else { return };
            let is_next =
                slot.sequence == self.state.next && slot.media_us - self.state.cursor_us <= TOLERANCE_US;
            if !is_next || self.step(1, true) != Step::Played {
                return;
            }
        }
    }

    /// Adds to the frame, which needs `need` more samples.
    fn step(&mut self, need: usize, is_heard: bool) -> Step {
        let need_us = self.us(need).max(1);
        let state = &mut self.state;
        let Some(slot) = self.slots.first(state.next) else { return self.hold(need_us, is_heard) };
        let Content::Audio(lane) = slot.content else { return Step::Ended };
        if self.voice.rate_of(lane) != self.voice.rate_hz() {
            return Step::Ended;
        }
        let lost = slot.sequence - state.next;
        let covered_us = (slot.media_us - state.cursor_us).clamp(0, state.held_us);
        state.cursor_us += covered_us;
        state.held_us -= covered_us;
        if lost == 0 {
            // No packet was lost: the party paused, or was late.
            self.figures.concealed_us -= covered_us;
        }
        let gap_us = slot.media_us - state.cursor_us;
        if gap_us > TOLERANCE_US {
            if lost == 0 || gap_us > LOSS_MAX_US || state.quiet == Quiet::Event {
                return Step::Ended;
            }
            return self.bridge(gap_us, need_us, is_heard);
        }
        let (sequence, duration_us) = (slot.sequence, slot.duration_us);
        let before = self.slots.kept(sequence - 1).filter(|slot| slot.content == Content::Audio(lane));
        let is_read = if is_heard {
            self.voice.play(lane, &slot.payload, before.map(|slot| slot.payload.as_slice()))
        } else {
            self.voice.pass_over(lane, &slot.payload, duration_us);
            true
        };
        let media_us = slot.media_us;
        self.slots.played(sequence);
        let state = &mut self.state;
        (state.next, state.cursor_us, state.held_us) = (sequence + 1, media_us + duration_us, 0);
        if is_read {
            return Step::Played;
        }
        self.figures.damaged += 1;
        self.conceal(duration_us, None, is_heard);
        Step::Concealed
    }

    /// Conceals a missing packet without advancing, so that a late packet can still be played.
    fn hold(&mut self, need_us: i64, is_heard: bool) -> Step {
        if self.state.quiet == Quiet::Event || self.state.held_us >= HOLD_MAX_US {
            return Step::Ended;
        }
        self.conceal(need_us, None, is_heard);
        self.state.held_us += need_us;
        Step::Concealed
    }

    /// Conceals lost packets before the first waiting one, from the copy in that packet when it directly
    /// follows.
    fn bridge(&mut self, gap_us: i64, need_us: i64, is_heard: bool) -> Step {
        let next = self.slots.first(self.state.next);
        let is_opus = |lane: usize| self.voice.codec(lane) == Some(Codec::Opus);
        let copy_us = match next.map(|slot| (slot.content, slot.duration_us)) {
            Some((Content::Audio(lane), duration_us)) if is_opus(lane) => duration_us,
            _ => 0,
        };
        let (bridged_us, is_copied) = match gap_us - copy_us {
            rest_us if copy_us > 0 && rest_us.abs() <= TOLERANCE_US => (gap_us, true),
            rest_us if copy_us > 0 && rest_us > 0 => (rest_us.min(need_us), false),
            _ => (gap_us.min(need_us), false),
        };
        self.conceal(bridged_us, is_copied.then_some(self.state.next), is_heard);
        self.state.cursor_us += bridged_us;
        Step::Concealed
    }

    /// Adds concealment for `duration_us`, from the copy in the first packet at or after `copy`, if given.
    fn conceal(&mut self, duration_us: i64, copy: Option<i64>, is_heard: bool) {
        if !is_heard {
            return self.voice.silence(samples(duration_us, self.voice.rate_hz()).max(1));
        }
        let next = copy.and_then(|sequence| self.slots.first(sequence)).map(|slot| slot.payload.as_slice());
        let before = self.voice.filled();
        self.voice.conceal(duration_us, next);
        if self.voice.filled() == before {
            self.voice.silence(1);
        }
        self.figures.concealed_us += duration_us;
    }

    fn us(&self, samples: usize) -> i64 {
        samples as i64 * 1_000_000 / i64::from(self.voice.rate_hz().max(1))
    }
}

/// The longest delay.
const DELAY_MAX_US: i64 = 240_000;
/// For this time a missing packet is treated as late.
const HOLD_MAX_US: i64 = 100_000;
/// A longer loss is not concealed: the playout restarts after it.
const LOSS_MAX_US: i64 = 200_000;
/// Tolerated error of timestamps.
const TOLERANCE_US: i64 = 1_000;
/// Tolerated error of the delay, besides rounding to a tick.
const SLACK_US: i64 = 3_000;
/// Ticks between two shortenings: 200 ms.
const ADAPT_TICKS: u32 = 10;
/// Audio decoded ahead in order to shorten it.
const AHEAD_US: i64 = 13_000;
