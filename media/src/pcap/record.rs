//! The results of the decoders of both file formats: frames with their times, or the reason why there is none.

use super::link_type::LinkType;
use crate::time::Micros;

/// One captured frame, borrowed from the input bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was captured, in microseconds since the Unix epoch.
    pub at: Micros,
    /// The link type of `frame`.
    pub link: LinkType,
    /// The captured bytes of the frame.
    pub frame: &'a [u8],
    /// Length of the frame on the wire in bytes; larger than `frame` when the snap length cut it.
    pub wire_len: u32,
}

/// The result of one call of [`Decoder::next`](super::Decoder::next).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The bytes do not contain the complete next element: call again with at least `needed` bytes from the same
    /// position. At the end of the file this means that the capture was cut off, unless no byte is left.
    More {
        /// Length of the next element in bytes, as far as it is known.
        needed: usize,
    },
    /// A frame; with its header it took `consumed` bytes.
    Record {
        /// Bytes to drop before the next call.
        consumed: usize,
        /// The frame.
        record: Record<'a>,
    },
    /// An element other than a frame (a file header, a statistics block) took `consumed` bytes.
    Skipped {
        /// Bytes to drop before the next call.
        consumed: usize,
    },
}

/// A fault in an element whose offset in the file is not known yet.
#[derive(Debug)]
pub(super) enum Fault {
    Malformed(&'static str),
    NotACapture(Option<&'static str>),
}

/// No link layer of interest carries larger frames; Wireshark's own limit is the same.
pub(super) const FRAME_LEN_MAX: usize = 262_144;

/// The largest element that a capture may hold, in bytes; larger ones are damage.
pub const ELEMENT_LEN_MAX: usize = 16 << 20;
