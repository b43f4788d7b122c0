//! The RTCP reports of a leg to which we send our own stream (RFC 3550 §6.4), with its canonical name.
//!
//! On a relayed leg the peer's reports are relayed; `monitor` sends reports when there are none. While packets are
//! sent, the report is a sender report, otherwise a receiver report. Once packets of the party have arrived, both
//! contain a block about its stream, so that the party learns its reception quality.

use super::clock::Sample;
use crate::rtcp::{Block, CNAME_BYTES, ExtendedContent, REPORT_BYTES_MAX, ReportWriter, SenderInfo};
use crate::time::{ClockRate, Micros};

/// State of the stream that is sent to one party.
#[derive(Clone, Debug)]
pub(super) struct Reports {
    ssrc: u32,
    packets: u32,
    octets: u32,
    /// The packet counts in the last report and in the one before it.
    told: [u32; 2],
    /// The timestamp of the last packet, and when it was sent.
    last: (u32, Micros),
    clock: ClockRate,
    cname: [u8; CNAME_BYTES],
    next: Micros,
    /// Whether a report was sent with the present SSRC.
    has_reported: bool,
}

impl Reports {
    /// Nothing sent yet; the canonical name (RFC 7022 §4.2) and an SSRC for the time before the first packet
    /// follow from `seed`.
    pub(super) fn new(seed: u64, clock: ClockRate, now: Micros) -> Reports {
        let mut cname = [0; CNAME_BYTES];
        for (place, letter) in cname.iter_mut().enumerate() {
            let nibble = (scramble(seed) >> (place * 4)) & 0xf;
            *letter = b"0123456789abcdef".get(nibble as usize).copied().unwrap_or(b'0');
        }
        let ssrc = scramble(seed.wrapping_add(1)) as u32;
        let (told, last) = ([0; 2], (0, now));
        Reports {
            ssrc,
            packets: 0,
            octets: 0,
            told,
            last,
            clock,
            cname,
            next: now + FIRST_US,
            has_reported: false,
        }
    }

    /// Sets the clock when another codec is sent from now on.
    pub(super) fn set_clock(&mut self, clock: ClockRate) {
        self.clock = clock;
    }

    /// Counts an RTP packet that was sent; its header has the fixed form of our own packets.
    pub(super) fn note(&mut self, datagram: &[u8], now: Micros) {
        let Some((&[_, _, _, _, t0, t1, t2, t3, s0, s1, s2, s3], payload)) =
            datagram.split_first_chunk::<12>()
        else {
            return;
        };
        let ssrc = u32::from_be_bytes([s0, s1, s2, s3]);
        if ssrc != self.ssrc {
            (self.ssrc, self.packets, self.octets, self.told) = (ssrc, 0, 0, [0; 2]);
        }
        // Both counts wrap (RFC 3550 §6.4.1).
        self.packets = self.packets.wrapping_add(1);
        self.octets = self.octets.wrapping_add(u32::try_from(payload.len()).unwrap_or_default());
        self.last = (u32::from_be_bytes([t0, t1, t2, t3]), now);
    }

    /// Whether a report is due.
    pub(super) fn is_due(&self, now: Micros) -> bool {
        now >= self.next
    }

    /// Writes a report with `block` and the extended report about the party's stream; `None` while nothing was sent or
    /// received. A receiver report contains a reference time if the party `asks` for it, because no sender report gives
    /// one.
    pub(super) fn write<'a>(
        &mut self,
        sample: Sample,
        block: Option<&Block>,
        (extended, asks): (ExtendedContent, bool),
        buffer: &'a mut [u8; REPORT_BYTES_MAX],
    ) -> Option<&'a [u8]> {
        if self.packets == 0 && block.is_none() {
            return None;
        }
        // Half to one and a half of the interval, so that parties that joined together do not report together
        // (RFC 3550 §6.3.1).
        let mixed = u64::from(self.ssrc) << 32 ^ sample.now.0.unsigned_abs();
        self.next = sample.now + INTERVAL_US / 2 + (scramble(mixed) % INTERVAL_US as u64) as i64;
        // "Issues an SR if a site has sent any data packets during the interval since issuing the last report or
        // the previous one" (RFC 3550 §6.4).
        let [_, before] = self.told;
        let sender = (self.packets != before).then(|| self.sender_info(sample));
        let [latest, _] = self.told;
        self.told = [self.packets, latest];
        self.has_reported = true;
        let reference_time = (asks && sender.is_none()).then(|| ntp(sample));
        let extended = ExtendedContent { reference_time, ..extended };
        let writer =
            ReportWriter { ssrc: self.ssrc, sender, block, extended, cname: &self.cname, leaves: false };
        Some(writer.write(buffer))
    }

    /// Whether a report was sent and no BYE has followed.
    pub(super) fn has_reported(&self) -> bool {
        self.has_reported
    }

    /// Writes the BYE after the last report (RFC 3550 §6.6); `None` when there was no report. Later reports have
    /// another SSRC.
    pub(super) fn leave<'a>(&mut self, buffer: &'a mut [u8; REPORT_BYTES_MAX]) -> Option<&'a [u8]> {
        if !std::mem::take(&mut self.has_reported) {
            return None;
        }
        let ssrc = self.ssrc;
        self.ssrc = scramble(u64::from(ssrc)) as u32;
        let (sender, block) = (None, None);
        let extended = ExtendedContent::default();
        Some(ReportWriter { ssrc, sender, block, extended, cname: &self.cname, leaves: true }.write(buffer))
    }

    fn sender_info(&self, sample: Sample) -> SenderInfo {
        let (timestamp, at) = self.last;
        let elapsed = sample.now.since(at).max(0) * i64::from(self.clock.hz()) / 1_000_000;
        SenderInfo {
            ssrc: self.ssrc,
            ntp: ntp(sample),
            timestamp: timestamp.wrapping_add(elapsed as u32),
            packets: self.packets,
            octets: self.octets,
        }
    }
}

/// The wall time as NTP time.
fn ntp(sample: Sample) -> u64 {
    let wall_us = sample.wall_us.max(0) as u64;
    let seconds = wall_us / 1_000_000 + NTP_OF_UNIX;
    let fraction = ((wall_us % 1_000_000) << 32) / 1_000_000;
    seconds << 32 | fraction
}

/// The finaliser of SplitMix64: spreads a seed over all bits. Not for secrets.
fn scramble(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The first report is sent early, so that a party can synchronise its clock (RFC 3550 §6.2).
const FIRST_US: i64 = 1_000_000;
/// Five seconds (RFC 3550 §6.2).
const INTERVAL_US: i64 = 5_000_000;
/// Seconds from 1900 to 1970.
const NTP_OF_UNIX: u64 = 2_208_988_800;

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: (ExtendedContent, bool) =
        (ExtendedContent { reference_time: None, delay: None, summary: None, voip: None }, false);

    fn sent(seq: u16, timestamp: u32) -> Vec<u8> {
        let mut datagram = vec![0x80, 0];
        datagram.extend(seq.to_be_bytes());
        datagram.extend(timestamp.to_be_bytes());
        datagram.extend(0x1234_5678_u32.to_be_bytes());
        datagram.extend([0xd5; 160]);
        datagram
    }

    fn at(us: i64) -> Sample {
        Sample { now: Micros(us), wall_us: 1_500_000 + us }
    }

    #[test]
    fn a_report_tells_what_was_sent_by_whom() {
        let mut reports = Reports::new(7, ClockRate::HZ_8000, Micros(0));
        let mut buffer = [0xff; REPORT_BYTES_MAX];
        assert!(!reports.is_due(Micros(999_999)));
        assert!(reports.is_due(Micros(1_000_000)));
        assert!(reports.write(at(2_000_000), None, PLAIN, &mut buffer).is_none(), "nothing was sent");
        reports.note(&sent(1, 160), Micros(1_960_000));
        reports.note(&sent(2, 320), Micros(1_980_000));
        let report = reports.write(at(2_000_000), None, PLAIN, &mut buffer).unwrap().to_vec();
        assert_eq!(report[..8], [0x80, 200, 0, 6, 0x12, 0x34, 0x56, 0x78]);
        // 3.5 s after the start of 1970; the timestamp is 20 ms after the last packet's.
        assert_eq!(report[8..16], [0x83, 0xaa, 0x7e, 0x83, 0x80, 0, 0, 0]);
        assert_eq!(report[16..28], [0, 0, 1, 0xe0, 0, 0, 0, 2, 0, 0, 1, 0x40]);
        assert_eq!(report[28..38], [0x81, 202, 0, 6, 0x12, 0x34, 0x56, 0x78, 1, 16]);
        assert!(report[38..54].iter().all(u8::is_ascii_hexdigit));
        assert_eq!(report[54..], [0, 0]);
        assert!(!reports.is_due(Micros(4_400_000)), "only just told");
        assert!(reports.is_due(Micros(9_600_000)), "after one and a half intervals at the latest");
    }

    #[test]
    fn silence_reports_as_a_receiver() {
        let mut reports = Reports::new(7, ClockRate::HZ_8000, Micros(0));
        let mut buffer = [0xff; REPORT_BYTES_MAX];
        let block = Block { ssrc: 0x0a0b_0c0d, fraction_lost: 3, cumulative_lost: -2, ..Block::default() };
        let kinds = |reports: &mut Reports, buffer: &mut _| {
            let report = reports.write(at(0), Some(&block), PLAIN, buffer).unwrap();
            (report[0], report[1], report.len())
        };
        assert_eq!(kinds(&mut reports, &mut buffer), (0x81, 201, 60), "nothing was sent");
        reports.note(&sent(1, 160), Micros(0));
        assert_eq!(kinds(&mut reports, &mut buffer), (0x81, 200, 80));
        assert_eq!(kinds(&mut reports, &mut buffer), (0x81, 200, 80), "sent in the interval before");
        assert_eq!(kinds(&mut reports, &mut buffer), (0x81, 201, 60), "silent for two intervals");
        let report = reports.write(at(0), Some(&block), PLAIN, &mut buffer).unwrap();
        assert_eq!(report[8..16], [0x0a, 0x0b, 0x0c, 0x0d, 3, 0xff, 0xff, 0xfe]);
    }

    /// RFC 3611: a receiver report to a party that asks contains our time, the answer to its time, and the losses.
    #[test]
    fn an_extended_report_is_read_back() {
        use crate::rtcp::{Compound, Delay, Element, SummaryContent, VoipMetrics, XrBlock};
        use crate::stats::Hundredths;
        let mut reports = Reports::new(7, ClockRate::HZ_8000, Micros(0));
        let block = Block { ssrc: 5, ..Block::default() };
        let delay = Delay { ssrc: 5, last_report: 0x1234_5678, delay: 65_536 };
        let jitter_ticks = Some([1, 40, 9, 12]);
        let lost = SummaryContent { begin: 65_530, end: 10, lost: 3, duplicates: 2, jitter_ticks };
        let voip = VoipMetrics { loss_pct: Hundredths(2_500), r_factor: Some(81), ..VoipMetrics::default() };
        let (summary, voip) = (Some((5, lost)), Some((5, voip)));
        let wanted = ExtendedContent { reference_time: None, delay: Some(delay), summary, voip };
        let mut buffer = [0xff; REPORT_BYTES_MAX];
        let report = reports.write(at(2_000_000), Some(&block), (wanted, true), &mut buffer).unwrap();
        let compound = Compound::read(report).unwrap();
        let extended = compound.elements().find_map(|element| match element {
            Element::Extended(extended) => Some(extended),
            _ => None,
        });
        let blocks: Vec<_> = extended.unwrap().blocks().collect();
        let [
            XrBlock::ReferenceTime(middle),
            XrBlock::Delays(delays),
            XrBlock::Summary(5, summary),
            XrBlock::Voip(5, metrics),
        ] = blocks[..]
        else {
            panic!("{blocks:?}")
        };
        assert_eq!((metrics.loss_pct, metrics.r_factor, metrics.mos_lq), (Hundredths(2_500), Some(81), None));
        assert_eq!((middle, delays.iter().collect::<Vec<_>>()), (0x7e83_8000, vec![delay]));
        assert_eq!((summary.begin_sequence, summary.end_sequence, summary.lost), (65_530, 10, Some(3)));
        assert_eq!((summary.duplicates, summary.jitter_ticks), (Some(2), jitter_ticks));
        // A sender report already contains our time.
        reports.note(&sent(1, 160), Micros(0));
        let report = reports.write(at(2_000_000), Some(&block), (wanted, true), &mut buffer).unwrap();
        assert_eq!((report[1], report.len()), (200, REPORT_BYTES_MAX - 8 - 12));
    }
}
