//! The anchors of a page: captures, calls and streams.

use std::fmt;

/// The anchor of a capture's part.
#[derive(Clone, Copy)]
pub(super) struct FileAnchor(pub(super) usize);

impl fmt::Display for FileAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "f{}", self.0 + 1)
    }
}

/// The name of an anchor on the page.
#[derive(Clone, Copy)]
pub(super) struct Anchor {
    pub(super) kind: char,
    pub(super) file: usize,
    pub(super) place: usize,
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}-{}", self.kind, self.file + 1, self.place + 1)
    }
}
