//! The lines of T.38 in a section of a session description (ITU-T T.38 annex D.2.3).

use crate::text::Text;

/// The `a=T38…` lines of a party's section. They concern the two fax devices only: the relay changes no datagram, so
/// each device gets the lines of the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct T38 {
    /// The name and the value of each line, in order. Some lines have no value.
    lines: Box<[(Text, Option<Text>)]>,
}

impl T38 {
    /// The lines of `attributes` that T.38 defines; others are omitted.
    pub(super) fn of<'a>(attributes: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> T38 {
        let defined = attributes.filter(|(name, value)| {
            let prefix = name.get(..PREFIX.len());
            prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX))
                && is_plain(name)
                && value.is_none_or(is_plain)
        });
        let lines = defined.take(LINES_MAX).map(|(name, value)| (name.into(), value.map(Text::from)));
        T38 { lines: lines.collect() }
    }

    /// The name and the value of each line.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.lines.iter().map(|(name, value)| (&**name, value.as_deref()))
    }
}

/// Whether a text can be written back within a line.
fn is_plain(text: &str) -> bool {
    text.len() <= LINE_BYTES_MAX && !text.contains(char::is_control)
}

/// The prefix of the names of all T.38 lines.
const PREFIX: &str = "T38";
/// Lines of one section that are kept; T.38 defines eleven.
const LINES_MAX: usize = 24;
/// The longest name or value that is kept, in bytes.
const LINE_BYTES_MAX: usize = 128;
