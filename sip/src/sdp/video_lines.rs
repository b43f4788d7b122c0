//! The lines of a video section that are passed from one party to the other.

use crate::text::Text;

/// The lines of a video section that concern only the two parties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VideoLines {
    /// The values of `b=`.
    bandwidths: Box<[Text]>,
    /// The name and the value of each attribute, in order.
    attributes: Box<[(Text, Option<Text>)]>,
}

impl VideoLines {
    /// The lines of a section that are passed on; others are omitted.
    pub(super) fn of<'a>(
        bandwidths: impl Iterator<Item = String>,
        attributes: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    ) -> VideoLines {
        let is_passed = |name: &str, value: Option<&str>| {
            PASSED_ON.contains(&name)
                && value
                    .is_none_or(|value| value.len() <= VALUE_BYTES_MAX && !value.contains(char::is_control))
        };
        let attributes = attributes.filter(|(name, value)| is_passed(name, *value)).take(ATTRIBUTES_MAX);
        VideoLines {
            bandwidths: bandwidths.take(BANDWIDTHS_MAX).map(Text::from).collect(),
            attributes: attributes.map(|(name, value)| (name.into(), value.map(Text::from))).collect(),
        }
    }

    /// The values of `b=`.
    pub(super) fn bandwidths(&self) -> impl Iterator<Item = &str> {
        self.bandwidths.iter().map(|bandwidth| &**bandwidth)
    }

    /// The name and the value of each attribute.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.attributes.iter().map(|(name, value)| (&**name, value.as_deref()))
    }
}

/// The attributes that are passed on: feedback (RFC 4585, RFC 5104, RFC 5506), image properties (RFC 6236, RFC 4796),
/// header extensions (RFC 8285) and the sources of the streams (RFC 5576). The packets that they describe are relayed
/// unchanged.
const PASSED_ON: [&str; 9] = [
    "content",
    "extmap",
    "framerate",
    "framesize",
    "imageattr",
    "rtcp-fb",
    "rtcp-rsize",
    "ssrc",
    "ssrc-group",
];
/// The maximum number of attributes of one section that are passed on.
const ATTRIBUTES_MAX: usize = 64;
/// The maximum number of `b=` lines that are passed on.
const BANDWIDTHS_MAX: usize = 4;
/// The maximum length of a value that is passed on, in bytes.
const VALUE_BYTES_MAX: usize = 256;
