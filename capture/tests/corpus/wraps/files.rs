//! Capture files of every format and byte order.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use sidetone_media::time::Micros;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    Classic {
        big: bool,
        nanoseconds: bool,
        long_records: bool,
    },
    /// `resolution` is the option `if_tsresol`; `offset_s` is `if_tsoffset`.
    Blocks {
        big: bool,
        resolution: u8,
        offset_s: i64,
        is_old: bool,
        sections: usize,
    },
}

pub(crate) const FILES: [File; 14] = [
    classic(false, false, false),
    classic(true, false, false),
    classic(false, true, false),
    classic(true, true, false),
    classic(false, false, true),
    classic(true, false, true),
    blocks(false, 6, 0, false, 1),
    blocks(true, 6, 0, false, 1),
    blocks(false, 9, 0, false, 3),
    blocks(true, 7, 0, false, 2),
    blocks(false, 6, 1_000_000, false, 4),
    blocks(true, 9, -7, true, 1),
    blocks(false, 6, 0, true, 3),
    blocks(false, 0x80 | 30, 1_600_000_000, false, 1),
];

const fn classic(big: bool, nanoseconds: bool, long_records: bool) -> File {
    File::Classic { big, nanoseconds, long_records }
}

const fn blocks(big: bool, resolution: u8, offset_s: i64, is_old: bool, sections: usize) -> File {
    File::Blocks { big, resolution, offset_s, is_old, sections }
}

/// Writes frames of one link type.
pub(crate) fn write(file: File, link: u16, frames: &[(Micros, Vec<u8>)]) -> Vec<u8> {
    match file {
        File::Classic { big, nanoseconds, long_records } => {
            let mut out = Out { big, bytes: Vec::new() };
            out.u32(if nanoseconds {
                0xa1b2_3c4d
            } else if long_records {
                0xa1b2_cd34
            } else {
                0xa1b2_c3d4
            });
            out.u16(2);
            out.u16(4);
            for number in [0, 0, 65_535, u32::from(link)] {
                out.u32(number);
            }
            for (at, frame) in frames {
                let fraction = (at.0 % 1_000_000) as u32;
                out.u32((at.0 / 1_000_000) as u32);
                out.u32(if nanoseconds { fraction * 1_000 + 999 } else { fraction });
                out.u32(frame.len() as u32);
                out.u32(frame.len() as u32);
                out.bytes.extend(std::iter::repeat_n(7, if long_records { 8 } else { 0 }));
                out.bytes.extend(frame);
            }
            out.bytes
        }
        File::Blocks { big, sections, .. } => {
            let per_section = frames.len().div_ceil(sections).max(1);
            let mut out = Vec::new();
            for (number, part) in frames.chunks(per_section).enumerate() {
                // Every other section has the other byte order.
                out.extend(section(file, big ^ (number % 2 == 1), link, part));
            }
            out
        }
    }
}

fn section(file: File, big: bool, link: u16, frames: &[(Micros, Vec<u8>)]) -> Vec<u8> {
    let File::Blocks { resolution, offset_s, is_old, .. } = file else { panic!("not blocks") };
    let mut out = Out { big, bytes: Vec::new() };
    out.block(0x0a0d_0d0a, |body| {
        body.u32(0x1a2b_3c4d);
        body.u16(1);
        body.u16(0);
        body.bytes.extend([0xff; 8]);
        // The name of the program that wrote it.
        body.option(4, b"tests");
    });
    // An interface with another link layer, then the one in use.
    for (number, link) in [(0, 147), (1, link)] {
        out.block(1, |body| {
            body.u16(link);
            body.u16(0);
            body.u32(0);
            body.option(2, b"eth7");
            if number == 1 {
                body.option(9, &[resolution]);
                let raw = if body.big { offset_s.to_be_bytes() } else { offset_s.to_le_bytes() };
                body.option(14, &raw);
            }
            body.option(0, b"");
        });
    }
    // Secrets, a custom block and an unknown one.
    for kind in [10, 0x0bad, 0x4000_0bad, 0x7777] {
        out.block(kind, |body| body.bytes.extend([0xa5; 24]));
    }
    for (at, frame) in frames {
        let us = (at.0 - offset_s * 1_000_000) as u64;
        let ticks = match resolution {
            0x80.. => ((u128::from(us) << (resolution & 0x7f)).div_ceil(1_000_000)) as u64,
            decimal => us * 10_u64.pow(u32::from(decimal) - 6),
        };
        out.block(if is_old { 2 } else { 6 }, |body| {
            if is_old {
                body.u16(1);
                body.u16(0xffff);
            } else {
                body.u32(1);
            }
            body.u32((ticks >> 32) as u32);
            body.u32(ticks as u32);
            body.u32(frame.len() as u32);
            body.u32(frame.len() as u32);
            body.bytes.extend(frame);
            body.pad();
            body.option(1, b"a comment");
            body.option(0, b"");
        });
    }
    out.bytes
}

/// Compresses a file as this many members; 0 leaves it unchanged.
pub(crate) fn gzip(file: Vec<u8>, members: usize) -> Vec<u8> {
    if members == 0 {
        return file;
    }
    let mut out = Vec::new();
    for part in file.chunks(file.len().div_ceil(members)) {
        let mut encoder = GzEncoder::new(out, Compression::fast());
        encoder.write_all(part).unwrap();
        out = encoder.finish().unwrap();
    }
    out
}

struct Out {
    big: bool,
    bytes: Vec<u8>,
}

impl Out {
    fn u16(&mut self, number: u16) {
        self.bytes.extend(if self.big { number.to_be_bytes() } else { number.to_le_bytes() });
    }

    fn u32(&mut self, number: u32) {
        self.bytes.extend(if self.big { number.to_be_bytes() } else { number.to_le_bytes() });
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.u16(code);
        self.u16(value.len() as u16);
        self.bytes.extend(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn block(&mut self, kind: u32, write: impl FnOnce(&mut Out)) {
        let mut body = Out { big: self.big, bytes: Vec::new() };
        write(&mut body);
        body.pad();
        let len = body.bytes.len() as u32 + 12;
        self.u32(kind);
        self.u32(len);
        self.bytes.extend(body.bytes);
        self.u32(len);
    }
}
