//! Responses to the challenges of a registrar (RFC 3261 §22, RFC 7616).

use sidetone_sip::auth::{Algorithm, Credential, Qop, response};

use crate::program::sip_text::line;

/// A challenge that the program can answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// The realm of the credentials.
    pub(crate) realm: String,
    nonce: String,
    opaque: Option<String>,
    algorithm: Algorithm,
    has_qop: bool,
    /// The nonce was too old; the credentials may have been right.
    pub(crate) is_stale: bool,
}

impl Challenge {
    /// Reads the first challenge with a supported algorithm.
    pub(crate) fn read<'a>(mut values: impl Iterator<Item = &'a str>) -> Option<Self> {
        values.find_map(|value| {
            let text = value.strip_prefix("Digest ")?;
            Some(Challenge {
                realm: parameter(text, "realm")?.to_owned(),
                nonce: parameter(text, "nonce")?.to_owned(),
                opaque: parameter(text, "opaque").map(str::to_owned),
                algorithm: Algorithm::from_token(parameter(text, "algorithm"))?,
                has_qop: parameter(text, "qop")
                    .is_some_and(|qop| qop.split(',').any(|one| one.trim() == "auth")),
                is_stale: parameter(text, "stale").is_some_and(|stale| stale.eq_ignore_ascii_case("true")),
            })
        })
    }

    /// Appends an `Authorization` line; `count` is the number of uses of the nonce, including this one.
    pub(crate) fn write_answer(
        &self,
        to: &mut Vec<u8>,
        user: &str,
        credential: &Credential,
        count: u32,
        uri: &str,
    ) {
        let (nc, cnonce) = (format!("{count:08x}"), format!("{:08x}", count.wrapping_mul(0x9e37_79b9)));
        let qop = self.has_qop.then_some(Qop { nc: &nc, cnonce: &cnonce });
        let hash = response(self.algorithm, credential, &self.nonce, qop, "REGISTER", uri);
        let (realm, nonce, algorithm) = (&self.realm, &self.nonce, self.algorithm.as_str());
        line(
            to,
            format_args!(
                "Authorization: Digest username=\"{user}\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{uri}\", \
                 response=\"{hash}\", algorithm={algorithm}"
            ),
        );
        if self.has_qop {
            line(to, format_args!(", qop=auth, nc={nc}, cnonce=\"{cnonce}\""));
        }
        if let Some(opaque) = &self.opaque {
            line(to, format_args!(", opaque=\"{opaque}\""));
        }
        to.extend_from_slice(b"\r\n");
    }
}

/// Returns the value of a parameter, without its quotes.
fn parameter<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = text;
    loop {
        let (key, after) = rest.split_once('=')?;
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find(',').unwrap_or(after.len())),
        };
        if key.trim_matches([',', ' ']).eq_ignore_ascii_case(name) {
            return Some(value.trim());
        }
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_parameters_of_a_challenge() {
        let text =
            r#"realm="a, nonce=b", nonce="n=1", qop="auth,auth-int", algorithm=MD5, STALE=TRUE , opaque="""#;
        for (name, expected) in [
            ("realm", Some("a, nonce=b")),
            ("nonce", Some("n=1")),
            ("qop", Some("auth,auth-int")),
            ("algorithm", Some("MD5")),
            ("stale", Some("TRUE")),
            ("opaque", Some("")),
            ("domain", None),
        ] {
            assert_eq!(parameter(text, name), expected, "{name}");
        }
        let unknown = "Digest realm=\"r\", nonce=\"1\", algorithm=SHA-512-256";
        let known = "Digest realm=\"r\", nonce=\"2\"";
        let challenge = Challenge::read([unknown, "Basic realm=\"r\"", known].into_iter()).unwrap();
        assert_eq!((challenge.nonce.as_str(), challenge.has_qop, challenge.is_stale), ("2", false, false));
        assert_eq!(Challenge::read([unknown].into_iter()), None);
    }

    #[test]
    fn an_answer_is_what_the_engine_computes() {
        let challenge =
            Challenge::read([r#"Digest realm="load.test", nonce="abc", qop="auth""#].into_iter()).unwrap();
        let credential = Credential::new("100000", "load.test", "secret");
        let mut text = Vec::new();
        challenge.write_answer(&mut text, "100000", &credential, 3, "sip:load.test");
        let text = String::from_utf8(text).unwrap();
        let value = text.strip_prefix("Authorization: Digest ").unwrap().trim_end();
        let qop = Qop { nc: "00000003", cnonce: parameter(value, "cnonce").unwrap() };
        let expected = response(Algorithm::Md5, &credential, "abc", Some(qop), "REGISTER", "sip:load.test");
        assert_eq!(parameter(value, "response"), Some(expected.as_str()));
        assert_eq!(
            (parameter(value, "username"), parameter(value, "nc")),
            (Some("100000"), Some("00000003"))
        );
    }
}
