//! The blocks of pcapng (draft-ietf-opsawg-pcapng): sections, interfaces, and the three kinds of packet block.
//!
//! Every other block (names, statistics, secrets, custom) is skipped by its length.

use std::ops::RangeInclusive;

use super::bytes::{Order, array};
use super::link_type::LinkType;
use super::record::{ELEMENT_LEN_MAX, FRAME_LEN_MAX, Fault, Progress, Record};
use crate::time::Micros;

/// The type of a section header block, the same in both byte orders.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// One section of a pcapng file: its byte order and the interfaces described so far.
#[derive(Clone, Debug)]
pub(super) struct Section {
    order: Order,
    interfaces: Vec<Interface>,
    /// The time of the last frame that had one; simple packet blocks have no time.
    last: Micros,
    /// Frames without a usable time.
    untimed: u64,
}

impl Default for Section {
    fn default() -> Self {
        Section { order: Order::Little, interfaces: Vec::new(), last: Micros(0), untimed: 0 }
    }
}

impl Section {
    /// Reads the block at the start of `bytes`.
    #[inline]
    pub(super) fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<Progress<'a>, Fault> {
        let Some(kind) = array::<4>(bytes, 0) else {
            return Ok(Progress::More { needed: BLOCK_OVERHEAD });
        };
        if kind == SECTION_HEADER {
            match array(bytes, 8) {
                None => return Ok(Progress::More { needed: BLOCK_OVERHEAD }),
                Some([0x1a, 0x2b, 0x3c, 0x4d]) => self.order = Order::Big,
                Some([0x4d, 0x3c, 0x2b, 0x1a]) => self.order = Order::Little,
                Some(_) => return Err(Fault::Malformed("a section header without a byte-order mark")),
            }
        }
        let (Some(kind), Some(len)) = (self.order.u32(bytes, 0), self.order.u32(bytes, 4)) else {
            return Ok(Progress::More { needed: BLOCK_OVERHEAD });
        };
        let len = len as usize;
        if len < BLOCK_OVERHEAD || !len.is_multiple_of(4) || len > ELEMENT_LEN_MAX {
            return Err(Fault::Malformed("a block length that no writer produces"));
        }
        let Some(body) = bytes.get(8..len - 4) else {
            return Ok(Progress::More { needed: len });
        };
        match self.order.u32(bytes, len - 4) {
            None => return Ok(Progress::More { needed: len }),
            Some(trailer) if trailer as usize != len => {
                return Err(Fault::Malformed("a block whose two lengths differ"));
            }
            Some(_) => {}
        }
        let record = match kind {
            0x0a0d_0d0a => {
                self.interfaces.clear();
                None
            }
            1 => {
                self.describe_interface(body)?;
                None
            }
            2 => {
                // The obsolete packet block: a 16-bit interface id and a 16-bit drop count.
                let interface = self.order.u16(body, 0).map(usize::from);
                self.timed_packet(interface, body)?
            }
            3 => self.simple_packet(body)?,
            6 => {
                let interface = self.order.u32(body, 0).map(|id| id as usize);
                self.timed_packet(interface, body)?
            }
            _ => None,
        };
        Ok(match record {
            Some(record) => Progress::Record { consumed: len, record },
            None => Progress::Skipped { consumed: len },
        })
    }

    /// Frames so far that had no time, or a time outside the calendar; they have that of the frame before them.
    pub(super) fn untimed(&self) -> u64 {
        self.untimed
    }

    /// The interfaces that the section has described so far.
    pub(super) fn interfaces(&self) -> usize {
        self.interfaces.len()
    }

    fn describe_interface(&mut self, body: &[u8]) -> Result<(), Fault> {
        let (Some(link), Some(snap_len)) = (self.order.u16(body, 0), self.order.u32(body, 4)) else {
            return Err(Fault::Malformed("an interface description that is too short"));
        };
        if self.interfaces.len() >= INTERFACES_MAX {
            return Err(Fault::Malformed("more interfaces than any capture has"));
        }
        let mut interface =
            Interface { link: LinkType(link), snap_len, resolution: Resolution::MICROSECOND, offset_s: 0 };
        let mut options = body.get(8..).unwrap_or_default();
        // Each iteration consumes at least four bytes of the block.
        while let (Some(code), Some(len)) = (self.order.u16(options, 0), self.order.u16(options, 2)) {
            let len = usize::from(len);
            let Some(value) = options.get(4..4 + len) else { break };
            match code {
                0 => break,
                IF_TSRESOL => {
                    if let Some(resolution) = value.first().and_then(|raw| Resolution::new(*raw)) {
                        interface.resolution = resolution;
                    }
                }
                IF_TSOFFSET => interface.offset_s = self.order.i64(value, 0).unwrap_or(0),
                _ => {}
            }
            options = options.get(4 + len.next_multiple_of(4)..).unwrap_or_default();
        }
        self.interfaces.push(interface);
        Ok(())
    }

    fn timed_packet<'a>(
        &mut self,
        interface: Option<usize>,
        body: &'a [u8],
    ) -> Result<Option<Record<'a>>, Fault> {
        let fields = (self.order.u32(body, 4), self.order.u32(body, 8));
        let ((Some(high), Some(low)), Some(kept), Some(wire_len)) =
            (fields, self.order.u32(body, 12), self.order.u32(body, 16))
        else {
            return Err(Fault::Malformed("a packet block that is too short"));
        };
        let Some(interface) = interface.and_then(|id| self.interfaces.get(id)) else {
            return Err(Fault::Malformed("a packet of an interface that was never described"));
        };
        let at = interface.time(u64::from(high) << 32 | u64::from(low));
        let Some(frame) = body.get(20..20 + kept as usize).filter(|frame| frame.len() <= FRAME_LEN_MAX)
        else {
            return Err(Fault::Malformed("a packet block that claims more bytes than it has"));
        };
        match at {
            Some(at) => self.last = at,
            None => self.untimed += 1,
        }
        Ok(Some(Record { at: self.last, link: interface.link, frame, wire_len }))
    }

    fn simple_packet<'a>(&mut self, body: &'a [u8]) -> Result<Option<Record<'a>>, Fault> {
        let (Some(wire_len), Some(interface)) = (self.order.u32(body, 0), self.interfaces.first()) else {
            return Err(Fault::Malformed("a simple packet block without an interface"));
        };
        let snap_len = if interface.snap_len == 0 { u32::MAX } else { interface.snap_len };
        let padded = body.get(4..).unwrap_or_default();
        let kept = padded.len().min(wire_len.min(snap_len) as usize).min(FRAME_LEN_MAX);
        let frame = padded.get(..kept).unwrap_or_default();
        self.untimed += 1;
        Ok(Some(Record { at: self.last, link: interface.link, frame, wire_len }))
    }
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    snap_len: u32,
    resolution: Resolution,
    offset_s: i64,
}

impl Interface {
    /// Returns the time of a frame; `None` outside the years that RFC 3339 can write, which is damage.
    #[inline]
    fn time(&self, ticks: u64) -> Option<Micros> {
        let us = match self.resolution {
            Resolution::Decimal { divisor, multiplier: 1 } => ticks / divisor,
            Resolution::Decimal { multiplier, .. } => ticks.checked_mul(multiplier)?,
            Resolution::Binary { shift } => u64::try_from((u128::from(ticks) * 1_000_000) >> shift).ok()?,
        };
        let us = i64::try_from(us).ok()?.checked_add(self.offset_s.checked_mul(1_000_000)?)?;
        CALENDAR_US.contains(&us).then_some(Micros(us))
    }
}

/// Converts ticks to microseconds, according to option `if_tsresol`.
#[derive(Clone, Copy, Debug)]
enum Resolution {
    /// A power of two: `2^-shift` seconds.
    Binary { shift: u32 },
    /// A power of ten, finer (`divisor`) or coarser (`multiplier`) than a microsecond.
    Decimal { divisor: u64, multiplier: u64 },
}

impl Resolution {
    const MICROSECOND: Resolution = Resolution::Decimal { divisor: 1, multiplier: 1 };

    /// The option's octet: the top bit selects base two or ten, the rest is the negative exponent.
    fn new(raw: u8) -> Option<Self> {
        let exponent = u32::from(raw & 0x7f);
        if raw & 0x80 != 0 {
            return (exponent < 127).then_some(Resolution::Binary { shift: exponent });
        }
        Some(match exponent.checked_sub(6) {
            Some(finer) => Resolution::Decimal { divisor: 10_u64.checked_pow(finer)?, multiplier: 1 },
            None => Resolution::Decimal { divisor: 1, multiplier: 10_u64.checked_pow(6 - exponent)? },
        })
    }
}

/// Type, two lengths and no body.
const BLOCK_OVERHEAD: usize = 12;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

/// The years 0 to 9999 (RFC 3339 §1), in microseconds since the Unix epoch.
const CALENDAR_US: RangeInclusive<i64> = -62_167_219_200_000_000..=253_402_300_799_999_999;

/// More interfaces in one section are treated as damage.
const INTERFACES_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::super::reader::{Damage, Decoder, Records};
    use super::*;

    /// Builds little- or big-endian blocks.
    struct File {
        big: bool,
        bytes: Vec<u8>,
    }

    impl File {
        fn new(big: bool) -> Self {
            let mut file = File { big, bytes: Vec::new() };
            let mut body = file.number(0x1a2b_3c4d);
            body.extend(file.number(if big { 0x0001_0000 } else { 0x0000_0001 }));
            body.extend([0xff; 8]);
            file.block(0x0a0d_0d0a, &body);
            file
        }

        fn number(&self, number: u32) -> Vec<u8> {
            if self.big { number.to_be_bytes().to_vec() } else { number.to_le_bytes().to_vec() }
        }

        fn short(&self, number: u16) -> Vec<u8> {
            if self.big { number.to_be_bytes().to_vec() } else { number.to_le_bytes().to_vec() }
        }

        fn block(&mut self, kind: u32, body: &[u8]) {
            let len = body.len().next_multiple_of(4) + 12;
            self.bytes.extend(self.number(kind));
            self.bytes.extend(self.number(len as u32));
            self.bytes.extend(body);
            self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
            self.bytes.extend(self.number(len as u32));
        }

        fn interface(&mut self, link: u16, resolution: Option<u8>) {
            let mut body = self.short(link);
            body.extend(self.short(0));
            body.extend(self.number(65_535));
            if let Some(raw) = resolution {
                body.extend(self.short(IF_TSRESOL));
                body.extend(self.short(1));
                body.extend([raw, 0, 0, 0]);
                body.extend(self.number(0));
            }
            self.block(1, &body);
        }

        fn packet(&mut self, interface: u32, ticks: u64, frame: &[u8]) {
            let mut body = self.number(interface);
            body.extend(self.number((ticks >> 32) as u32));
            body.extend(self.number(ticks as u32));
            body.extend(self.number(frame.len() as u32));
            body.extend(self.number(1_500));
            body.extend(frame);
            self.block(6, &body);
        }
    }

    #[test]
    fn resolutions_and_orders() {
        let cases = [
            ("default", false, None, 2_500_000),
            ("default, big", true, None, 2_500_000),
            ("nanoseconds", false, Some(9), 2_500_000_000),
            ("milliseconds", true, Some(3), 2_500),
            ("binary", false, Some(0x80 | 10), 2_560),
        ];
        for (name, big, resolution, ticks) in cases {
            let mut file = File::new(big);
            file.interface(1, resolution);
            file.block(5, b"statistics..");
            file.packet(0, ticks, b"abcde");
            let records: Vec<_> = Records::new(&file.bytes).collect();
            let expected =
                Record { at: Micros(2_500_000), link: LinkType::ETHERNET, frame: b"abcde", wire_len: 1_500 };
            assert_eq!(records, [Ok(expected)], "{name}");
        }
    }

    #[test]
    fn sections_interfaces_and_old_blocks() {
        let mut file = File::new(false);
        file.interface(1, None);
        file.interface(113, None);
        file.packet(1, 7, b"cooked");
        let mut simple = file.number(3);
        simple.extend(b"abc");
        file.block(3, &simple);
        let mut old = file.short(0);
        old.extend(file.short(9));
        for number in [0, 8, 2, 2] {
            old.extend(file.number(number));
        }
        old.extend(b"xy");
        file.block(2, &old);
        // A second section with the other byte order clears the first one's interfaces.
        let mut second = File::new(true);
        second.interface(101, None);
        second.packet(0, 9, b"raw");
        second.packet(1, 9, b"unknown interface");
        file.bytes.extend(second.bytes);

        let seen: Vec<_> = Records::new(&file.bytes)
            .map(|record| record.map(|record| (record.at.0, record.link.0, record.frame.to_vec())))
            .collect();
        let end = seen.len() - 1;
        assert_eq!(
            seen[..end],
            [
                Ok((7, 113, b"cooked".to_vec())),
                Ok((7, 1, b"abc".to_vec())),
                Ok((8, 1, b"xy".to_vec())),
                Ok((9, 101, b"raw".to_vec())),
            ]
        );
        assert!(matches!(seen[end], Err(Damage::Malformed { .. })));
    }

    #[test]
    fn frames_without_a_usable_time_are_counted() {
        let mut file = File::new(false);
        let offset = |file: &mut File, seconds: i64| {
            let mut body = file.short(1);
            body.extend(file.short(0));
            body.extend(file.number(65_535));
            body.extend(file.short(IF_TSOFFSET));
            body.extend(file.short(8));
            body.extend(seconds.to_le_bytes());
            file.block(1, &body);
        };
        for seconds in [0, i64::MAX, i64::MIN, 253_402_300_799, 253_402_300_800, -62_167_219_200] {
            offset(&mut file, seconds);
        }
        for interface in 0..6 {
            file.packet(interface, 7, b"timed");
        }
        let mut simple = file.number(3);
        simple.extend(b"abc");
        file.block(3, &simple);

        let (mut decoder, mut seen) = (Decoder::new(), Vec::new());
        decoder.drain(&file.bytes, |record| seen.push(record.at.0)).unwrap();
        let (last, first) = (253_402_300_799_000_007, -62_167_219_199_999_993);
        assert_eq!(seen, [7, 7, 7, last, last, first, first]);
        assert_eq!(decoder.untimed(), 4);
        assert!(decoder.next(&[0; 12]).is_err());
        assert_eq!(decoder.untimed(), 4, "damage changes nothing");
    }

    #[test]
    fn damage_is_told_at_its_place() {
        let mut whole = File::new(false);
        whole.interface(1, None);
        let good = whole.bytes.len();
        whole.packet(0, 1, b"abcd");
        let cases: [(&str, usize, u8); 3] = [
            ("length below a header", good + 4, 8),
            ("odd length", good + 4, 33),
            ("other trailer", whole.bytes.len() - 4, 99),
        ];
        for (name, place, value) in cases {
            let mut file = whole.bytes.clone();
            file[place] = value;
            let last = Records::new(&file).last();
            assert!(
                matches!(last, Some(Err(Damage::Malformed { offset, .. })) if offset == good as u64),
                "{name}: {last:?}"
            );
        }
    }
}
