//! Authentication headers with raw values: challenges and credentials (RFC 3261 §22, RFC 8760).
//!
//! A digest is computed over the text as it was sent, so values are decoded only on request.

use std::borrow::Cow;
use std::fmt;

use crate::message::limits::PARAMS_MAX;
use crate::message::params::unquote;
use crate::message::scan::Cursor;
use crate::message::{Malformed, Param};

/// A challenge or credentials of any scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    scheme: String,
    params: Vec<Param>,
}

impl Digest {
    /// An empty `Digest` header, to fill with [`Digest::with`] and [`Digest::with_quoted`].
    #[must_use]
    pub fn new() -> Self {
        Self { scheme: "Digest".to_owned(), params: Vec::new() }
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
        let mut digest = Self { scheme: scheme.to_owned(), params: Vec::new() };
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
            digest.params.push(Param { name: name.to_owned(), value: Some(value.to_owned()) });
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
        self.params.push(Param { name: name.to_owned(), value: Some(value.to_owned()) });
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
        &self.scheme
    }

    /// Whether the scheme is `Digest`.
    #[must_use]
    pub fn is_digest(&self) -> bool {
        self.scheme.eq_ignore_ascii_case("Digest")
    }

    /// A parameter exactly as it was sent, with its quotes.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|p| p.name.eq_ignore_ascii_case(name)).and_then(|p| p.value.as_deref())
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

    /// All parameters in their order.
    pub fn params(&self) -> std::slice::Iter<'_, Param> {
        self.params.iter()
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheme)?;
        for (at, Param { name, value }) in self.params.iter().enumerate() {
            let comma = if at == 0 { " " } else { ", " };
            write!(f, "{comma}{name}={}", value.as_deref().unwrap_or(""))?;
        }
        Ok(())
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
