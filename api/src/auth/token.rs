//! Panel sessions: a JWT (RFC 7519) signed with HS256 (RFC 7515, RFC 7518 §3.2).
//!
//! Exactly one header is issued and accepted, byte for byte. As it is never parsed, a client cannot choose
//! another algorithm or another key, and no critical extension can be overlooked (RFC 8725 §3.1).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use sidetone_model::access::Role;
use sidetone_model::ids::{OrganisationId, UserId};
use sidetone_model::time::Timestamp;
use sidetone_model::user::Account;
use uuid::Uuid;

/// The secret that signs sessions; all nodes of an installation have the same one.
#[derive(Clone)]
pub struct TokenKey([u8; TokenKey::LEN]);

impl TokenKey {
    /// Bytes of a secret: as many as the hash has (RFC 7518 §3.2).
    pub const LEN: usize = 32;

    /// The signing key from `secret`, which must be random.
    pub fn new(secret: [u8; Self::LEN]) -> Self {
        Self(secret)
    }

    /// Issues a session of `account` with the id `session`.
    pub(crate) fn issue(&self, account: &Account, session: Uuid, now: Timestamp) -> Token {
        let issued_s = now.as_micros().div_euclid(SECOND_US);
        let expires_s = issued_s.saturating_add(LIFETIME_S);
        let claims = Claims {
            iss: ISSUER.to_owned(),
            aud: AUDIENCE.to_owned(),
            sub: account.user.id,
            org: account.user.organisation_id,
            role: account.user.role,
            iat: issued_s,
            exp: expires_s,
            jti: session,
            ver: account.version,
        };
        // Claims are texts and numbers, so they can always be written.
        let claims = serde_json::to_vec(&claims).unwrap_or_default();
        let signed = format!("{HEADER}.{}", URL_SAFE_NO_PAD.encode(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.mac(signed.as_bytes()).finalize().into_bytes());
        Token {
            text: format!("{signed}.{signature}"),
            expires_at: Timestamp::from_micros(expires_s.saturating_mul(SECOND_US)),
        }
    }

    /// Returns the claims of `token` if this installation signed it as a session token, it has not expired,
    /// and it does not begin in the future.
    pub(super) fn verify(&self, token: &str, now: Timestamp) -> Option<Session> {
        let (signed, signature) = token.rsplit_once('.')?;
        let claims = signed.strip_prefix(HEADER)?.strip_prefix('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        // Compares in constant time.
        self.mac(signed.as_bytes()).verify_slice(&signature).ok()?;
        let claims: Claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
        let expires_at = Timestamp::from_micros(claims.exp.checked_mul(SECOND_US)?);
        let issued_at = Timestamp::from_micros(claims.iat.checked_mul(SECOND_US)?);
        let holds = claims.iss == ISSUER
            && claims.aud == AUDIENCE
            // RFC 7519 §4.1.4: it is not accepted at or after that time.
            && now < expires_at.plus_micros(LEEWAY_US)
            && issued_at <= now.plus_micros(LEEWAY_US);
        holds.then_some(Session {
            id: claims.jti,
            user: claims.sub,
            organisation: claims.org,
            role: claims.role,
            version: claims.ver,
            expires_at,
        })
    }

    /// Returns the secret that seals the stored answers to a user's requests. Its input begins unlike that of a session's
    /// signature, which is [`HEADER`].
    pub(crate) fn seal_of(&self, user: UserId) -> [u8; 32] {
        self.mac(format!("sidetone answers of user {user}").as_bytes()).finalize().into_bytes().into()
    }

    fn mac(&self, text: &[u8]) -> Hmac<Sha256> {
        #[expect(clippy::expect_used, reason = "HMAC takes a key of any length (RFC 2104 §2)")]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(text);
        mac
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey(..)")
    }
}

/// An issued session.
pub(crate) struct Token {
    /// The bearer token for the caller's next requests.
    pub(crate) text: String,
    /// The expiry time.
    pub(crate) expires_at: Timestamp,
}

/// The claims of a verified token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    /// The session's id.
    pub(crate) id: Uuid,
    /// The user.
    pub(crate) user: UserId,
    /// The expiry time.
    pub(crate) expires_at: Timestamp,
    organisation: OrganisationId,
    role: Role,
    version: i64,
}

impl Session {
    /// Whether the account has not changed since the session began.
    pub(super) fn fits(&self, account: &Account) -> bool {
        let user = &account.user;
        !user.disabled
            && self.version == account.version
            && self.user == user.id
            && self.organisation == user.organisation_id
            && self.role == user.role
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: UserId,
    org: OrganisationId,
    role: Role,
    iat: i64,
    exp: i64,
    jti: Uuid,
    ver: i64,
}

const AUDIENCE: &str = "sidetone-api";
/// `{"typ":"JWT","alg":"HS256"}`, the header of RFC 7515 Appendix A.1 without its line end.
const HEADER: &str = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9";
const ISSUER: &str = "sidetone";
/// Tolerance for differences between the clocks of nodes.
const LEEWAY_US: i64 = 5 * SECOND_US;
/// A panel session is valid for 12 hours.
const LIFETIME_S: i64 = 12 * 60 * 60;
const SECOND_US: i64 = 1_000_000;

#[cfg(test)]
mod tests {
    use sidetone_model::user::User;

    use super::*;

    const NOW_S: i64 = 1_767_225_600;

    fn at_ms(ms: i64) -> Timestamp {
        Timestamp::from_micros(NOW_S * SECOND_US + ms * 1000)
    }

    fn account() -> Account {
        let user = User {
            id: UserId(Uuid::from_u128(1)),
            organisation_id: OrganisationId(Uuid::from_u128(2)),
            team_id: None,
            email: "ada@acme.test".parse().unwrap(),
            name: "Ada".to_owned(),
            role: Role::OrgAdmin,
            disabled: false,
            created_at: at_ms(0),
            updated_at: at_ms(0),
        };
        Account { user, version: 7 }
    }

    fn key() -> TokenKey {
        TokenKey::new([7; 32])
    }

    fn issued() -> Token {
        key().issue(&account(), Uuid::from_u128(3), at_ms(0))
    }

    /// A token of this header and these claims, correctly signed with the test's key.
    fn signed(header: &str, claims: &serde_json::Value) -> String {
        let text =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let mac = key().mac(text.as_bytes()).finalize().into_bytes();
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(mac))
    }

    fn claims() -> serde_json::Value {
        let token = issued().text;
        let claims = token.split('.').nth(1).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
    }

    #[test]
    fn the_header_is_what_it_says() {
        assert_eq!(URL_SAFE_NO_PAD.decode(HEADER).unwrap(), br#"{"typ":"JWT","alg":"HS256"}"#);
        assert_eq!(
            key().verify(&signed(r#"{"typ":"JWT","alg":"HS256"}"#, &claims()), at_ms(0)).unwrap().user,
            account().user.id
        );
    }

    #[test]
    fn a_session_lasts_exactly_twelve_hours_and_the_leeway() {
        let token = issued();
        assert_eq!(token.expires_at, at_ms(12 * 3_600_000));
        let hours_ms = 12 * 3_600_000;
        let cases = [
            (0, true),
            (-5_000, true),
            (-5_001, false),
            (hours_ms - 1, true),
            (hours_ms, true),
            (hours_ms + 4_999, true),
            (hours_ms + 5_000, false),
            (hours_ms + 6_000, false),
        ];
        for (ms, valid) in cases {
            assert_eq!(key().verify(&token.text, at_ms(ms)).is_some(), valid, "{ms} ms");
        }
    }

    #[test]
    fn only_our_own_header_is_accepted() {
        let headers = [
            r#"{"alg":"none"}"#,
            r#"{"typ":"JWT","alg":"none"}"#,
            r#"{"typ":"JWT","alg":"None"}"#,
            r#"{"typ":"JWT","alg":"HS512"}"#,
            r#"{"typ":"JWT","alg":"RS256"}"#,
            r#"{"typ":"JWT","alg":"EdDSA"}"#,
            r#"{"typ":"JWT","alg":"HS256","kid":"../../../dev/null"}"#,
            r#"{"typ":"JWT","alg":"HS256","kid":"' OR 1=1 --"}"#,
            r#"{"typ":"JWT","alg":"HS256","jku":"https://attacker.test/keys"}"#,
            r#"{"typ":"JWT","alg":"HS256","crit":["exp"]}"#,
            r#"{"alg":"HS256","typ":"JWT"}"#,
        ];
        for header in headers {
            let token = signed(header, &claims());
            assert_eq!(key().verify(&token, at_ms(0)), None, "{header}");
            // Forged by an attacker without the key.
            let (unsigned, _) = token.rsplit_once('.').unwrap();
            assert_eq!(key().verify(&format!("{unsigned}."), at_ms(0)), None, "{header}");
            assert_eq!(key().verify(unsigned, at_ms(0)), None, "{header}");
        }
    }

    #[test]
    fn every_claim_must_hold() {
        let header = r#"{"typ":"JWT","alg":"HS256"}"#;
        let cases = [
            ("iss", serde_json::json!("somebody")),
            ("aud", serde_json::json!("another-api")),
            ("aud", serde_json::json!(["sidetone-api"])),
            ("exp", serde_json::json!(NOW_S - 6)),
            ("exp", serde_json::json!(i64::MAX)),
            ("exp", serde_json::json!("tomorrow")),
            ("exp", serde_json::Value::Null),
            ("iat", serde_json::json!(NOW_S + 6)),
            ("sub", serde_json::json!("1")),
            ("role", serde_json::json!("root")),
            ("jti", serde_json::Value::Null),
            ("ver", serde_json::Value::Null),
        ];
        for (claim, value) in cases {
            let mut claims = claims();
            claims[claim] = value;
            assert_eq!(key().verify(&signed(header, &claims), at_ms(0)), None, "{claims}");
        }
    }

    #[test]
    fn a_changed_token_is_refused_and_nothing_panics() {
        let token = issued().text;
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            // The last character of a part has unused bits; changing them gives base64 that is not canonical.
            assert_eq!(key().verify(&changed, at_ms(0)), None, "{at}");
            assert_eq!(key().verify(&token[..at], at_ms(0)), None, "cut at {at}");
        }
        for text in ["", ".", "..", "...", "a.b.c", HEADER, &format!("{HEADER}.."), &format!("{token}=")] {
            assert_eq!(key().verify(text, at_ms(0)), None, "{text}");
        }
        assert_eq!(TokenKey::new([8; 32]).verify(&token, at_ms(0)), None, "another installation's");
    }

    #[test]
    fn a_session_ends_with_what_it_was_begun_as() {
        let session = key().verify(&issued().text, at_ms(0)).unwrap();
        assert!(session.fits(&account()));
        let changes: [fn(&mut Account); 5] = [
            |account| account.version += 1,
            |account| account.user.disabled = true,
            |account| account.user.role = Role::Operator,
            |account| account.user.organisation_id = OrganisationId(Uuid::from_u128(9)),
            |account| account.user.id = UserId(Uuid::from_u128(9)),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut account = account();
            change(&mut account);
            assert!(!session.fits(&account), "change {number}");
        }
    }
}
