//! SIP, SIPS, TEL and other URIs (RFC 3261 §19.1, RFC 3966).
//!
//! Escapes are kept as they were written; [`Uri::user_decoded`] decodes them.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;

use crate::message::limits::PARAMS_MAX;
use crate::message::scan::{Cursor, divide};
use crate::message::{Host, Malformed, Params, host};

/// The scheme of a URI.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `sip:`.
    Sip,
    /// `sips:`.
    Sips,
    /// `tel:`, a telephone number.
    Tel,
    /// Any other, as it was written.
    Other(String),
}

impl Scheme {
    /// The scheme without its colon.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Sip => "sip",
            Self::Sips => "sips",
            Self::Tel => "tel",
            Self::Other(name) => name,
        }
    }
}

/// A URI. A SIP URI has a host; a TEL URI has a number as its user and no host; any other URI is opaque text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    scheme: Scheme,
    user: Option<String>,
    password: Option<String>,
    host: Option<Host>,
    port: Option<u16>,
    params: Params,
    headers: Option<String>,
}

impl Uri {
    /// A `sip:` URI.
    #[must_use]
    pub const fn sip(host: Host, port: Option<u16>) -> Self {
        Self {
            scheme: Scheme::Sip,
            user: None,
            password: None,
            host: Some(host),
            port,
            params: Params::new(),
            headers: None,
        }
    }

    /// Parses a URI.
    ///
    /// # Errors
    ///
    /// When the text has no scheme, or breaks the grammar of its scheme.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let parts = Parts::split(text)?;
        let mut params = Params::new();
        parts.each_param(|name, value| params.push(name, value))?;
        Ok(Self {
            scheme: match parts.kind {
                Kind::Sip => Scheme::Sip,
                Kind::Sips => Scheme::Sips,
                Kind::Tel => Scheme::Tel,
                Kind::Other => Scheme::Other(parts.scheme.to_owned()),
            },
            user: parts.user.map(str::to_owned),
            password: parts.password.map(str::to_owned),
            host: parts.host.map(Host::parse).transpose()?,
            port: parts.port,
            params,
            headers: parts.headers.map(str::to_owned),
        })
    }

    /// The URI with this user part; invalid characters are escaped.
    #[must_use]
    pub fn with_user(mut self, user: &str) -> Self {
        self.user = Some(escape_user(user));
        self
    }

    /// The URI with this parameter set to a raw value.
    #[must_use]
    pub fn with_param(mut self, name: &str, value: Option<&str>) -> Self {
        self.params.set(name, value);
        self
    }

    /// Changes the scheme to `sip` or `sips`.
    #[must_use]
    pub fn with_scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    /// Changes host and port.
    pub fn set_host(&mut self, host: Host, port: Option<u16>) {
        self.host = Some(host);
        self.port = port;
    }

    /// The parameters, mutable.
    pub const fn params_mut(&mut self) -> &mut Params {
        &mut self.params
    }

    /// Removes the headers part, `?Subject=x`.
    pub fn clear_headers(&mut self) {
        self.headers = None;
    }

    /// The scheme.
    #[must_use]
    pub const fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Whether the scheme is `sip` or `sips`.
    #[must_use]
    pub const fn is_sip(&self) -> bool {
        matches!(self.scheme, Scheme::Sip | Scheme::Sips)
    }

    /// The user part of a SIP URI, the number of a TEL URI, the whole text after the colon of any other, all raw.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The user part with its `%` escapes decoded; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn user_decoded(&self) -> Option<Cow<'_, str>> {
        self.user().map(|user| {
            if user.contains('%') {
                Cow::Owned(String::from_utf8_lossy(&unescape(user)).into_owned())
            } else {
                Cow::Borrowed(user)
            }
        })
    }

    /// The password after the user, raw.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The host; `None` unless the scheme is `sip` or `sips`.
    #[must_use]
    pub const fn host(&self) -> Option<&Host> {
        self.host.as_ref()
    }

    /// The port, if there is one.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// The parameters.
    #[must_use]
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// The raw value of a parameter; `%6C%72` is `lr` (RFC 3261 §19.1.4).
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|p| same(&p.name, name)).map(|p| p.value.as_deref().unwrap_or(""))
    }

    /// The value of a parameter with its `%` escapes decoded; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn param_decoded(&self, name: &str) -> Option<String> {
        self.param(name).map(|value| String::from_utf8_lossy(&unescape(value)).into_owned())
    }

    /// The text after `?`.
    #[must_use]
    pub fn headers(&self) -> Option<&str> {
        self.headers.as_deref()
    }

    /// The value of a header after `?`, with its `%` escapes decoded; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn header_decoded(&self, name: &str) -> Option<String> {
        let fields = self.headers()?.split('&').filter_map(|field| field.split_once('='));
        let mut named = fields.filter(|(field, _)| same(field, name));
        named.next().map(|(_, value)| String::from_utf8_lossy(&unescape(value)).into_owned())
    }

    /// Whether both URIs are equivalent according to RFC 3261 §19.1.4; not transitive, so not `Eq`.
    #[must_use]
    pub fn is_equivalent(&self, other: &Self) -> bool {
        if !self.scheme.as_str().eq_ignore_ascii_case(other.scheme.as_str()) {
            return false;
        }
        let users = match (&self.user, &other.user) {
            (Some(a), Some(b)) => unescape(a) == unescape(b),
            (None, None) => true,
            _ => false,
        };
        let passwords = match (&self.password, &other.password) {
            (Some(a), Some(b)) => unescape(a) == unescape(b),
            (None, None) => true,
            _ => false,
        };
        let hosts = match (&self.host, &other.host) {
            (Some(a), Some(b)) => a.is_equivalent(b),
            (None, None) => true,
            _ => false,
        };
        users
            && passwords
            && hosts
            && self.port == other.port
            && self.params_cover(other)
            && other.params_cover(self)
            && self.header_set() == other.header_set()
    }

    /// Parameters in both must match; user, ttl, method, maddr and (by errata) transport must not be in only
    /// one of them.
    fn params_cover(&self, other: &Self) -> bool {
        self.params.iter().all(|param| {
            let mut twins = other.params.iter().filter(|p| same(&p.name, &param.name)).peekable();
            if twins.peek().is_none() {
                return !["user", "ttl", "method", "maddr", "transport"]
                    .iter()
                    .any(|name| same(&param.name, name));
            }
            twins.any(|twin| match (&param.value, &twin.value) {
                (Some(a), Some(b)) => same(a, b),
                (None, None) => true,
                _ => false,
            })
        })
    }

    fn header_set(&self) -> Vec<Vec<u8>> {
        let text = self.headers.as_deref().unwrap_or("");
        let mut set: Vec<_> = text
            .split('&')
            .filter(|h| !h.is_empty())
            .map(|header| {
                let (name, value) = header.split_once('=').unwrap_or((header, ""));
                let mut entry = unescape(name).to_ascii_lowercase();
                entry.push(b'=');
                entry.extend(unescape(value));
                entry
            })
            .collect();
        set.sort_unstable();
        set
    }
}

impl std::str::FromStr for Uri {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        Self::parse(text)
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.scheme.as_str())?;
        if let Some(user) = &self.user {
            f.write_str(user)?;
            if let Some(password) = &self.password {
                write!(f, ":{password}")?;
            }
            if self.host.is_some() {
                f.write_str("@")?;
            }
        }
        if let Some(host) = &self.host {
            host.fmt(f)?;
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        self.params.fmt(f)?;
        match &self.headers {
            Some(headers) => write!(f, "?{headers}"),
            None => Ok(()),
        }
    }
}

/// The grammar of a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sip,
    Sips,
    Tel,
    Other,
}

/// The parts of a valid URI, borrowed.
pub(crate) struct Parts<'a> {
    pub(crate) kind: Kind,
    scheme: &'a str,
    user: Option<&'a str>,
    password: Option<&'a str>,
    host: Option<&'a str>,
    port: Option<u16>,
    params: &'a str,
    pub(crate) headers: Option<&'a str>,
}

impl<'a> Parts<'a> {
    /// Splits and checks a URI.
    pub(crate) fn split(text: &'a str) -> Result<Self, Malformed> {
        let odd = text.bytes().any(|b| b <= b' ' || matches!(b, 0x7f | b'<' | b'>'));
        // U+FFFD replaces bytes that were not UTF-8, so the URI was not sent in this form.
        if odd || (!text.is_ascii() && text.contains('\u{fffd}')) {
            return Err(Malformed("URI"));
        }
        let (scheme, rest) = divide(text, b':').ok_or(Malformed("URI"))?;
        let kind = match scheme {
            s if s.eq_ignore_ascii_case("sip") => Kind::Sip,
            s if s.eq_ignore_ascii_case("sips") => Kind::Sips,
            s if s.eq_ignore_ascii_case("tel") => Kind::Tel,
            s if is_scheme(s) => Kind::Other,
            _ => return Err(Malformed("URI scheme")),
        };
        let parts = Self {
            kind,
            scheme,
            user: None,
            password: None,
            host: None,
            port: None,
            params: "",
            headers: None,
        };
        let parts = match kind {
            Kind::Sip | Kind::Sips => parts.split_sip(rest)?,
            Kind::Tel => parts.split_tel(rest)?,
            Kind::Other if rest.is_empty() => return Err(Malformed("URI")),
            Kind::Other => Self { user: Some(rest), ..parts },
        };
        parts.each_param(|_, _| {})?;
        Ok(parts)
    }

    fn split_sip(mut self, rest: &'a str) -> Result<Self, Malformed> {
        let rest = match divide(rest, b'@') {
            Some((userinfo, rest)) => {
                let (user, password) = match divide(userinfo, b':') {
                    Some((user, password)) => (user, Some(password)),
                    None => (userinfo, None),
                };
                if user.is_empty() || !is_userinfo(userinfo) || memchr(b'@', rest.as_bytes()).is_some() {
                    return Err(Malformed("URI user"));
                }
                self.user = Some(user);
                self.password = password;
                rest
            }
            None => rest,
        };
        let mut cursor = Cursor::new(rest);
        let (host, port) = host::take(&mut cursor, false)?;
        self.host = Some(host);
        self.port = port;
        self.split_tail(cursor.rest())
    }

    fn split_tel(mut self, rest: &'a str) -> Result<Self, Malformed> {
        let end = rest.find([';', '?']).unwrap_or(rest.len());
        let (user, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let sound = user.bytes().any(|b| b.is_ascii_hexdigit() || matches!(b, b'*' | b'#'))
            && user.bytes().enumerate().all(|(at, b)| {
                b.is_ascii_hexdigit()
                    || matches!(b, b'-' | b'.' | b'(' | b')' | b'*' | b'#')
                    || (at == 0 && b == b'+')
            });
        if !sound {
            return Err(Malformed("telephone number"));
        }
        self.user = Some(user);
        self.split_tail(tail)
    }

    fn split_tail(mut self, tail: &'a str) -> Result<Self, Malformed> {
        let (params, headers) = match divide(tail, b'?') {
            Some((params, headers)) => (params, Some(headers)),
            None => (tail, None),
        };
        if !params.is_empty() && !params.starts_with(';') {
            return Err(Malformed("URI"));
        }
        self.params = params;
        self.headers = headers;
        Ok(self)
    }

    fn each_param(&self, mut sink: impl FnMut(&'a str, Option<&'a str>)) -> Result<(), Malformed> {
        let mut rest = self.params.strip_prefix(';');
        let mut count = 0;
        while let Some(text) = rest {
            let (param, tail) = divide(text, b';').map_or((text, None), |(param, tail)| (param, Some(tail)));
            let (name, value) =
                divide(param, b'=').map_or((param, None), |(name, value)| (name, Some(value)));
            count += 1;
            if name.is_empty() || count > PARAMS_MAX {
                return Err(Malformed("URI parameter"));
            }
            sink(name, value);
            rest = tail;
        }
        Ok(())
    }
}

/// Whether text has the form of a scheme (RFC 3986 §3.1).
fn is_scheme(text: &str) -> bool {
    text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

/// Whether a user part contains no quote or bracket, and two hex digits after every `%`.
fn is_userinfo(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if matches!(byte, b'"' | b'[' | b']') {
            return false;
        }
        if byte == b'%' {
            let hex = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_hexdigit());
            if !hex(bytes.next()) || !hex(bytes.next()) {
                return false;
            }
        }
    }
    true
}

/// Decodes `%` escapes; a `%` without two hex digits is unchanged.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if let (b'%', [high, low, after @ ..]) = (byte, tail)
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            out.push(high * 16 + low);
            rest = after;
        } else {
            out.push(byte);
        }
    }
    out
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|d| u8::try_from(d).ok())
}

/// Equal, ignoring case and escapes.
fn same(a: &str, b: &str) -> bool {
    if a.contains('%') || b.contains('%') {
        unescape(a).eq_ignore_ascii_case(&unescape(b))
    } else {
        a.eq_ignore_ascii_case(b)
    }
}

/// Escapes characters that are not allowed in a user part; `%` is always escaped, because the text is plain.
fn escape_user(user: &str) -> String {
    use fmt::Write as _;
    let mut out = String::with_capacity(user.len());
    for byte in user.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()&=+$,;?/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3261_19_1_4_equivalence() {
        for (a, b, expected) in [
            ("sip:%61lice@atlanta.com;transport=TCP", "sip:alice@AtlanTa.CoM;Transport=tcp", true),
            ("sip:carol@chicago.com", "sip:carol@chicago.com;newparam=5", true),
            ("sip:carol@chicago.com", "sip:carol@chicago.com;security=on", true),
            ("sip:carol@chicago.com;newparam=5", "sip:carol@chicago.com;security=on", true),
            (
                "sip:biloxi.com;transport=tcp;method=REGISTER?to=sip:bob%40biloxi.com",
                "sip:biloxi.com;method=REGISTER;transport=tcp?to=sip:bob%40biloxi.com",
                true,
            ),
            (
                "sip:alice@atlanta.com?subject=project%20x&priority=urgent",
                "sip:alice@atlanta.com?priority=urgent&subject=project%20x",
                true,
            ),
            ("SIP:ALICE@AtLanTa.CoM;Transport=udp", "sip:alice@AtLanTa.CoM;Transport=UDP", false),
            ("sip:bob@biloxi.com", "sip:bob@biloxi.com:5060", false),
            ("sip:bob@biloxi.com", "sip:bob@biloxi.com;transport=udp", false),
            ("sip:bob@biloxi.com", "sip:bob@biloxi.com:6000;transport=tcp", false),
            ("sip:carol@chicago.com", "sip:carol@chicago.com?Subject=next%20meeting", false),
            ("sip:bob@phone21.boxesbybob.com", "sip:bob@192.0.2.4", false),
            ("sip:carol@chicago.com;security=on", "sip:carol@chicago.com;security=off", false),
            ("sip:a@h", "sips:a@h", false),
        ] {
            let (a, b) = (Uri::parse(a).unwrap(), Uri::parse(b).unwrap());
            assert_eq!((a.is_equivalent(&b), b.is_equivalent(&a)), (expected, expected), "{a} {b}");
        }
    }

    #[test]
    fn uris_read_and_print() {
        for (text, user, host, port) in [
            ("sip:h", None, Some("h"), None),
            ("sips:a:p@h:5061;lr?x=y&z=", Some("a"), Some("h"), Some(5061)),
            ("sip:a@[2001:db8::1]:5060;x", Some("a"), Some("[2001:db8::1]"), Some(5060)),
            ("sip:+1;phone-context=x.y@h;user=phone", Some("+1;phone-context=x.y"), Some("h"), None),
            ("tel:+1-555(1)*#;ext=2", Some("+1-555(1)*#"), None, None),
            ("urn:service:sos", Some("service:sos"), None, None),
        ] {
            let uri = Uri::parse(text).unwrap();
            assert_eq!(uri.user(), user, "{text}");
            assert_eq!(uri.host().map(ToString::to_string).as_deref(), host, "{text}");
            assert_eq!(uri.port(), port, "{text}");
            assert_eq!(uri.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_uri_is_refused() {
        for text in [
            "",
            "sip",
            "sip:",
            ":h",
            "1sip:h",
            "sip:@h",
            "sip:a@",
            "sip:a@b@c",
            "sip:a b@h",
            "sip:h:",
            "sip:h:65536",
            "sip:h:x",
            "sip:[::1",
            "sip:::1",
            "sip:[::g]",
            "sip:h;",
            "sip:h;;x",
            "sip:h;=1",
            "sip:a%4@h",
            "sip:a%zz@h",
            "sip:a@h>",
            "<sip:a@h>",
            "tel:",
            "tel:+",
            "tel:x y",
            "tel:+1+2",
            "sip:h\u{0}",
        ] {
            assert!(Uri::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn user_parts_are_escaped_when_they_are_set() {
        let uri = Uri::sip(Host::parse("h").unwrap(), None).with_user("a b@c;d%ü\r");
        assert_eq!(uri.to_string(), "sip:a%20b%40c;d%25%C3%BC%0D@h");
        assert_eq!(Uri::parse(&uri.to_string()).unwrap().user_decoded().unwrap(), "a b@c;d%ü\r");
    }
}
