//! The arithmetic of digest authentication: HA1, HA2 and the response (RFC 7616 §3.4).

use std::fmt;

use md5::Md5;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A hash algorithm of digest authentication (RFC 8760 §2.1); the stronger one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// MD5: broken, but the only algorithm of many phones.
    Md5,
    /// SHA-256.
    Sha256,
}

impl Algorithm {
    /// The token of the `algorithm` parameter.
    pub const fn as_str(self) -> &'static str {
        match self {
            Algorithm::Md5 => "MD5",
            Algorithm::Sha256 => "SHA-256",
        }
    }

    /// The algorithm of an `algorithm` parameter; MD5 when there is none (RFC 3261 §22.4), `None` for all others,
    /// the `-sess` forms too.
    pub fn from_token(token: Option<&str>) -> Option<Self> {
        match token {
            None => Some(Algorithm::Md5),
            Some(token) if token.eq_ignore_ascii_case("MD5") => Some(Algorithm::Md5),
            Some(token) if token.eq_ignore_ascii_case("SHA-256") => Some(Algorithm::Sha256),
            Some(_) => None,
        }
    }

    /// The hash of `parts` joined by colons, in lower-case hex.
    fn hash(self, parts: &[&str]) -> Hex {
        match self {
            Algorithm::Md5 => Hex::of(joined::<Md5>(parts).as_ref()),
            Algorithm::Sha256 => Hex::of(joined::<Sha256>(parts).as_ref()),
        }
    }
}

fn joined<H: Digest>(parts: &[&str]) -> impl AsRef<[u8]> {
    let mut hash = H::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            hash.update(b":");
        }
        hash.update(part.as_bytes());
    }
    hash.finalize()
}

/// A hash in lower-case hex.
struct Hex {
    digits: [u8; 64],
    len: usize,
}

impl Hex {
    fn of(bytes: &[u8]) -> Self {
        let mut hex = Hex { digits: [0; 64], len: 0 };
        for (pair, byte) in hex.digits.chunks_exact_mut(2).zip(bytes) {
            pair.copy_from_slice(&hex_digits(*byte));
            hex.len += 2;
        }
        hex
    }

    fn as_str(&self) -> &str {
        self.digits.get(..self.len).and_then(|digits| std::str::from_utf8(digits).ok()).unwrap_or_default()
    }
}

/// The two lower-case hex digits of a byte.
pub(super) const fn hex_digits(byte: u8) -> [u8; 2] {
    const fn digit(value: u8) -> u8 {
        if value < 10 { b'0' + value } else { b'a' + value - 10 }
    }
    [digit(byte >> 4), digit(byte & 0x0f)]
}

/// Stored instead of a password: the HA1 of each algorithm, in hex.
///
/// It is valid only for this user in this realm, but there it is as secret as the password: `Debug` does not
/// print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    ha1_md5: String,
    ha1_sha256: String,
}

impl Credential {
    /// The credential of a password.
    pub fn new(username: &str, realm: &str, password: &str) -> Self {
        let parts = [username, realm, password];
        let ha1 = |algorithm: Algorithm| algorithm.hash(&parts).as_str().to_owned();
        Credential { ha1_md5: ha1(Algorithm::Md5), ha1_sha256: ha1(Algorithm::Sha256) }
    }

    /// The credential from two stored hex texts; `None` when their form is wrong.
    pub fn from_stored(ha1_md5: &str, ha1_sha256: &str) -> Option<Self> {
        let is_hex = |text: &str, len: usize| {
            text.len() == len && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        (is_hex(ha1_md5, 32) && is_hex(ha1_sha256, 64))
            .then(|| Credential { ha1_md5: ha1_md5.to_owned(), ha1_sha256: ha1_sha256.to_owned() })
    }

    /// The HA1 of an algorithm, for storage: 32 hex digits for MD5, 64 for SHA-256.
    pub fn ha1(&self, algorithm: Algorithm) -> &str {
        match algorithm {
            Algorithm::Md5 => &self.ha1_md5,
            Algorithm::Sha256 => &self.ha1_sha256,
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(…)")
    }
}

/// The parameters that `qop=auth` adds (RFC 7616 §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qop<'a> {
    /// The nonce count: eight hex digits, as sent.
    pub nc: &'a str,
    /// The client's nonce.
    pub cnonce: &'a str,
}

/// The `response` of a request, in hex.
///
/// Every text is used as it is between its quotes on the wire, escapes included: both sides hash the same
/// bytes without interpreting them. Without `qop` it is the form of RFC 2069, which SIP still permits.
pub fn response(
    algorithm: Algorithm,
    credential: &Credential,
    nonce: &str,
    qop: Option<Qop<'_>>,
    method: &str,
    uri: &str,
) -> String {
    let ha2 = algorithm.hash(&[method, uri]);
    let (ha1, ha2) = (credential.ha1(algorithm), ha2.as_str());
    let response = match qop {
        None => algorithm.hash(&[ha1, nonce, ha2]),
        Some(Qop { nc, cnonce }) => algorithm.hash(&[ha1, nonce, nc, cnonce, "auth", ha2]),
    };
    response.as_str().to_owned()
}

/// Whether two texts are equal; the time depends only on their lengths.
pub(super) fn equal(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_2617_section_3_5() {
        let credential = Credential::new("Mufasa", "testrealm@host.com", "Circle Of Life");
        assert_eq!(credential.ha1(Algorithm::Md5), "939e7578ed9e3c518a452acee763bce9");
        let qop = Qop { nc: "00000001", cnonce: "0a4f113b" };
        let nonce = "dcd98b7102dd2f0e8b11d0f600bfb0c093";
        assert_eq!(
            response(Algorithm::Md5, &credential, nonce, Some(qop), "GET", "/dir/index.html"),
            "6629fae49393a05397450978507c4ef1"
        );
    }

    #[test]
    fn rfc_2069_section_2_4_as_corrected() {
        // The RFC's own value is wrong; this one is from erratum 749.
        let credential = Credential::new("Mufasa", "testrealm@host.com", "CircleOfLife");
        let nonce = "dcd98b7102dd2f0e8b11d0f600bfb0c093";
        assert_eq!(
            response(Algorithm::Md5, &credential, nonce, None, "GET", "/dir/index.html"),
            "1949323746fe6a43ef61f9606e7febea"
        );
    }

    #[test]
    fn rfc_7616_section_3_9_1() {
        let credential = Credential::new("Mufasa", "http-auth@example.org", "Circle of Life");
        let qop = Qop { nc: "00000001", cnonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ" };
        let table = [
            (Algorithm::Md5, "8ca523f5e9506fed4657c9700eebdbec"),
            (Algorithm::Sha256, "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ];
        for (algorithm, expected) in table {
            let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v";
            assert_eq!(
                response(algorithm, &credential, nonce, Some(qop), "GET", "/dir/index.html"),
                expected
            );
        }
    }

    #[test]
    fn a_credential_is_stored_and_read_back_but_not_printed() {
        let credential = Credential::new("1001", "acme.test", "secret");
        let (md5, sha256) = (credential.ha1(Algorithm::Md5), credential.ha1(Algorithm::Sha256));
        assert_eq!(Credential::from_stored(md5, sha256).as_ref(), Some(&credential));
        assert_eq!(Credential::from_stored(sha256, md5), None);
        assert_eq!(Credential::from_stored(&md5.to_uppercase(), sha256), None);
        assert_eq!(format!("{credential:?}"), "Credential(…)");
    }

    #[test]
    fn algorithms_by_their_tokens() {
        let table = [
            (None, Some(Algorithm::Md5)),
            (Some("md5"), Some(Algorithm::Md5)),
            (Some("SHA-256"), Some(Algorithm::Sha256)),
            (Some("MD5-sess"), None),
            (Some("SHA-512-256"), None),
            (Some(""), None),
        ];
        for (token, expected) in table {
            assert_eq!(Algorithm::from_token(token), expected, "{token:?}");
        }
    }
}
