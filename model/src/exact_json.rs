//! JSON that keeps every digit of a number, unlike [`serde_json::Value`].

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A JSON value as it was received, without white space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactJson(String);

impl ExactJson {
    /// A text.
    pub fn text(text: &str) -> Self {
        // Writing a text cannot fail.
        Self(serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned()))
    }

    /// A text that is known to be valid JSON, such as one that this process has stored.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn parse(json: String) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<&RawValue>(&json)?;
        Ok(Self(json))
    }

    /// The object in `bytes`, as it was received.
    ///
    /// # Errors
    /// The bytes are no JSON object.
    pub fn object(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice::<Map<String, Value>>(bytes)?;
        let raw: &RawValue = serde_json::from_slice(bytes)?;
        Ok(Self::of(raw))
    }

    /// A value that was parsed as a part of a text.
    pub fn of(raw: &RawValue) -> Self {
        Self(compact(raw.get()))
    }

    /// The members of an object in order; `None` for any other value.
    pub fn members(&self) -> Option<Vec<(String, ExactJson)>> {
        self.0.starts_with('{').then(|| members(self.0.as_bytes()))
    }

    /// The items of an array; `None` for any other value.
    pub fn items(&self) -> Option<Vec<ExactJson>> {
        let items: Vec<&RawValue> =
            self.0.starts_with('[').then(|| serde_json::from_str(&self.0).unwrap_or_default())?;
        Some(items.into_iter().map(ExactJson::of).collect())
    }

    /// Whether both have the same value; the form of numbers and the order of members do not count. Numbers with more
    /// digits than a float has are compared as floats.
    pub fn is_same(&self, other: &Self) -> bool {
        let value = |json: &Self| serde_json::from_str::<Value>(&json.0).ok();
        self == other || value(self) == value(other)
    }

    /// The value as compact JSON.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for ExactJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// The members of the object in `bytes` in order; none if it is not a JSON object.
///
/// *Bounds*: call it for JSON that [`crate::json::object`] has accepted.
pub(crate) fn members(bytes: &[u8]) -> Vec<(String, ExactJson)> {
    serde_json::Deserializer::from_slice(bytes).deserialize_map(Members).unwrap_or_default()
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, ExactJson)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = access.next_entry::<String, &RawValue>()? {
            members.push((name, ExactJson::of(value)));
        }
        Ok(members)
    }
}

/// Removes the white space between tokens, and writes texts with as few escapes as possible.
fn compact(json: &str) -> String {
    let mut compact = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(quote) = rest.find('"') {
        let (before, text) = rest.split_at(quote);
        compact.extend(before.chars().filter(|c| !c.is_ascii_whitespace()));
        let (text, after) = text.split_at(text_len(text));
        match serde_json::from_str::<Cow<'_, str>>(text) {
            Ok(text) => compact.push_str(ExactJson::text(&text).as_str()),
            // It was parsed before, so this does not occur.
            Err(_) => compact.push_str(text),
        }
        rest = after;
    }
    compact.extend(rest.chars().filter(|c| !c.is_ascii_whitespace()));
    compact
}

/// The length of the text at the start of `json`, with both quotes.
fn text_len(json: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in json.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return at + 1,
            _ => escaped = byte == b'\\' && !escaped,
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_lose_white_space_only() {
        let cases = [
            (" 900.00 ", "900.00"),
            ("12345678901234567890123", "12345678901234567890123"),
            ("[ 1E+2 ,\n-0.10 ]", "[1E+2,-0.10]"),
            (r#"{ "a b" : " c \" d\\" , "e" : null }"#, r#"{"a b":" c \" d\\","e":null}"#),
            (r#""\u00e9\/""#, "\"é/\""),
        ];
        for (sent, expected) in cases {
            let read = members(format!("{{\"x\":{sent}}}").as_bytes());
            assert_eq!(read, [("x".to_owned(), ExactJson(expected.to_owned()))], "{sent}");
            assert_eq!(serde_json::to_string(&ExactJson(expected.to_owned())).unwrap(), expected);
        }
        assert_eq!(members(b"[1]"), []);
    }

    #[test]
    fn the_parts_of_a_value_keep_their_digits() {
        let whole = ExactJson::object(br#" {"a": [1.10, {"b": 2e5}], "c": null} "#).unwrap();
        assert_eq!(whole.as_str(), r#"{"a":[1.10,{"b":2e5}],"c":null}"#);
        let members = whole.members().unwrap();
        let items = members[0].1.items().unwrap();
        assert_eq!((items[0].as_str(), items[1].as_str()), ("1.10", r#"{"b":2e5}"#));
        assert_eq!((items[0].items(), items[0].members(), members[0].1.members()), (None, None, None));
        for wrong in ["", "[]", "{", "{} x", "\"x\""] {
            assert!(ExactJson::object(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn fuzz_texts_keep_their_meaning(text in any::<String>(), number in any::<f64>()) {
            let sent = serde_json::json!({"a": [text, {"b": number}]});
            for json in [serde_json::to_string(&sent).unwrap(), serde_json::to_string_pretty(&sent).unwrap()] {
                prop_assert_eq!(compact(&json), serde_json::to_string(&sent).unwrap());
            }
        }
    }
}
