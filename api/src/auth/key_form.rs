//! The form of an integration key's text: `<prefix>_<id>_<secret>`; the prefix may contain underscores.

/// The id and the secret of a key's text.
pub(super) fn parse(token: &str) -> Option<(&str, &str)> {
    let (front, secret) = token.rsplit_once('_')?;
    let (prefix, id) = front.rsplit_once('_')?;
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (!prefix.is_empty() && plain(id) && plain(secret)).then_some((id, secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_prefix_id_secret() {
        let cases = [
            ("tel_ABC_def", Some(("ABC", "def"))),
            ("tel_test_ABC_def", Some(("ABC", "def"))),
            ("_ABC_def", None),
            ("ABC_def", None),
            ("tel__def", None),
            ("tel_ABC_", None),
            ("tel_A'C_def", None),
            ("", None),
        ];
        for (token, expected) in cases {
            assert_eq!(parse(token), expected, "{token}");
        }
    }
}
