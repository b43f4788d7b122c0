//! Writes reports: sender or receiver report, at most one block, and the canonical name (RFC 3550 §6.1
//! requires one in every compound).

use super::compound::{Block, SenderInfo};

/// One compound datagram to write.
#[derive(Clone, Copy, Debug)]
pub struct ReportWriter<'a> {
    /// The reporter's SSRC.
    pub ssrc: u32,
    /// What it has sent; without it, the report is a receiver report.
    pub sender: Option<SenderInfo>,
    /// What it has received.
    pub block: Option<&'a Block>,
    /// Its canonical name (RFC 7022).
    pub cname: &'a [u8; CNAME_BYTES],
    /// Whether this is its last report, with a BYE (RFC 3550 §6.6).
    pub leaves: bool,
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
        if self.leaves {
            cursor.word(0x81cb_0001);
            cursor.word(self.ssrc);
        }
        let Cursor { buffer, len } = cursor;
        buffer.get(..len).unwrap_or_default()
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
/// A sender report with one block, a chunk with a CNAME and its end, and a BYE.
pub const REPORT_BYTES_MAX: usize = 28 + 24 + 28 + 8;
