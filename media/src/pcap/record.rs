//! What the decoders of both file formats give: frames with their times, and why there is none.

use super::link_type::LinkType;
use crate::time::Micros;

/// One captured frame, borrowed from the bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was captured, in microseconds since the Unix epoch.
    pub at: Micros,
    /// What the first byte of `frame` is.
    pub link: LinkType,
    /// The bytes that were kept of the frame.
    pub frame: &'a [u8],
    /// Length of the frame on the wire in bytes; larger than `frame` when the snap length cut it.
    pub wire_len: u32,
}

/// What one call of [`Decoder::next`](super::Decoder::next) did with the bytes it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The bytes do not hold the next element whole: call again with at least `needed` bytes from the same
    /// place. At the end of the file this means that the capture was cut off, unless no byte is left.
    More {
        /// Bytes that the next element takes as far as is known.
        needed: usize,
    },
    /// A frame; it and its header took `consumed` bytes.
    Record {
        /// Bytes to drop before the next call.
        consumed: usize,
        /// The frame.
        record: Record<'a>,
    },
    /// Something that is not a frame (a file header, a statistics block) took `consumed` bytes.
    Skipped {
        /// Bytes to drop before the next call.
        consumed: usize,
    },
}

/// A fault in an element, before it is known where in the file the element stands.
#[derive(Debug)]
pub(super) enum Fault {
    Malformed(&'static str),
    NotACapture(Option<&'static str>),
}

/// No link layer of interest carries larger frames; Wireshark's own limit is the same.
pub(super) const FRAME_LEN_MAX: usize = 262_144;

/// The largest element that a capture may hold, in bytes; larger ones are damage.
pub const ELEMENT_LEN_MAX: usize = 16 << 20;
