//! The session cookie, and the tokens that prove that a form comes from a page of the panel.
//!
//! The cookie contains the token of `POST /auth/login`: one login, one session and one revocation for the API and
//! the panel.

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The cookies of the panel, with their names on this connection.
///
/// Over TLS they have the prefix `__Host-` (RFC 6265bis §4.1.3.2), so that no other host of the domain can set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cookies {
    secure: bool,
}

impl Cookies {
    /// The cookies of a listener with or without TLS, or behind a proxy that ends TLS.
    ///
    /// The header is not checked against the trusted proxies: a client that forges it changes its own cookie only.
    pub(crate) fn of(secure: bool, headers: &HeaderMap) -> Self {
        let forwarded = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
        Self { secure: secure || forwarded }
    }

    /// The token of the session; `None` if there is none, or if no header can contain it.
    pub(crate) fn session(self, headers: &HeaderMap) -> Option<&str> {
        self.find(headers, SESSION)
    }

    /// The secret of the login form.
    pub(crate) fn login_secret(self, headers: &HeaderMap) -> Option<&str> {
        self.find(headers, LOGIN)
    }

    /// `Set-Cookie` that begins a session.
    pub(crate) fn begin(self, token: &str) -> String {
        self.set(SESSION, token, SESSION_S)
    }

    /// `Set-Cookie` that ends the session in the browser.
    pub(crate) fn end(self) -> String {
        self.set(SESSION, "", 0)
    }

    /// `Set-Cookie` for the secret of the login form.
    pub(crate) fn ask(self, secret: &str) -> String {
        self.set(LOGIN, secret, LOGIN_S)
    }

    fn set(self, name: &str, value: &str, seconds: u32) -> String {
        let (prefix, secure) = if self.secure { (PREFIX, "; Secure") } else { ("", "") };
        format!("{prefix}{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
    }

    fn find<'h>(self, headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let is_ours = |found: &str| match found.strip_prefix(PREFIX) {
            Some(bare) => self.secure && bare == name,
            None => !self.secure && found == name,
        };
        let (_, value) = pairs.find(|(found, _)| is_ours(found))?;
        (!value.is_empty()).then_some(value)
    }
}

/// The token in every form of a session: a hash of the session's own token, which no other site has.
pub(crate) fn form_token(purpose: &str, secret: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(purpose.as_bytes());
    hash.update([0]);
    hash.update(secret.as_bytes());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares both tokens in a time that does not depend on where they differ.
pub(crate) fn is_same(sent: &str, expected: &str) -> bool {
    bool::from(sent.as_bytes().ct_eq(expected.as_bytes()))
}

const LOGIN: &str = "sidetone_login";
/// How long a login form stays valid, in seconds.
const LOGIN_S: u32 = 3_600;
const PREFIX: &str = "__Host-";
const SESSION: &str = "sidetone_session";
/// As long as the session of the API.
const SESSION_S: u32 = 12 * 3_600;

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn sent(line: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(COOKIE, HeaderValue::from_static(line))])
    }

    #[test]
    fn cookies_are_strict_and_secure_under_tls() {
        let plain = Cookies { secure: false };
        assert_eq!(
            plain.begin("a.b.c"),
            "sidetone_session=a.b.c; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"
        );
        let secure = Cookies { secure: true };
        assert_eq!(
            secure.begin("a.b.c"),
            "__Host-sidetone_session=a.b.c; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure"
        );
        assert!(secure.end().starts_with("__Host-sidetone_session=; Path=/; Max-Age=0;"));
    }

    #[test]
    fn a_proxy_that_ends_tls_makes_cookies_secure() {
        let forwarded = HeaderMap::from_iter([(
            axum::http::HeaderName::from_static("x-forwarded-proto"),
            HeaderValue::from_static("https"),
        )]);
        assert_eq!(Cookies::of(false, &forwarded), Cookies { secure: true });
        assert_eq!(Cookies::of(false, &HeaderMap::new()), Cookies { secure: false });
    }

    #[test]
    fn only_the_cookie_of_this_scheme_is_read() {
        let both = sent("a=b; sidetone_session=plain; __Host-sidetone_session=secure");
        assert_eq!(Cookies { secure: false }.session(&both), Some("plain"));
        assert_eq!(Cookies { secure: true }.session(&both), Some("secure"));
        assert_eq!(Cookies { secure: true }.session(&sent("sidetone_session=plain")), None);
        assert_eq!(Cookies { secure: false }.session(&sent("sidetone_session=")), None);
        assert_eq!(Cookies { secure: false }.session(&HeaderMap::new()), None);
    }

    #[test]
    fn tokens_differ_by_session_and_purpose() {
        let token = form_token("form", "one");
        assert_eq!(token.len(), 64);
        assert!(is_same(&token, &form_token("form", "one")));
        for other in [form_token("form", "two"), form_token("login", "one"), String::new(), "x".to_owned()] {
            assert!(!is_same(&other, &token));
        }
    }
}
