//! The fast path for many in-step packets at once: each follows the one before it with the usual step, and no
//! second of the timeline ends between them.
//!
//! Conditions common to all packets are checked once, and the changing state stays in registers until the
//! last packet. Any other event between two packets, such as the end of a row, ends the run before it.

use crate::rtp::{Packet, PayloadKind};
use crate::stats::Lateness;
use crate::stats::players::Kept;
use crate::stats::playout::{Playout, PlayoutTotals, TRANSIT_MAX_US};
use crate::stats::timing::{Clump, JITTER_LEAD, PACE_WINDOW_US, PAUSE_US, Timing};
use crate::time::Micros;

/// The expected audio packet after the last one, in step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Next {
    /// Arrival of the last packet.
    pub(crate) after: Micros,
    pub(crate) timestamp: u32,
    /// Increment of the timestamps.
    pub(crate) step: u16,
    pub(crate) payload_len: u16,
    pub(crate) sequence: u16,
}

/// Audio packets, each in step with the one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps<'a> {
    pub(crate) first: Next,
    /// Time between each packet and the one before it, in microseconds.
    pub(crate) gaps: &'a [u16],
    /// Sum of the gaps.
    pub(crate) elapsed_us: u32,
}

impl<'a> Steps<'a> {
    /// The steps that remain after `count` of them.
    #[inline]
    pub(crate) fn after(self, count: usize) -> Steps<'a> {
        let Some((taken, gaps)) = self.gaps.split_at_checked(count) else {
            return Steps { gaps: &[], elapsed_us: 0, ..self };
        };
        let Next { after, timestamp, step, sequence, .. } = self.first;
        let taken_us: u32 = taken.iter().map(|gap_us| u32::from(*gap_us)).sum();
        let first = Next {
            after: Micros(after.0.wrapping_add(taken_us.into())),
            timestamp: timestamp.wrapping_add((count as u32).wrapping_mul(step.into())),
            sequence: sequence.wrapping_add(count as u16),
            ..self.first
        };
        Steps { first, gaps, elapsed_us: self.elapsed_us.wrapping_sub(taken_us) }
    }

    /// The first packet and its arrival; `None` when none is left.
    #[inline]
    pub(crate) fn packet(&self) -> Option<(Micros, Packet)> {
        let Next { after, timestamp, payload_len, sequence, .. } = self.first;
        let gap_us = self.gaps.first()?;
        let packet = Packet { timestamp, sequence, payload_len: payload_len.into(), ..Packet::default() };
        Some((Micros(after.0.wrapping_add((*gap_us).into())), packet))
    }
}

/// How many of the first `gaps` have a sum below `most_us`.
#[inline(never)]
fn count_within(gaps: &[u16], most_us: i64) -> usize {
    let (mut elapsed_us, mut count) = (0, 0);
    // Eight at a time, because their sum takes one or two instructions; then one by one until the limit.
    for some in gaps.chunks(8) {
        let some_us: u32 = some.iter().map(|gap_us| u32::from(*gap_us)).sum();
        if elapsed_us + i64::from(some_us) >= most_us {
            break;
        }
        elapsed_us += i64::from(some_us);
        count += some.len();
    }
    let is_within = |gap_us: &&u16| {
        elapsed_us += i64::from(**gap_us);
        elapsed_us < most_us
    };
    count + gaps.get(count..).unwrap_or_default().iter().take_while(is_within).count()
}

/// The limits within which packets are in-step samples.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Limits {
    media_us: u32,
    short_us: u32,
    late_us: u32,
    kept: Kept,
    least_before_us: i32,
}

/// The part of a run that one pass of the loops below may process, and all values on which their results depend
/// besides the gaps. Two streams with equal parts get equal results.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    limits: Limits,
    /// The largest possible number of packets.
    most: usize,
    transit_us: i32,
    least_us: i32,
    jitter_x16: u32,
    high_us: u32,
}

/// The results of the loops over a part.
struct Folded {
    transit: Transit,
    intervals: Intervals,
}

impl Part {
    /// Processes the first of `gaps` that are within the limits, and writes the lateness of each.
    #[inline]
    fn fold(&self, gaps: &[u16], latenesses: &mut [u32; STEPS_MAX]) -> Folded {
        let Part { limits, most, transit_us, least_us, jitter_x16, high_us } = self;
        let gaps = gaps.get(..*most).unwrap_or_default();
        let begin = Transit { transit_us: *transit_us, least_us: *least_us, max_us: 0, taken: 0 };
        let transit = begin.run(gaps, limits, latenesses);
        let gaps = gaps.get(..transit.taken.into()).unwrap_or_default();
        let begin = Intervals { jitter_x16: *jitter_x16, ..Intervals::default() };
        Folded { transit, intervals: begin.run(gaps, limits.media_us, *high_us) }
    }
}

/// Transit at the start or the end of a run of packets.
struct Transit {
    transit_us: i32,
    least_us: i32,
    /// The largest lateness of a packet.
    max_us: u32,
    taken: u16,
}

impl Transit {
    /// Processes the first of `gaps` that are within the limits, and writes the lateness of each.
    ///
    /// Not inlined, like the loops below: together they need more registers than there are.
    #[inline(never)]
    fn run(self, gaps: &[u16], limits: &Limits, latenesses: &mut [u32; STEPS_MAX]) -> Transit {
        let Limits { media_us, short_us, late_us, kept, least_before_us } = *limits;
        let Transit { mut transit_us, mut least_us, mut max_us, .. } = self;
        let is_no_sample = |(gap_us, slot): (&u16, &mut u32)| {
            let gap_us = u32::from(*gap_us);
            let transit_then_us = transit_us.wrapping_add(lag_us(gap_us, media_us));
            let least_then_us = least_us.min(transit_then_us);
            let lateness_us =
                transit_then_us.wrapping_sub(least_then_us.min(least_before_us)).cast_unsigned();
            if gap_us < short_us || !kept.holds(transit_then_us) || lateness_us > late_us {
                return true;
            }
            *slot = lateness_us;
            (transit_us, least_us) = (transit_then_us, least_then_us);
            max_us = max_us.max(lateness_us);
            false
        };
        let taken = gaps.iter().zip(latenesses).position(is_no_sample).unwrap_or(gaps.len().min(STEPS_MAX));
        Transit { transit_us, least_us, max_us, taken: taken as u16 }
    }
}

/// Adds `latenesses` of the least to the eight counts of `recent`, a byte each.
#[inline(never)]
fn count_least(latenesses: &[u32], recent: u64) -> u64 {
    latenesses.iter().fold(recent, |recent, lateness_us| {
        let step = Lateness::step_of_least(*lateness_us) as usize % ONES.len();
        recent.wrapping_add(ONES.get(step).copied().unwrap_or_default())
    })
}

/// The same of any latenesses; those beyond the least are counted in `later`.
#[inline(never)]
fn count_any(latenesses: &[u32], mut recent: u64, later: &mut Lateness) -> u64 {
    for lateness_us in latenesses {
        let step = Lateness::step(*lateness_us);
        match ONES.get(step) {
            Some(one) => recent = recent.wrapping_add(*one),
            None => later.count(step, *lateness_us),
        }
    }
    recent
}

/// Interarrival figures of a run of packets.
#[derive(Default)]
struct Intervals {
    gap_max_us: u32,
    square_sum: u32,
    jitter_x16: u32,
    jitter_sum_us: u32,
    jitter_max_us: u32,
    jitter_high_count: u32,
}

impl Intervals {
    #[inline(never)]
    fn run(self, gaps: &[u16], media_us: u32, high_us: u32) -> Intervals {
        let mut end = self;
        for gap_us in gaps {
            let gap_us = u32::from(*gap_us);
            let scaled = gap_us >> 5;
            end.gap_max_us = end.gap_max_us.max(gap_us);
            end.square_sum += scaled * scaled;
            let deviation_us = lag_us(gap_us, media_us).unsigned_abs();
            end.jitter_x16 = end.jitter_x16 + deviation_us - ((end.jitter_x16 + 8) >> 4);
            let jitter_us = end.jitter_x16 >> 4;
            end.jitter_sum_us += jitter_us;
            end.jitter_max_us = end.jitter_max_us.max(jitter_us);
            end.jitter_high_count += u32::from(jitter_us >= high_us);
        }
        end
    }
}

/// How much the transit grew from one packet to the next: arrival gap minus media time.
#[inline]
fn lag_us(gap_us: u32, media_us: u32) -> i32 {
    gap_us.wrapping_sub(media_us).cast_signed()
}

impl Timing {
    /// The expected packet after the last one; `None` when the last one was not audio.
    pub(crate) fn next(&self) -> Option<Next> {
        let step = u16::try_from(self.step).ok().filter(|step| *step > 0)?;
        let payload_len = u16::try_from(self.payload_len).ok().filter(|len| *len > 0)?;
        (self.kind == Some(PayloadKind::Audio)).then_some(Next {
            after: self.at,
            timestamp: self.timestamp.wrapping_add(step.into()),
            step,
            payload_len,
            sequence: self.sequence.wrapping_add(1),
        })
    }

    /// Processes the first of `steps` that are in-step samples, and returns their number; the row ends in
    /// `row_us`. The result equals that of [`Timing::arrive`] for each packet, to the bit.
    #[inline]
    pub(crate) fn arrive_in_steps(&mut self, steps: &Steps<'_>, row_us: i64) -> u16 {
        let Some(part) = self.part(steps, row_us) else { return 0 };
        let mut latenesses = [0; STEPS_MAX];
        let folded = part.fold(steps.gaps, &mut latenesses);
        self.apply(&part, &folded, &latenesses);
        folded.transit.taken
    }

    /// Processes the first of `steps` for two streams in one pass, like [`Timing::arrive_in_steps`] for each of them;
    /// `None`, and no change, when the results of the two would differ.
    pub(crate) fn arrive_in_both(
        &mut self,
        other: &mut Timing,
        steps: &Steps<'_>,
        row_us: i64,
    ) -> Option<u16> {
        let (part, others) = (self.part(steps, row_us), other.part(steps, row_us));
        if part != others {
            return None;
        }
        let Some(part) = part else { return Some(0) };
        let mut latenesses = [0; STEPS_MAX];
        let folded = part.fold(steps.gaps, &mut latenesses);
        self.apply(&part, &folded, &latenesses);
        other.apply(&part, &folded, &latenesses);
        Some(folded.transit.taken)
    }

    /// Applies the results of the loops over a part of a run.
    #[inline]
    fn apply(&mut self, part: &Part, folded: &Folded, latenesses: &[u32; STEPS_MAX]) {
        let Folded { transit, intervals } = folded;
        let (taken, media_us) = (transit.taken, part.limits.media_us);
        let count = u32::from(taken);
        let grown_us = transit.transit_us.wrapping_sub(part.transit_us);
        let elapsed_us = (count * media_us).wrapping_add_signed(grown_us);
        self.apply_transit(transit, latenesses.get(..taken.into()).unwrap_or_default());
        self.at = Micros(self.at.0.wrapping_add(elapsed_us.into()));
        self.timestamp = self.timestamp.wrapping_add(self.step.cast_unsigned().wrapping_mul(count));
        self.sequence = self.sequence.wrapping_add(taken);
        self.pairs = self.pairs.wrapping_add(count);
        // The window sums do not reach their limit, and the other sums overflow 32 bits at most once.
        self.window_gap_us = self.window_gap_us.wrapping_add_unsigned(elapsed_us);
        self.window_media_us = self.window_media_us.wrapping_add_unsigned(count * media_us);
        self.playout.bucket_us = self.playout.bucket_us.wrapping_add_unsigned(elapsed_us);
        self.apply_intervals(intervals);
        self.add_clumps(elapsed_us, intervals.square_sum);
        self.sample_count = self.sample_count.wrapping_add(count);
    }

    #[inline]
    fn apply_transit(&mut self, end: &Transit, latenesses: &[u32]) {
        let Some(last_us) = latenesses.last() else { return };
        let playout = &mut self.playout;
        playout.transit_us = end.transit_us;
        playout.least_us = end.least_us;
        playout.late_before_us = *last_us;
        playout.late_in_a_row = 0;
        playout.count_all(latenesses, end.max_us, &mut self.apart.playout);
    }

    /// Applies all figures that do not depend on transit.
    #[inline]
    fn apply_intervals(&mut self, end: &Intervals) {
        self.row_gap_us = self.row_gap_us.max(end.gap_max_us);
        self.jitter_x16 = end.jitter_x16;
        self.row_jitter_us = self.row_jitter_us.max(end.jitter_max_us);
        self.add_jitter(end.jitter_sum_us);
        if end.jitter_high_count > 0 {
            let apart = &mut *self.apart;
            apart.jitter_high_count = apart.jitter_high_count.wrapping_add(end.jitter_high_count);
        }
    }

    /// The part of `steps` that are in-step samples; `None` when there is none.
    #[inline(always)]
    fn part(&self, steps: &Steps<'_>, row_us: i64) -> Option<Part> {
        let playout = &self.playout;
        let media_us = self.ptime_us();
        let is_in_talk = (self.clump == Clump::Before)
            & !playout.rebased
            & !playout.kept.is_empty()
            & (self.sample_count >= JITTER_LEAD);
        let is_in_step = (self.next() == Some(steps.first))
            & (media_us <= PAUSE_US)
            & (playout.transit_us.unsigned_abs() < TRANSIT_NEAR_US);
        let window_us = i64::from(PACE_WINDOW_US) - i64::from(self.window_gap_us);
        // A row, a window and a bucket end after a fixed time.
        let elapsed_us = row_us.min(window_us).min(playout.bucket_left_us());
        if !(is_in_talk & is_in_step) || elapsed_us <= 0 {
            return None;
        }
        // A window also ends by media time.
        let window_media_us = i64::from(PACE_WINDOW_US) - 1 - i64::from(self.window_media_us);
        let mut most = steps.gaps.len();
        if i64::from(steps.elapsed_us) >= elapsed_us {
            most = count_within(steps.gaps, elapsed_us);
        }
        if media_us * most as i64 > window_media_us {
            most = usize::try_from(window_media_us.checked_div(media_us)?).ok()?;
        }
        let limits = Limits {
            media_us: u32::try_from(media_us).ok()?,
            short_us: self.short_us,
            late_us: playout.late_limit_us,
            kept: playout.kept,
            least_before_us: playout.least_before_us,
        };
        Some(Part {
            limits,
            most,
            transit_us: playout.transit_us,
            least_us: playout.least_us,
            jitter_x16: self.jitter_x16,
            high_us: self.high_us,
        })
    }
}

impl Playout {
    /// Counts how late packets are, `max_us` at most, as [`Playout::fold`] counts each.
    #[inline]
    fn count_all(&mut self, latenesses: &[u32], max_us: u32, totals: &mut PlayoutTotals) {
        let recent = u64::from_le_bytes(self.recent);
        self.row_max_us = self.row_max_us.max(max_us);
        if !has_room(recent) {
            latenesses.iter().for_each(|lateness_us| self.count(*lateness_us, totals));
        } else if max_us <= Lateness::LEAST_US_MAX {
            self.recent = count_least(latenesses, recent).to_le_bytes();
        } else {
            self.recent = count_any(latenesses, recent, &mut totals.lateness).to_le_bytes();
        }
    }
}

/// Whether [`STEPS_MAX`] more cannot bring any byte to 255: no byte has both of its upper two bits set.
#[inline]
fn has_room(recent: u64) -> bool {
    recent & (recent << 1) & HIGHEST == 0
}

/// One packet in each of the first eight steps, one byte each.
const ONES: [u64; 8] = [1, 1 << 8, 1 << 16, 1 << 24, 1 << 32, 1 << 40, 1 << 48, 1 << 56];
/// The largest run, see [`has_room`]: more than a second of most streams. Each run loads the stream's state
/// from memory, which with thousands of legs costs as much as processing all its packets.
pub(crate) const STEPS_MAX: usize = 63;
/// The highest bit of each byte.
const HIGHEST: u64 = 0x8080_8080_8080_8080;
/// From a transit below this, [`STEPS_MAX`] packets of a second each cannot reach the value at which the
/// origin moves.
const TRANSIT_NEAR_US: u32 = TRANSIT_MAX_US / 2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::{Stream, StreamConfig};
    use crate::time::ClockRate;

    /// Packets of one stream, by the difference of each from the expected one: (gap in microseconds, skipped
    /// numbers).
    fn talk(stream: &mut Stream, packets: &[(u32, u8)]) {
        talk_after(stream, packets, 0);
    }

    /// The same without the first packets.
    fn talk_after(stream: &mut Stream, packets: &[(u32, u8)], unheard: usize) {
        let (mut at, mut number) = (Micros(0), 65_000_u32);
        for (index, (gap_us, skipped)) in packets.iter().enumerate() {
            at = at + i64::from(*gap_us);
            number += 1 + u32::from(*skipped);
            let packet = Packet {
                timestamp: number.wrapping_mul(160),
                sequence: number as u16,
                payload_len: 160,
                ..Packet::default()
            };
            if index >= unheard {
                stream.push(at, &packet, PayloadKind::Audio);
            }
        }
    }

    fn gaps() -> impl Strategy<Value = Vec<u16>> {
        let steady = prop_oneof![8 => 19_000..21_000_u16, 1 => any::<u16>()];
        prop_oneof![
            3 => prop::collection::vec(steady, 0..=STEPS_MAX),
            1 => prop::collection::vec(15_000..30_000_u16, 0..=STEPS_MAX),
            1 => prop::collection::vec(any::<u16>(), 0..=STEPS_MAX),
        ]
    }

    proptest! {
        /// Equal to the last bit, in any state of the stream.
        #[test]
        fn many_at_once_are_one_after_the_other(
            late_ms in 0_i64..200,
            before in prop::collection::vec(
                (
                    prop_oneof![20 => 18_000..22_000_u32, 2 => 0..120_000_u32, 1 => 0..3_000_000_u32],
                    prop_oneof![40 => Just(0), 1 => 0..4_u8],
                ),
                1..400,
            ),
            runs in prop::collection::vec(gaps(), 1..20),
        ) {
            let thresholds = crate::verdict::Thresholds {
                late_ms: crate::stats::Hundredths::from_integer(late_ms),
                ..Default::default()
            };
            let mut stream = Stream::new(&StreamConfig::new(ClockRate::HZ_8000, 20, &thresholds));
            talk(&mut stream, &before);
            let mut plain = stream.clone();
            for gaps in &runs {
                let Some(first) = stream.next() else { break };
                let mut steps = Steps { first, gaps, elapsed_us: gaps.iter().map(|gap_us| u32::from(*gap_us)).sum() };
                stream.push_steps(steps);
                while let Some((at, packet)) = steps.packet() {
                    plain.push(at, &packet, PayloadKind::Audio);
                    steps = steps.after(1);
                }
                prop_assert_eq!(format!("{stream:?}"), format!("{plain:?}"));
            }
        }

        /// Two streams with different beginnings and thresholds get the same results together as each by itself.
        #[test]
        fn two_streams_at_once_are_one_after_the_other(
            late_ms in prop_oneof![2 => Just((60_i64, 60_i64)), 1 => (0_i64..200, 0_i64..200)],
            unheard in prop_oneof![2 => Just(0), 1 => 0..60_usize],
            before in prop::collection::vec(
                (
                    prop_oneof![40 => 19_000..21_000_u32, 1 => 0..120_000_u32],
                    prop_oneof![60 => Just(0), 1 => 0..4_u8],
                ),
                61..400,
            ),
            runs in prop::collection::vec(gaps(), 1..20),
        ) {
            let begin = |late_ms| {
                let late_ms = crate::stats::Hundredths::from_integer(late_ms);
                let thresholds = crate::verdict::Thresholds { late_ms, ..Default::default() };
                Stream::new(&StreamConfig::new(ClockRate::HZ_8000, 20, &thresholds))
            };
            let (mut one, mut other) = (begin(late_ms.0), begin(late_ms.1));
            talk(&mut one, &before);
            talk_after(&mut other, &before, unheard);
            let (mut plain_one, mut plain_other) = (one.clone(), other.clone());
            for gaps in &runs {
                let Some(first) = one.next().filter(|next| other.next() == Some(*next)) else { break };
                let elapsed_us = gaps.iter().map(|gap_us| u32::from(*gap_us)).sum();
                let steps = Steps { first, gaps, elapsed_us };
                one.push_steps_into_both(&mut other, steps);
                plain_one.push_steps(steps);
                plain_other.push_steps(steps);
                prop_assert_eq!(format!("{one:?}"), format!("{plain_one:?}"));
                prop_assert_eq!(format!("{other:?}"), format!("{plain_other:?}"));
            }
        }
    }

    #[test]
    fn equal_streams_are_folded_together() {
        let config = StreamConfig::new(ClockRate::HZ_8000, 20, &crate::verdict::Thresholds::default());
        let mut one = Stream::new(&config);
        talk(&mut one, &[(20_000, 0); 40]);
        let mut other = one.clone();
        let steps = Steps { first: one.next().unwrap(), gaps: &[20_000; 4], elapsed_us: 80_000 };
        let at = Micros(steps.first.after.0 + 20_000);
        assert_eq!(one.fold_steps_of_both(&mut other, at, &steps), Some(4));
        other.begin_segment();
        let steps = Steps { first: one.next().unwrap(), ..steps };
        assert_eq!(one.fold_steps_of_both(&mut other, Micros(steps.first.after.0 + 20_000), &steps), None);
    }

    #[test]
    fn bytes_have_room_for_as_many_as_come_at_once() {
        for byte in 0..=u8::MAX {
            for place in 0..8 {
                let recent = u64::from(byte) << (8 * place);
                let fits = usize::from(byte) + STEPS_MAX < 255;
                assert!(fits || !has_room(recent), "{byte}");
                assert!(byte >= 192 || has_room(recent), "{byte}");
            }
        }
    }
}
