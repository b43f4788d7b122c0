//! Authentication headers with raw values: challenges and credentials (RFC 3261 §22, RFC 8760).
//!
//! A digest is computed over the text as it was sent, so values are decoded only on request.

use std::borrow::Cow;
use std::fmt;

use crate::message::Malformed;
use crate::message::limits::PARAMS_MAX;
use crate::message::params::unquote;
use crate::message::scan::Cursor;

/// A challenge or credentials of any scheme: one text, and the positions of its parameters in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    text: String,
    scheme_len: u32,
    params: Vec<Place>,
}

/// One parameter in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    name: (u32, u32),
    value: (u32, u32),
}

impl Digest {
    /// An empty `Digest` header, to fill with [`Digest::with`] and [`Digest::with_quoted`].
    #[must_use]
    pub fn new() -> Self {
        Self { text: "Digest".to_owned(), scheme_len: 6, params: Vec::new() }
    }

    /// Parses `Digest realm="a", nonce="b"`.
    ///
    /// # Errors
    ///
    /// When the scheme is missing, a parameter is malformed, or a name occurs twice.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(text);
        cursor.skip_space();
        let scheme = cursor.token();
        cursor.skip_space();
        if scheme.is_empty() || cursor.is_done() {
            return Err(Malformed("authentication"));
        }
        let mut digest = Self {
            text: String::with_capacity(text.len() + 2),
            scheme_len: u32::try_from(scheme.len()).map_err(|_| Malformed("authentication"))?,
            params: Vec::with_capacity(PARAMS_LIKELY),
        };
        digest.text.push_str(scheme);
        loop {
            let name = cursor.token();
            if name.is_empty() || !cursor.eat_spaced(b'=') || digest.params.len() >= PARAMS_MAX {
                return Err(Malformed("authentication"));
            }
            let value = if cursor.peek() == Some(b'"') {
                cursor.quoted()?
            } else {
                cursor.take_while(|b| !matches!(b, b',' | b'"' | b' ' | b'\t'))
            };
            // Peers differ in whether the first or the last of two counts, and an attacker could exploit
            // that.
            if digest.raw(name).is_some() {
                return Err(Malformed("authentication"));
            }
            digest.push(name, value);
            if !cursor.eat_spaced(b',') {
                break;
            }
        }
        cursor.skip_space();
        if cursor.is_done() { Ok(digest) } else { Err(Malformed("authentication")) }
    }

    /// The header with a token parameter, such as `algorithm` and `nc`.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.push(name, value);
        self
    }

    /// The header with a quoted parameter, such as `realm` and `nonce`; the value is plain text.
    #[must_use]
    pub fn with_quoted(self, name: &str, value: &str) -> Self {
        let quoted = format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
        self.with(name, &quoted)
    }

    /// The scheme as it was written; compare it case-insensitively.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.text.get(..self.scheme_len as usize).unwrap_or_default()
    }

    /// Whether the scheme is `Digest`.
    #[must_use]
    pub fn is_digest(&self) -> bool {
        self.scheme().eq_ignore_ascii_case("Digest")
    }

    /// A parameter exactly as it was sent, with its quotes.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&str> {
        let place = self.params.iter().find(|place| self.at(place.name).eq_ignore_ascii_case(name))?;
        Some(self.at(place.value))
    }

    /// The text between a parameter's quotes with escapes as they were sent, over which a digest is computed.
    #[must_use]
    pub fn inner(&self, name: &str) -> Option<&str> {
        self.raw(name).map(|raw| raw.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(raw))
    }

    /// A parameter without quotes and escapes, for comparison and display.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        self.raw(name).map(unquote)
    }

    /// The parameters in their order: names, and values as they were sent.
    pub fn params(&self) -> impl Iterator<Item = (&str, &str)> {
        self.params.iter().map(|place| (self.at(place.name), self.at(place.value)))
    }

    fn push(&mut self, name: &str, value: &str) {
        self.text.push_str(if self.params.is_empty() { " " } else { ", " });
        let name = self.append(name);
        self.text.push('=');
        let value = self.append(value);
        self.params.push(Place { name, value });
    }

    /// Appends text; returns its position. A header value is far below 4 GiB.
    fn append(&mut self, text: &str) -> (u32, u32) {
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let start = place(self.text.len());
        self.text.push_str(text);
        (start, place(self.text.len()))
    }

    fn at(&self, (start, end): (u32, u32)) -> &str {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }
}

/// Parameters of most headers.
const PARAMS_LIKELY: usize = 12;

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_raw_until_they_are_asked_for() {
        let text = "Digest username=\"a\\\"b\", realm=\"r\", uri=\"sip:e;x=1,2\", qop=auth, nc=00000001";
        let digest = Digest::parse(text).unwrap();
        assert_eq!(digest.raw("Username"), Some("\"a\\\"b\""));
        assert_eq!(digest.inner("username"), Some("a\\\"b"));
        assert_eq!(digest.get("username").as_deref(), Some("a\"b"));
        assert_eq!(digest.get("qop").as_deref(), Some("auth"));
        assert_eq!(digest.to_string(), text);
        let built = Digest::new().with_quoted("realm", "a\"b").with("algorithm", "SHA-256");
        assert_eq!(built.to_string(), "Digest realm=\"a\\\"b\", algorithm=SHA-256");
        for text in
            ["", "Digest", "Digest a", "Digest a=1 b=2", "Digest a=1, a=2", "Digest a=\"1", "Digest a=1,"]
        {
            assert!(Digest::parse(text).is_err(), "{text:?}");
        }
    }
}
