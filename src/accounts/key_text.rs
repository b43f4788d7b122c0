//! The text of an integration key: `<prefix>_<id>_<secret>`.

use rand::CryptoRng;
use rand::distr::{Alphanumeric, SampleString};
use sha2::{Digest, Sha256};
use sidetone_store::ApiKeyText;

/// A new key: 12 base62 characters as its id and 43 (256 bits) as its secret.
pub fn generate(rng: &mut impl CryptoRng) -> String {
    let id = Alphanumeric.sample_string(rng, ID_LEN);
    let secret = Alphanumeric.sample_string(rng, SECRET_LEN);
    format!("{PREFIX}_{id}_{secret}")
}

/// The stored form of the key `text`; `None` if it does not have the form of a key.
pub fn stored(text: &str) -> Option<ApiKeyText> {
    let (front, secret) = text.rsplit_once('_')?;
    let (prefix, id) = front.rsplit_once('_')?;
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let prefix_fits = (1..=PREFIX_LEN_MAX).contains(&prefix.len())
        && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let fits = prefix_fits
        && plain(id)
        && (ID_LEN_MIN..=ID_LEN_MAX).contains(&id.len())
        && plain(secret)
        && (SECRET_LEN_MIN..=SECRET_LEN_MAX).contains(&secret.len());
    fits.then(|| ApiKeyText {
        prefix: prefix.to_owned(),
        short_id: id.to_owned(),
        secret_sha256: Sha256::digest(secret.as_bytes()).into(),
        last4: secret.get(secret.len().saturating_sub(4)..).unwrap_or_default().to_owned(),
    })
}

const ID_LEN: usize = 12;
const ID_LEN_MAX: usize = 32;
const ID_LEN_MIN: usize = 8;
const PREFIX: &str = "tel";
const PREFIX_LEN_MAX: usize = 16;
const SECRET_LEN: usize = 43;
const SECRET_LEN_MAX: usize = 128;
const SECRET_LEN_MIN: usize = 32;

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn a_generated_key_has_the_form() {
        let mut rng = StdRng::seed_from_u64(1);
        let text = generate(&mut rng);
        assert_eq!(text.len(), 3 + 1 + 12 + 1 + 43);
        let key = stored(&text).unwrap();
        assert_eq!((key.prefix.as_str(), key.short_id.len()), ("tel", 12));
        assert!(text.ends_with(&key.last4) && key.last4.len() == 4);
        assert_ne!(generate(&mut rng), text);
    }

    #[test]
    fn a_given_key_must_have_the_form() {
        let secret = "s".repeat(32);
        let cases = [
            ("whole", format!("tel_ABCDEFGHIJKL_{secret}"), true),
            ("sandbox prefix", format!("tel_test_ABCDEFGHIJKL_{secret}"), true),
            ("short secret", format!("tel_ABCDEFGHIJKL_{}", "s".repeat(31)), false),
            ("short id", format!("tel_ABC_{secret}"), false),
            ("no prefix", format!("ABCDEFGHIJKL_{secret}"), false),
            ("punctuation", format!("tel_ABCDEFGHIJKL_{secret}!"), false),
            ("not ASCII", format!("tel_ABCDEFGHIJKL_{secret}é"), false),
            ("empty", String::new(), false),
        ];
        for (name, text, fits) in cases {
            assert_eq!(stored(&text).is_some(), fits, "{name}");
        }
    }
}
