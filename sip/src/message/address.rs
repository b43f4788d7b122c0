//! From, To, Contact, Route and the like: a display name, a URI and parameters (RFC 3261 §20.10, §25.1).

use std::fmt;

use crate::message::limits::LIST_LEN_MAX;
use crate::message::params::{unquote, write_quoted};
use crate::message::scan::{self, Cursor, is_token_byte};
use crate::message::uri::Parts;
use crate::message::{Malformed, Params, Uri};

/// A name-addr or addr-spec with its header parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameAddr {
    /// The display name without quotes and escapes; `None` when there is none.
    pub display: Option<String>,
    /// The address.
    pub uri: Uri,
    /// Parameters of the header, not of the URI: tag, expires, q and others, raw.
    pub params: Params,
}

impl NameAddr {
    /// An address without display name and parameters.
    #[must_use]
    pub const fn new(uri: Uri) -> Self {
        Self { display: None, uri, params: Params::new() }
    }

    /// The address with this display name; an empty one means none.
    #[must_use]
    pub fn with_display(mut self, display: &str) -> Self {
        self.display = (!display.is_empty()).then(|| display.to_owned());
        self
    }

    /// The address with this tag.
    #[must_use]
    pub fn with_tag(mut self, tag: &str) -> Self {
        self.params.set("tag", Some(tag));
        self
    }

    /// Parses one address.
    ///
    /// # Errors
    ///
    /// When the text is not one valid address; a second one after a comma is an error too.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(text);
        let address = Self::take(&mut cursor)?;
        if cursor.is_done() { Ok(address) } else { Err(Malformed("address")) }
    }

    /// Parses the next address of a list; stops at its comma or at the end.
    pub(crate) fn take(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let mut params = Params::new();
        let parts = take_parts(cursor, &mut |name, value| params.push(name, value))?;
        Ok(Self {
            // A NUL is legal after a backslash, but useless in a name.
            display: (!parts.display.is_empty()).then(|| unquote(parts.display).replace('\0', "\u{fffd}")),
            uri: Uri::parse(parts.uri)?,
            params,
        })
    }

    /// Parses a comma-separated list.
    pub(crate) fn take_list(text: &str, list: &mut Vec<Self>) -> Result<(), Malformed> {
        let mut cursor = Cursor::new(text);
        loop {
            if list.len() >= LIST_LEN_MAX {
                return Err(Malformed("address list"));
            }
            list.push(Self::take(&mut cursor)?);
            if !cursor.eat(b',') {
                return Ok(());
            }
        }
    }

    /// The tag; `None` when absent or empty.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.params.get("tag").filter(|tag| !tag.is_empty())
    }

    /// The `expires` parameter of a Contact in seconds; `None` when it is malformed (§20.10 then assumes
    /// 3600).
    #[must_use]
    pub fn expires(&self) -> Option<u32> {
        self.params.get("expires").and_then(super::fields::seconds)
    }

    /// The `q` parameter of a Contact in thousandths; 1000 when it is absent or malformed.
    #[must_use]
    pub fn q_permille(&self) -> u16 {
        let thousandths = |text: &str| {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            let digits = scan::number(&format!("{whole}{fraction:0<3}"))?;
            (fraction.len() <= 3 && digits <= 1_000).then(|| u16::try_from(digits).ok())?
        };
        self.params.get("q").and_then(thousandths).unwrap_or(1_000)
    }
}

impl std::str::FromStr for NameAddr {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        Self::parse(text)
    }
}

impl fmt::Display for NameAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(display) = &self.display {
            write_quoted(f, display)?;
            f.write_str(" ")?;
        }
        write!(f, "<{}>{}", self.uri, self.params)
    }
}

/// The Contact headers of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contacts {
    /// `Contact: *`: all bindings, in a REGISTER that removes them.
    Star,
    /// The addresses in order; empty when there is no Contact.
    List(Vec<NameAddr>),
}

impl Contacts {
    /// The first address, which is the remote target of a dialog.
    #[must_use]
    pub fn first(&self) -> Option<&NameAddr> {
        match self {
            Self::Star => None,
            Self::List(list) => list.first(),
        }
    }
}

/// The parts of a valid address, borrowed.
pub(crate) struct AddressParts<'a> {
    /// A quoted string with its quotes, or tokens; empty when there is none.
    pub(crate) display: &'a str,
    pub(crate) uri: &'a str,
}

/// Parses one address; its header parameters go to `sink`. The URI is split off but not checked yet.
pub(crate) fn take_parts<'a>(
    cursor: &mut Cursor<'a>,
    sink: &mut impl FnMut(&'a str, Option<&'a str>),
) -> Result<AddressParts<'a>, Malformed> {
    cursor.skip_space();
    let display = if cursor.peek() == Some(b'"') {
        let display = cursor.quoted()?;
        cursor.skip_space();
        if cursor.peek() != Some(b'<') {
            return Err(Malformed("address"));
        }
        display
    } else {
        // Tokens before an angle bracket are a display name; otherwise the cursor stays at the addr-spec.
        let mut ahead = *cursor;
        let tokens = ahead.take_while(|b| is_token_byte(b) || !b.is_ascii() || matches!(b, b' ' | b'\t'));
        if ahead.peek() == Some(b'<') {
            *cursor = ahead;
            tokens.trim_end_matches([' ', '\t'])
        } else {
            ""
        }
    };
    let uri = if cursor.eat(b'<') {
        let uri = cursor.take_while(|b| b != b'>');
        if !cursor.eat(b'>') {
            return Err(Malformed("address"));
        }
        uri
    } else {
        // §20: an addr-spec with a comma, question mark or semicolon must be in angle brackets.
        let uri = cursor.take_while(|b| !matches!(b, b';' | b',' | b' ' | b'\t' | b'<' | b'>' | b'"'));
        if uri.contains('?') {
            return Err(Malformed("address"));
        }
        uri
    };
    scan::params(cursor, sink)?;
    Ok(AddressParts { display, uri })
}

/// Checks one address of a list without keeping it.
pub(crate) fn check(cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
    let parts = take_parts(cursor, &mut |_, _| {})?;
    Parts::split(parts.uri).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_and_print() {
        for (text, display, uri, tag) in [
            ("\"A. \\\"B\\\"\" <sip:a@h;x=1>;tag=t", Some("A. \"B\""), "sip:a@h;x=1", Some("t")),
            ("A B  <sip:a@h>", Some("A B"), "sip:a@h", None),
            ("A<sip:a@h>", Some("A"), "sip:a@h", None),
            ("<sip:a@h> ; tag = t", None, "sip:a@h", Some("t")),
            ("sip:a@h;tag=t", None, "sip:a@h", Some("t")),
            ("Müller <sip:a@h>", Some("Müller"), "sip:a@h", None),
            ("\"\" <tel:+1>", Some(""), "tel:+1", None),
        ] {
            let address = NameAddr::parse(text).unwrap();
            assert_eq!(address.display.as_deref(), display, "{text}");
            assert_eq!(address.uri.to_string(), uri, "{text}");
            assert_eq!(address.tag(), tag, "{text}");
            assert_eq!(NameAddr::parse(&address.to_string()).unwrap(), address, "{text}");
        }
        for text in [
            "",
            "<>",
            "<sip:a@h",
            "sip:a@h>",
            "\"a <sip:a@h>",
            "\"a\" sip:a@h",
            "A, B <sip:a@h>",
            "< sip:a@h >",
            "sip:a@h?x=1",
            "<sip:a@h>x",
            "*",
        ] {
            assert!(NameAddr::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn preferences_and_lifetimes_of_contacts() {
        for (params, q_permille, expires) in [
            ("", 1_000, None),
            (";q=0.5;expires=60", 500, Some(60)),
            (";q=1", 1_000, None),
            (";q=0.333", 333, None),
            (";q=0", 0, None),
            (";q=7;expires=280297596632815", 1_000, Some(u32::MAX)),
            (";q=0.1234;expires=x", 1_000, None),
        ] {
            let address = NameAddr::parse(&format!("<sip:a@h>{params}")).unwrap();
            assert_eq!((address.q_permille(), address.expires()), (q_permille, expires), "{params}");
        }
    }
}
