//! Extracts datagrams and segments from frames, and reassembles fragments.

use super::content::{Content, Found, FragmentKey, Layer, Piece};
use super::fragments::{Added, Fragments, Whole};
use super::ip::{dissect, follow};
use super::link_type::LinkType;
use crate::time::Micros;

/// Extracts the content of the frames of one capture, like [`dissect`], and reassembles fragmented packets.
///
/// *Bounds*: at most 1,024 packets and 8 MiB wait for fragments, each for 30 seconds of the capture's time.
///
/// ```
/// use sidetone_media::pcap::{Content, Dissector, LinkType};
/// use sidetone_media::time::Micros;
///
/// let mut dissector = Dissector::new();
/// assert_eq!(dissector.dissect(Micros(0), LinkType::ETHERNET, b"too short"), Content::Truncated);
/// assert_eq!(dissector.fragments_left(), 0);
/// ```
#[derive(Debug, Default)]
pub struct Dissector {
    fragments: Fragments,
    /// The last reassembled packet.
    whole: Option<Whole>,
    joined: Vec<FragmentKey>,
    within: Option<FragmentKey>,
}

/// The packet of which the frame contains a fragment, in its outermost fragmented layer; `None` for a frame without
/// one.
#[must_use]
pub fn fragment_of(link: LinkType, frame: &[u8]) -> Option<FragmentKey> {
    match follow(Layer::Frame(link, frame)) {
        Found::Content(_) => None,
        Found::Piece(piece) => Some(piece.key()),
    }
}

impl Dissector {
    /// A dissector before the first fragment.
    #[must_use]
    pub fn new() -> Self {
        Dissector::default()
    }

    /// Extracts the content of `frame`, or of the packet that it completes.
    ///
    /// A datagram of several fragments has the time of the frame that completed it: `at` of this call.
    #[inline]
    pub fn dissect<'a>(&'a mut self, at: Micros, link: LinkType, frame: &'a [u8]) -> Content<'a> {
        match dissect(link, frame) {
            Content::Fragment | Content::Head(_) => self.fragment(at, link, frame),
            content => content,
        }
    }

    /// Fragments that could not be reassembled so far.
    #[must_use]
    pub fn fragments_left(&self) -> u64 {
        self.fragments.left()
    }

    /// The packets that the last fragment completed: its own packet, then the fragmented packets inside it.
    #[must_use]
    pub fn joined(&self) -> &[FragmentKey] {
        &self.joined
    }

    /// The packet that still waits for fragments, one of which is inside the last completed packet.
    #[must_use]
    pub fn within(&self) -> Option<FragmentKey> {
        self.within
    }

    /// Processes a frame for which [`dissect`] returned a [`Content::Fragment`] or a [`Content::Head`].
    #[cold]
    pub fn fragment<'a>(&'a mut self, at: Micros, link: LinkType, frame: &'a [u8]) -> Content<'a> {
        self.joined.clear();
        self.within = None;
        let piece = match follow(Layer::Frame(link, frame)) {
            Found::Content(content) => return content,
            Found::Piece(piece) => piece,
        };
        match self.fragments.add(at, &piece) {
            Added::Alone => return piece.head().map_or(Content::Fragment, Content::Udp),
            Added::Waits => return piece.head().map_or(Content::Fragment, Content::Head),
            Added::Whole(whole) => self.unpack(at, whole),
        }
        match self.whole.as_ref().map(|whole| follow(whole.layer())) {
            Some(Found::Content(content)) => content,
            _ => Content::Fragment,
        }
    }

    /// Stores a reassembled packet; when it is itself a fragment, the packet that it completes.
    fn unpack(&mut self, at: Micros, whole: Whole) {
        let mut whole = whole;
        self.joined.push(whole.key());
        for _ in 0..NESTED_MAX {
            let (key, added) = match follow(whole.layer()) {
                Found::Content(_) => break,
                Found::Piece(piece) => (piece.key(), self.add_nested(at, &piece)),
            };
            match added {
                Some(outer) => {
                    whole = outer;
                    self.joined.push(key);
                }
                None => {
                    self.within = Some(key);
                    break;
                }
            }
        }
        self.whole = Some(whole);
    }

    fn add_nested(&mut self, at: Micros, piece: &Piece<'_>) -> Option<Whole> {
        match self.fragments.add(at, piece) {
            Added::Whole(whole) => Some(whole),
            Added::Alone | Added::Waits => None,
        }
    }
}

/// Levels of fragmented packets inside fragmented packets.
const NESTED_MAX: usize = 4;
