//! The sender reports of a leg that we send a stream of our own to (RFC 3550 §6.4.1), with its canonical name.
//!
//! A relayed leg needs none: its peer's reports are relayed. What the party sends us is reported by the record,
//! so these have no report blocks.

use super::clock::Sample;
use crate::time::{ClockRate, Micros};

/// What is known of the stream that is sent to one party.
#[derive(Clone, Debug)]
pub(super) struct SenderReports {
    ssrc: u32,
    packets: u32,
    octets: u32,
    /// The timestamp of the last packet, and when it left.
    last: (u32, Micros),
    clock: ClockRate,
    cname: [u8; CNAME_BYTES],
    next: Micros,
}

impl SenderReports {
    /// Nothing sent yet; the canonical name follows from `seed` (RFC 7022 §4.2).
    pub(super) fn new(seed: u64, clock: ClockRate, now: Micros) -> SenderReports {
        let mut cname = [0; CNAME_BYTES];
        for (place, letter) in cname.iter_mut().enumerate() {
            let nibble = (scramble(seed) >> (place * 4)) & 0xf;
            *letter = b"0123456789abcdef".get(nibble as usize).copied().unwrap_or(b'0');
        }
        SenderReports { ssrc: 0, packets: 0, octets: 0, last: (0, now), clock, cname, next: now + FIRST_US }
    }

    /// Another codec is sent from now on.
    pub(super) fn set_clock(&mut self, clock: ClockRate) {
        self.clock = clock;
    }

    /// Counts an RTP packet that was sent; its header is plain, since it is our own.
    pub(super) fn note(&mut self, datagram: &[u8], now: Micros) {
        let Some((&[_, _, _, _, t0, t1, t2, t3, s0, s1, s2, s3], payload)) =
            datagram.split_first_chunk::<12>()
        else {
            return;
        };
        let ssrc = u32::from_be_bytes([s0, s1, s2, s3]);
        if ssrc != self.ssrc {
            (self.ssrc, self.packets, self.octets) = (ssrc, 0, 0);
        }
        // Both counts wrap (RFC 3550 §6.4.1).
        self.packets = self.packets.wrapping_add(1);
        self.octets = self.octets.wrapping_add(u32::try_from(payload.len()).unwrap_or_default());
        self.last = (u32::from_be_bytes([t0, t1, t2, t3]), now);
    }

    /// Writes the report that is due, if one is.
    pub(super) fn write<'a>(
        &mut self,
        sample: Sample,
        buffer: &'a mut [u8; REPORT_BYTES],
    ) -> Option<&'a [u8]> {
        if sample.now < self.next || self.packets == 0 {
            return None;
        }
        // Half to one and a half of the interval, so that parties who came together do not report together
        // (RFC 3550 §6.3.1).
        let spread = scramble(u64::from(self.ssrc) << 32 | u64::from(self.packets)) % INTERVAL_US as u64;
        self.next = sample.now + INTERVAL_US / 2 + spread as i64;
        let wall_us = sample.wall_us.max(0) as u64;
        let seconds = (wall_us / 1_000_000 + NTP_OF_UNIX) as u32;
        let fraction = ((wall_us % 1_000_000) << 32) / 1_000_000;
        let (timestamp, at) = self.last;
        let elapsed = sample.now.since(at).max(0) * i64::from(self.clock.hz()) / 1_000_000;
        let words: [u32; 9] = [
            0x80c8_0006,
            self.ssrc,
            seconds,
            fraction as u32,
            timestamp.wrapping_add(elapsed as u32),
            self.packets,
            self.octets,
            // SDES with one chunk of six words: our SSRC, then the CNAME item and its end.
            0x81ca_0006,
            self.ssrc,
        ];
        let (head, item) = buffer.split_at_mut(words.len() * 4);
        for (place, word) in head.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        item.fill(0);
        if let Some((head, rest)) = item.split_at_mut_checked(2)
            && let Some(name) = rest.get_mut(..CNAME_BYTES)
        {
            head.copy_from_slice(&[1, CNAME_BYTES as u8]);
            name.copy_from_slice(&self.cname);
        }
        Some(buffer)
    }
}

/// The finaliser of SplitMix64: spreads a seed over all bits. Not for secrets.
fn scramble(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A sender report without blocks, a chunk with a CNAME of 16 letters, and its end.
pub(super) const REPORT_BYTES: usize = 56;
const CNAME_BYTES: usize = 16;
/// The first report follows soon, so that a party can set its clock (RFC 3550 §6.2).
const FIRST_US: i64 = 1_000_000;
/// RFC 3550 §6.2: five seconds.
const INTERVAL_US: i64 = 5_000_000;
/// Seconds from 1900 to 1970.
const NTP_OF_UNIX: u64 = 2_208_988_800;

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(seq: u16, timestamp: u32) -> Vec<u8> {
        let mut datagram = vec![0x80, 0];
        datagram.extend(seq.to_be_bytes());
        datagram.extend(timestamp.to_be_bytes());
        datagram.extend(0x1234_5678_u32.to_be_bytes());
        datagram.extend([0xd5; 160]);
        datagram
    }

    #[test]
    fn a_report_tells_what_was_sent_by_whom() {
        let mut reports = SenderReports::new(7, ClockRate::HZ_8000, Micros(0));
        let mut buffer = [0xff; REPORT_BYTES];
        let at = |us| Sample { now: Micros(us), wall_us: 1_500_000 + us };
        assert!(reports.write(at(2_000_000), &mut buffer).is_none(), "nothing was sent");
        reports.note(&sent(1, 160), Micros(1_960_000));
        reports.note(&sent(2, 320), Micros(1_980_000));
        let report = reports.write(at(2_000_000), &mut buffer).unwrap().to_vec();
        assert_eq!(report[..8], [0x80, 200, 0, 6, 0x12, 0x34, 0x56, 0x78]);
        // 3.5 s after the beginning of 1970; the timestamp is 20 ms further than the last packet's.
        assert_eq!(report[8..16], [0x83, 0xaa, 0x7e, 0x83, 0x80, 0, 0, 0]);
        assert_eq!(report[16..28], [0, 0, 1, 0xe0, 0, 0, 0, 2, 0, 0, 1, 0x40]);
        assert_eq!(report[28..38], [0x81, 202, 0, 6, 0x12, 0x34, 0x56, 0x78, 1, 16]);
        assert!(report[38..54].iter().all(u8::is_ascii_hexdigit));
        assert_eq!(report[54..], [0, 0]);
        assert!(reports.write(at(2_020_000), &mut buffer).is_none(), "only just told");
        assert!(
            reports.write(at(9_600_000), &mut buffer).is_some(),
            "after one and a half intervals at the latest"
        );
    }
}
