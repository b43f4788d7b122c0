//! T.38 in session descriptions (ITU-T T.38 annex D.2, RFC 4612): fax as UDPTL datagrams in place of audio.

use crate::sdp::{Direction, Media, MediaKind, SessionDescription, T38};

impl Media {
    /// A section of T.38 over UDPTL.
    pub fn fax(port: u16, t38: T38, direction: Direction) -> Self {
        Media {
            kind: MediaKind::Image,
            protocol: UDPTL.into(),
            other_formats: vec![FORMAT.to_owned()],
            direction,
            t38: Some(Box::new(t38)),
            ..Media::audio(port, Vec::new())
        }
    }

    /// Whether it is T.38 over UDPTL, refused or not.
    pub(super) fn has_fax_format(&self) -> bool {
        self.kind == MediaKind::Image
            && self.protocol.eq_ignore_ascii_case(UDPTL)
            && self.other_formats.iter().any(|format| format.eq_ignore_ascii_case(FORMAT))
    }

    /// Whether it is T.38 that its creator offers or accepts.
    pub fn is_fax(&self) -> bool {
        self.t38.is_some() && self.port != 0
    }
}

impl SessionDescription {
    /// The first enabled section of T.38 and its index, if the creator has no audio that our ports support: one of our
    /// ports carries either audio or T.38.
    pub fn carried_fax(&self) -> Option<(usize, &Media)> {
        let fax = || self.media.iter().enumerate().find(|(_, media)| media.is_fax());
        self.carried_audio().is_none().then(fax).flatten()
    }

    /// The section that our ports carry, and its index: audio, or T.38 in its place.
    pub fn carried(&self) -> Option<(usize, &Media)> {
        self.carried_audio().or_else(|| self.carried_fax())
    }
}

/// The registered transport of UDPTL datagrams; `UDPTL` is in use too.
const UDPTL: &str = "udptl";
/// The format of a section of T.38.
const FORMAT: &str = "t38";
