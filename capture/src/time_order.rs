//! Reads a file whose packets are not in the order of time in that order: captures that were appended to each other,
//! or whose interfaces were written with a delay.
//!
//! The file is read twice. The first reading lists the time and the place of every packet; the packets are then
//! read from their places in the order of their times, those of the same time in the order of the file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use sidetone_media::pcap::{Decoder, Progress, Record};
use sidetone_media::time::Micros;

use super::outcome::{Broken, End};

/// The packets of a file in the order of their times.
///
/// *Bounds*: 16 bytes for each of at most 67,108,864 packets, 4 MiB of the file, and 32 bytes for each of
/// 1,048,576 interfaces.
#[derive(Debug)]
pub(super) struct TimeOrder {
    /// The time and the place of each packet.
    packets: Vec<(Micros, u64)>,
    /// The sections of the file, in order; one for formats without sections.
    sections: Vec<Section>,
    /// Packets without a time.
    pub(super) untimed: u64,
    /// Why the first reading stopped.
    end: End,
}

/// A part of a file with the same byte order and interfaces.
#[derive(Debug)]
struct Section {
    begin: u64,
    /// Reads any packet of the section: it knows all of its interfaces.
    decoder: Decoder,
}

impl TimeOrder {
    /// Lists the packets of a file, as far as it can be read; `None` for a file with too many.
    pub(super) fn of(file: &File) -> Option<Self> {
        TimeOrder::within(file, PACKETS_MAX)
    }

    fn within(file: &File, packets_max: usize) -> Option<Self> {
        let mut list = TimeOrder { packets: Vec::new(), sections: Vec::new(), untimed: 0, end: Ok(()) };
        list.end = list.read(file, packets_max)?;
        // As a stable sort by time, without its second list: places ascend.
        list.packets.sort_unstable();
        Some(list)
    }

    /// Lists the packets and returns why reading stopped; `None` when they are too many.
    fn read(&mut self, file: &File, packets_max: usize) -> Option<End> {
        let (mut decoder, mut window, mut interfaces) = (Decoder::new(), Window::default(), 0);
        let mut needed = 1;
        // Each turn reads an element, asks for more bytes than there were, or is the last.
        loop {
            self.untimed = decoder.untimed();
            let begin = decoder.offset();
            let bytes = match window.bytes(file, (begin, needed), (begin, SCAN_LEN)) {
                Ok(bytes) => bytes,
                Err(error) => return Some(Err(error.into())),
            };
            let (len, begins_section) = (bytes.len(), decoder.begins_section(bytes));
            if begins_section {
                interfaces += decoder.interfaces() + 1;
            }
            match decoder.next(bytes) {
                Ok(Progress::More { .. }) if len < needed => {
                    return Some(decoder.finish(len).map_err(Broken::from));
                }
                Ok(Progress::More { needed: more }) => needed = more.max(len + 1),
                Ok(Progress::Record { record, .. }) => {
                    self.packets.push((record.at, begin));
                    needed = 1;
                }
                Ok(Progress::Skipped { .. }) => {
                    self.describe(begin, &decoder, begins_section);
                    needed = 1;
                }
                Err(damage) => return Some(Err(damage.into())),
            }
            if self.packets.len() > packets_max || interfaces + decoder.interfaces() > INTERFACES_MAX {
                return None;
            }
        }
    }

    /// Keeps the decoder when it has learned something that packets are read by.
    fn describe(&mut self, begin: u64, decoder: &Decoder, begins_section: bool) {
        match self.sections.last_mut().filter(|_| !begins_section) {
            None => self.sections.push(Section { begin, decoder: decoder.clone() }),
            Some(last) if last.decoder.interfaces() != decoder.interfaces() => {
                last.decoder = decoder.clone();
            }
            Some(_) => {}
        }
    }

    /// Passes every packet to `each`, with the bytes of packets read so far.
    ///
    /// *Errors*: why the first reading stopped; the file could not be read again, or has changed.
    pub(super) fn each(mut self, file: &File, mut each: impl FnMut(&Record<'_>, u64)) -> End {
        let mut windows: Vec<Window> = (0..WINDOWS).map(|_| Window::default()).collect();
        let mut taken = 0;
        for (at, place) in self.packets {
            let number = self.sections.partition_point(|section| section.begin <= place).saturating_sub(1);
            let slot = usize::try_from(place / WINDOW_LEN % WINDOWS).unwrap_or_default();
            let (Some(section), Some(window)) = (self.sections.get_mut(number), windows.get_mut(slot)) else {
                break;
            };
            let record = match window.record(file, &mut section.decoder, place)? {
                Some(record) => Record { at, ..record },
                None => return Err(Broken::Io(io::Error::other("it has changed while it was read"))),
            };
            taken += record.frame.len() as u64;
            each(&record, taken);
        }
        self.end
    }
}

/// A part of the file in memory.
#[derive(Debug, Default)]
struct Window {
    begin: u64,
    buffer: Vec<u8>,
    len: usize,
    /// Whether the file ends after it.
    is_last: bool,
}

impl Window {
    /// Returns the packet at that place; `None` if it is not there any more.
    fn record<'a>(
        &'a mut self,
        file: &File,
        decoder: &mut Decoder,
        place: u64,
    ) -> Result<Option<Record<'a>>, Broken> {
        // Neighbours in time are often neighbours in the file, before or after.
        let wanted = (place / WINDOW_LEN * WINDOW_LEN, WINDOW_LEN as usize + BEHIND_LEN);
        decoder.seek(place);
        let needed = match decoder.next(self.bytes(file, (place, HEADER_LEN), wanted)?)? {
            Progress::More { needed } => needed,
            Progress::Record { .. } | Progress::Skipped { .. } => HEADER_LEN,
        };
        decoder.seek(place);
        Ok(match decoder.next(self.bytes(file, (place, needed), wanted)?)? {
            Progress::Record { record, .. } => Some(record),
            Progress::More { .. } | Progress::Skipped { .. } => None,
        })
    }

    /// Returns the bytes from `place` on: at least `needed`, or up to the end of the file. When they are not in
    /// memory, `len` bytes from `begin` on are read, and more if these do not reach as far.
    fn bytes(
        &mut self,
        file: &File,
        (place, needed): (u64, usize),
        (begin, len): (u64, usize),
    ) -> io::Result<&[u8]> {
        let end = self.begin + self.len as u64;
        let is_held = (self.begin..=end).contains(&place) && (self.is_last || end - place >= needed as u64);
        if !is_held {
            let least = usize::try_from(place - begin).unwrap_or_default() + needed;
            self.fill(file, begin, least.max(len))?;
        }
        let skipped = usize::try_from(place - self.begin).unwrap_or(usize::MAX);
        Ok(self.buffer.get(skipped..self.len).unwrap_or_default())
    }

    fn fill(&mut self, file: &File, begin: u64, len: usize) -> io::Result<()> {
        self.buffer.resize(len, 0);
        (self.begin, self.len, self.is_last) = (begin, 0, false);
        // Each turn fills at least one byte, or is the last.
        while let Some(rest) = self.buffer.get_mut(self.len..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, begin + self.len as u64) {
                Ok(0) => {
                    self.is_last = true;
                    break;
                }
                Ok(more) => self.len += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// More packets are not sorted.
const PACKETS_MAX: usize = 64 << 20;
/// Interfaces of all sections, and sections.
const INTERFACES_MAX: usize = 1 << 20;
/// Bytes that one read of the first reading takes.
const SCAN_LEN: usize = 256 << 10;
/// The second reading keeps this number of parts of the file, each of this length and a little more, since a
/// packet may begin at its end.
const WINDOWS: u64 = 60;
const WINDOW_LEN: u64 = 64 << 10;
const BEHIND_LEN: usize = 4 << 10;
/// The headers of a packet in any format, from which its length is read.
const HEADER_LEN: usize = 28;

#[cfg(test)]
#[path = "time_order_tests.rs"]
mod tests;
