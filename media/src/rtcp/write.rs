//! Writes reports: sender or receiver report, at most one block, the canonical name (RFC 3550 §6.1 requires one in
//! every compound), and the extended report (RFC 3611) that a party requests.

use super::compound::{Block, SenderInfo};
use super::extended::Delay;
use super::view::VoipMetrics;

/// One compound datagram to write.
#[derive(Clone, Copy, Debug)]
pub struct ReportWriter<'a> {
    /// The reporter's SSRC.
    pub ssrc: u32,
    /// The packets it has sent; without this, the report is a receiver report.
    pub sender: Option<SenderInfo>,
    /// The packets it has received.
    pub block: Option<&'a Block>,
    /// Its extended report.
    pub extended: ExtendedContent,
    /// Its canonical name (RFC 7022).
    pub cname: &'a [u8; CNAME_BYTES],
    /// Whether this is its last report, with a BYE (RFC 3550 §6.6).
    pub leaves: bool,
}

/// The blocks of an extended report; without any it is not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtendedContent {
    /// Our NTP time, for the party to answer (RFC 3611 §4.4).
    pub reference_time: Option<u64>,
    /// The answer to a reference time of the party (§4.5).
    pub delay: Option<Delay>,
    /// The source, and the summary of its packets since the last report (§4.6).
    pub summary: Option<(u32, SummaryContent)>,
    /// The source, and the metrics of its stream since its beginning (§4.7).
    pub voip: Option<(u32, VoipMetrics)>,
}

/// A summary of a source's packets in a range of sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SummaryContent {
    /// The first number.
    pub begin: u16,
    /// The number after the last.
    pub end: u16,
    /// Packets lost.
    pub lost: u32,
    /// Repeated packets.
    pub duplicates: u32,
    /// Minimum, maximum, mean and deviation of the difference of transit of consecutive packets, in ticks of the
    /// payload's clock; `None` without two packets.
    pub jitter_ticks: Option<[u32; 4]>,
}

impl ExtendedContent {
    /// Its length in words of 32 bits, without the header.
    fn words(&self) -> u32 {
        let blocks = [
            (self.reference_time.is_some(), 3),
            (self.delay.is_some(), 4),
            (self.summary.is_some(), 10),
            (self.voip.is_some(), 9),
        ];
        blocks.into_iter().filter(|(has, _)| *has).map(|(_, words)| words).sum()
    }
}

impl ReportWriter<'_> {
    /// Writes the datagram into `buffer` and returns the used part.
    pub fn write<'b>(&self, buffer: &'b mut [u8; REPORT_BYTES_MAX]) -> &'b [u8] {
        let mut cursor = Cursor { buffer, len: 0 };
        let blocks = u32::from(self.block.is_some());
        let (kind, words) = if self.sender.is_some() { (200, 6) } else { (201, 1) };
        cursor.word(0x8000_0000 | blocks << 24 | kind << 16 | (words + blocks * 6));
        cursor.word(self.ssrc);
        if let Some(sender) = &self.sender {
            cursor.word((sender.ntp >> 32) as u32);
            for word in [sender.ntp as u32, sender.timestamp, sender.packets, sender.octets] {
                cursor.word(word);
            }
        }
        if let Some(block) = self.block {
            let lost = block.cumulative_lost as u32 & 0x00ff_ffff;
            cursor.word(block.ssrc);
            cursor.word(u32::from(block.fraction_lost) << 24 | lost);
            for word in [block.highest, block.jitter_ticks, block.last_report, block.delay] {
                cursor.word(word);
            }
        }
        // SDES with one chunk of six words: the SSRC, then the CNAME item and its end.
        cursor.word(0x81ca_0006);
        cursor.word(self.ssrc);
        cursor.bytes(&[1, CNAME_BYTES as u8]);
        cursor.bytes(self.cname);
        cursor.bytes(&[0, 0]);
        self.write_extended(&mut cursor);
        if self.leaves {
            cursor.word(0x81cb_0001);
            cursor.word(self.ssrc);
        }
        let Cursor { buffer, len } = cursor;
        buffer.get(..len).unwrap_or_default()
    }

    fn write_extended(&self, cursor: &mut Cursor<'_>) {
        let words = self.extended.words();
        if words == 0 {
            return;
        }
        cursor.word(0x80cf_0000 | (words + 1));
        cursor.word(self.ssrc);
        if let Some(ntp) = self.extended.reference_time {
            for word in [0x0400_0002, (ntp >> 32) as u32, ntp as u32] {
                cursor.word(word);
            }
        }
        if let Some(Delay { ssrc, last_report, delay }) = self.extended.delay {
            for word in [0x0500_0003, ssrc, last_report, delay] {
                cursor.word(word);
            }
        }
        if let Some((ssrc, summary)) = self.extended.summary {
            let numbers = u32::from(summary.begin) << 16 | u32::from(summary.end);
            // The flags say that loss, duplicates and jitter are reported, and no TTL.
            let flags = if summary.jitter_ticks.is_some() { 0x06e0_0009 } else { 0x06c0_0009 };
            let jitter = summary.jitter_ticks.unwrap_or_default();
            for word in [flags, ssrc, numbers, summary.lost, summary.duplicates] {
                cursor.word(word);
            }
            for word in jitter.into_iter().chain([0]) {
                cursor.word(word);
            }
        }
        if let Some((ssrc, voip)) = self.extended.voip {
            for word in [0x0700_0008, ssrc].into_iter().chain(voip.words()) {
                cursor.word(word);
            }
        }
    }
}

/// Writes into a buffer that has space for the longest report.
struct Cursor<'b> {
    buffer: &'b mut [u8; REPORT_BYTES_MAX],
    len: usize,
}

impl Cursor<'_> {
    fn word(&mut self, word: u32) {
        self.bytes(&word.to_be_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if let Some(place) = self.buffer.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }
}

/// Length of our canonical names.
pub const CNAME_BYTES: usize = 16;
/// A sender report with one block, a chunk with a CNAME and its end, an extended report with all blocks, and a BYE.
pub const REPORT_BYTES_MAX: usize = 28 + 24 + 28 + 8 + 12 + 16 + 40 + 36 + 8;
