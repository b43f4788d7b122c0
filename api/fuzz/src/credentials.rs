//! Fuzz targets for session tokens and API key texts.

use sidetone_model::access::Role;
use sidetone_model::ids::{OrganisationId, UserId};
use sidetone_model::time::Timestamp;
use sidetone_model::user::{Account, User};
use uuid::Uuid;

/// Only the issued token is accepted, byte for byte, and its claims are those it was issued with.
pub fn jwt(data: &[u8]) {
    let token = String::from_utf8_lossy(data);
    let (key, account) = (super::token::TokenKey::new([7; 32]), account());
    let issued = key.issue(&account, Uuid::from_u128(3), now());
    if let Some(session) = key.verify(&token, now()) {
        assert_eq!(token, issued.text, "a forged token is accepted");
        assert!(session.fits(&account) && session.expires_at == issued.expires_at);
    }
    // A key of another installation accepts neither token.
    let other = super::token::TokenKey::new([8; 32]);
    assert!(other.verify(&token, now()).is_none_or(|_| key.verify(&token, now()).is_none()));
    assert!(other.verify(&issued.text, now()).is_none());
    // An issued token with input bytes inserted is forged.
    let at = data.first().map_or(0, |byte| usize::from(*byte) % (issued.text.len() + 1));
    if issued.text.is_char_boundary(at) {
        let changed = format!("{}{}{}", &issued.text[..at], token, &issued.text[at..]);
        assert!(token.is_empty() || key.verify(&changed, now()).is_none(), "{changed}");
    }
}

/// The parsed id and secret are parts of the text, in this order. Both are alphanumeric only, because they are
/// used in a query and a hash.
pub fn api_key(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Some((id, secret)) = super::key_form::parse(&text) else { return };
    assert!(text.ends_with(&format!("_{id}_{secret}")) && text.len() > id.len() + secret.len() + 2);
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    assert!(plain(id) && plain(secret));
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
        created_at: now(),
        updated_at: now(),
    };
    Account { user, version: 7 }
}

/// 2026-01-01.
fn now() -> Timestamp {
    Timestamp::from_micros(1_767_225_600_000_000)
}
