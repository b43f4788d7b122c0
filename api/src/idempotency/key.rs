//! The header: 1 to 255 visible ASCII characters, plain or as a quoted string (RFC 8941 §3.3.3).

use axum::http::{HeaderMap, HeaderName};
use sidetone_model::problem::FieldProblem;

use crate::error::ApiError;

/// Returns the key of the request; `None` without one.
///
/// # Errors
/// `invalid_request` when it does not have the form, or there are two.
pub(super) fn read(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let refused = |message: String| {
        Err(ApiError::invalid(vec![FieldProblem { field: "Idempotency-Key".to_owned(), message }]))
    };
    if values.next().is_some() {
        return refused("is given more than once".to_owned());
    }
    let text = value.to_str().unwrap_or_default();
    let key = if text.starts_with('"') { unquoted(text) } else { Some(text.to_owned()) };
    match key {
        Some(key) if is_key(&key) => Ok(Some(key)),
        _ => {
            refused(format!("must be 1 to {KEY_LEN_MAX} visible ASCII characters, plain or in double quotes"))
        }
    }
}

fn is_key(key: &str) -> bool {
    (1..=KEY_LEN_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The content of a quoted string.
fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut key = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => key.push(characters.next().filter(|next| matches!(next, '"' | '\\'))?),
            '"' => return None,
            plain => key.push(plain),
        }
    }
    Some(key)
}

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
const KEY_LEN_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    /// The values of the header, and the expected result.
    type Case<'a> = (&'a [&'a str], Result<Option<&'a str>, ()>);

    #[test]
    fn a_key_is_plain_or_quoted() {
        let longest = "k".repeat(255);
        let too_long = "k".repeat(256);
        let cases: [Case<'_>; 14] = [
            (&[], Ok(None)),
            (&["a"], Ok(Some("a"))),
            (&["8e03978e-40d5-43dd-bc93-6894a57f9324"], Ok(Some("8e03978e-40d5-43dd-bc93-6894a57f9324"))),
            (&["\"a\""], Ok(Some("a"))),
            (&["\"a\\\"\\\\\""], Ok(Some("a\"\\"))),
            (&["a\"b"], Ok(Some("a\"b"))),
            (&[&longest], Ok(Some(&longest))),
            (&[&too_long], Err(())),
            (&[""], Err(())),
            (&["\"\""], Err(())),
            (&["\""], Err(())),
            (&["a b"], Err(())),
            (&["\"a\"b\""], Err(())),
            (&["a", "a"], Err(())),
        ];
        for (values, expected) in cases {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HEADER, HeaderValue::from_str(value).unwrap());
            }
            let read = read(&headers).map_err(|_| ());
            assert_eq!(read.as_ref().map(Option::as_deref), expected.as_ref().map(|key| *key), "{values:?}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_bytes(b"caf\xc3\xa9").unwrap());
        assert!(super::read(&headers).is_err());
    }
}
