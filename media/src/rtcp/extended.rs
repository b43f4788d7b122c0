//! Extended reports (RFC 3611), block by block.
//!
//! rtcp-types supports neither VoIP metrics nor statistics summaries. It rejects two DLRR sub-blocks, and one
//! bad block rejects the packet. Here each block is read separately, and unknown ones are skipped (RFC 3611
//! §3).

use super::view::{StatisticsSummary, VoipMetrics};
use crate::stats::Hundredths;

/// An extended report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended<'a> {
    /// The SSRC of the reporter.
    pub sender: u32,
    blocks: &'a [u8],
}

/// One block of an extended report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XrBlock<'a> {
    /// Time since reference times of other parties arrived (§4.5).
    Delays(Delays<'a>),
    /// An unsupported type, or a block of the wrong length.
    Other,
    /// The reporter's clock, for other parties to answer (§4.4): the middle 32 bits of its NTP time.
    ReferenceTime(u32),
    /// A statistics summary of one source (§4.6).
    Summary(u32, StatisticsSummary),
    /// VoIP metrics of one source (§4.7).
    Voip(u32, VoipMetrics),
}

/// The sub-blocks of a DLRR block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays<'a>(&'a [u8]);

/// One sub-block of a DLRR block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// The SSRC whose reference time is answered.
    pub ssrc: u32,
    /// The middle 32 bits of that reference time; 0 for none.
    pub last_report: u32,
    /// Time since it arrived, in 65,536ths of a second.
    pub delay: u32,
}

impl<'a> Extended<'a> {
    /// Reads a complete packet; its length is already validated.
    pub(super) fn read(packet: &'a [u8]) -> Option<Extended<'a>> {
        let padding = match packet.first()? & 0x20 {
            0 => 0,
            _ => usize::from(*packet.last()?),
        };
        let packet = packet.get(..packet.len().checked_sub(padding)?)?;
        let ([_, _, _, _, a, b, c, d], blocks) = packet.split_first_chunk::<8>()?;
        Some(Extended { sender: u32::from_be_bytes([*a, *b, *c, *d]), blocks })
    }

    /// Its blocks, up to the first one that exceeds the packet.
    pub fn blocks(self) -> impl Iterator<Item = XrBlock<'a>> {
        let mut rest = self.blocks;
        std::iter::from_fn(move || {
            let ([kind, specific, high, low], behind) = rest.split_first_chunk::<4>()?;
            let words = usize::from(u16::from_be_bytes([*high, *low]));
            let (body, after) = behind.split_at_checked(words * 4)?;
            rest = after;
            Some(XrBlock::read(*kind, *specific, body))
        })
    }
}

impl<'a> XrBlock<'a> {
    fn read(kind: u8, specific: u8, body: &'a [u8]) -> XrBlock<'a> {
        let read = match kind {
            4 => reference_time(body),
            5 => Some(XrBlock::Delays(Delays(body))),
            6 => summary(specific, body),
            7 => voip(body),
            _ => None,
        };
        read.unwrap_or(XrBlock::Other)
    }
}

impl Delays<'_> {
    /// Its sub-blocks.
    pub fn iter(self) -> impl Iterator<Item = Delay> {
        self.0.chunks_exact(12).filter_map(|sub| {
            let [s0, s1, s2, s3, r0, r1, r2, r3, d0, d1, d2, d3] = *sub.first_chunk::<12>()?;
            Some(Delay {
                ssrc: u32::from_be_bytes([s0, s1, s2, s3]),
                last_report: u32::from_be_bytes([r0, r1, r2, r3]),
                delay: u32::from_be_bytes([d0, d1, d2, d3]),
            })
        })
    }
}

fn reference_time(body: &[u8]) -> Option<XrBlock<'_>> {
    let [_, _, a, b, c, d, _, _] = *<&[u8; 8]>::try_from(body).ok()?;
    Some(XrBlock::ReferenceTime(u32::from_be_bytes([a, b, c, d])))
}

fn summary(flags: u8, body: &[u8]) -> Option<XrBlock<'_>> {
    let body = <&[u8; 36]>::try_from(body).ok()?;
    let word = |place: usize| body.chunks_exact(4).nth(place).and_then(u32_of).unwrap_or_default();
    let has = |flag: u8| flags & flag != 0;
    let sequences = word(1);
    let summary = StatisticsSummary {
        begin_sequence: (sequences >> 16) as u16,
        end_sequence: sequences as u16,
        lost: has(0x80).then(|| word(2)),
        duplicates: has(0x40).then(|| word(3)),
        jitter_ticks: has(0x20).then(|| [word(4), word(5), word(6), word(7)]),
        hops: (flags & 0x18 != 0).then(|| word(8).to_be_bytes()),
    };
    Some(XrBlock::Summary(word(0), summary))
}

fn voip(body: &[u8]) -> Option<XrBlock<'_>> {
    let body = <&[u8; 32]>::try_from(body).ok()?;
    let [s0, s1, s2, s3, loss, discard, burst, gap, rest @ ..] = body;
    let [b0, b1, g0, g1, r0, r1, e0, e1, signal, noise, echo, gmin, rest @ ..] = rest;
    let [r, external, lq, cq, _, _, n0, n1, m0, m1, l0, l1] = rest;
    let both = |high: &u8, low: &u8| u32::from(u16::from_be_bytes([*high, *low]));
    let measured = |value: u32| (value != 0).then_some(value);
    // 127 means that it was not measured (§4.7.4, §4.7.5).
    let known = |value: &u8| (*value != 127).then_some(*value);
    let level = |value: &u8| known(value).map(|value| value as i8);
    let mos = |value: &u8| {
        known(value)
            .filter(|tenths| (10..=50).contains(tenths))
            .map(|tenths| Hundredths(i64::from(tenths) * 10))
    };
    let metrics = VoipMetrics {
        loss_pct: of_256(*loss),
        discard_pct: of_256(*discard),
        burst_density_pct: of_256(*burst),
        gap_density_pct: of_256(*gap),
        burst_duration_ms: both(b0, b1),
        gap_duration_ms: both(g0, g1),
        round_trip_ms: measured(both(r0, r1)),
        end_system_delay_ms: measured(both(e0, e1)),
        signal_level_dbm: level(signal),
        noise_level_dbm: level(noise),
        echo_return_loss_db: known(echo),
        gmin: *gmin,
        r_factor: known(r).filter(|r| *r <= 100),
        external_r_factor: known(external).filter(|r| *r <= 100),
        mos_lq: mos(lq),
        mos_cq: mos(cq),
        jitter_buffer_ms: both(n0, n1),
        jitter_buffer_max_ms: both(m0, m1),
        jitter_buffer_limit_ms: both(l0, l1),
    };
    Some(XrBlock::Voip(u32::from_be_bytes([*s0, *s1, *s2, *s3]), metrics))
}

/// A share in 256ths as percent.
pub(super) fn of_256(share: u8) -> Hundredths {
    Hundredths::ratio(i128::from(share) * 100, 256).unwrap_or_default()
}

fn u32_of(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use rtcp_types::prelude::*;
    use rtcp_types::{
        DelaySinceLastReceiverReport, DelaySinceLastReceiverReportBlock, ReceiverReferenceTime, Xr,
    };

    use super::*;

    fn blocks(packet: &[u8]) -> Vec<XrBlock<'_>> {
        Extended::read(packet).unwrap().blocks().collect()
    }

    #[test]
    fn voip_metrics_are_read_field_by_field() {
        let mut packet = vec![0x80, 207, 0, 10, 0, 0, 0, 9, 7, 0, 0, 8];
        packet.extend([0, 0, 0, 5, 26, 13, 128, 3, 0, 200, 0x4e, 0x20, 0, 120, 0, 60]);
        packet.extend([0xec, 0xc0, 127, 16, 82, 127, 41, 127, 0x30, 0, 0, 40, 0, 60, 0, 200]);
        let [XrBlock::Voip(ssrc, metrics)] = blocks(&packet)[..] else { panic!("not one VoIP block") };
        assert_eq!(ssrc, 5);
        let expected = VoipMetrics {
            loss_pct: Hundredths(1016),
            discard_pct: Hundredths(508),
            burst_density_pct: Hundredths(5000),
            gap_density_pct: Hundredths(117),
            burst_duration_ms: 200,
            gap_duration_ms: 20_000,
            round_trip_ms: Some(120),
            end_system_delay_ms: Some(60),
            signal_level_dbm: Some(-20),
            noise_level_dbm: Some(-64),
            echo_return_loss_db: None,
            gmin: 16,
            r_factor: Some(82),
            external_r_factor: None,
            mos_lq: Some(Hundredths(410)),
            mos_cq: None,
            jitter_buffer_ms: 40,
            jitter_buffer_max_ms: 60,
            jitter_buffer_limit_ms: 200,
        };
        assert_eq!(metrics, expected);
    }

    #[test]
    fn a_summary_states_what_its_flags_say() {
        let mut packet = vec![0x80, 207, 0, 11, 0, 0, 0, 9, 6, 0xa0, 0, 9, 0, 0, 0, 5, 0x12, 0x34, 0x20, 0];
        for word in [17_u32, 99, 1, 80, 20, 4, 0x40_40_40_00] {
            packet.extend(word.to_be_bytes());
        }
        let [XrBlock::Summary(ssrc, summary)] = blocks(&packet)[..] else { panic!("not one summary") };
        let expected = StatisticsSummary {
            begin_sequence: 0x1234,
            end_sequence: 0x2000,
            lost: Some(17),
            duplicates: None,
            jitter_ticks: Some([1, 80, 20, 4]),
            hops: None,
        };
        assert_eq!((ssrc, summary), (5, expected));
    }

    #[test]
    fn reference_times_and_delays_are_what_rtcp_types_writes() {
        let sub = |ssrc, last| {
            DelaySinceLastReceiverReportBlock::builder()
                .ssrc(ssrc)
                .last_receiver_report(last)
                .delay_since_last_receiver_report_timestamp(65_536)
        };
        let delays =
            DelaySinceLastReceiverReport::builder().add_block(sub(1, 0x5678_90ab)).add_block(sub(2, 7));
        let packet = Xr::builder()
            .sender_ssrc(3)
            .add_block(ReceiverReferenceTime::builder().ntp_timestamp(0x1234_5678_90ab_cdef))
            .add_block(delays);
        let mut bytes = vec![0; packet.calculate_size().unwrap()];
        packet.write_into(&mut bytes).unwrap();
        let [XrBlock::ReferenceTime(middle), XrBlock::Delays(delays)] = blocks(&bytes)[..] else {
            panic!("not the two blocks")
        };
        assert_eq!(middle, 0x5678_90ab);
        let read: Vec<_> = delays.iter().map(|delay| (delay.ssrc, delay.last_report, delay.delay)).collect();
        assert_eq!(read, [(1, 0x5678_90ab, 65_536), (2, 7, 65_536)]);
    }

    #[test]
    fn a_bad_block_takes_no_other_with_it() {
        let mut packet = vec![0x80, 207, 0, 0, 0, 0, 0, 9];
        packet.extend([4, 0, 0, 1, 1, 2, 3, 4]);
        packet.extend([99, 0, 0, 0]);
        packet.extend([4, 0, 0, 2, 0, 0, 1, 2, 3, 4, 0, 0]);
        packet.extend([7, 0, 0, 8, 1]);
        assert_eq!(blocks(&packet), [XrBlock::Other, XrBlock::Other, XrBlock::ReferenceTime(0x0102_0304)]);
    }
}
