//! Reads untrusted JSON by RFC 8259 with further limits: one object, bounded in depth and number of values,
//! no duplicate names.
//!
//! `serde_json` parses the text. Input that it accepts beyond these limits (duplicate names, where the last
//! one wins; 127 levels) is refused while the tree is built.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::problem::FieldProblem;

/// Reads the object in `bytes`.
///
/// # Errors
/// The problems: under the field `body` for the complete text, or every duplicate name.
pub fn object(bytes: &[u8]) -> Result<Map<String, Value>, Vec<FieldProblem>> {
    let whole = |message: String| vec![FieldProblem { field: "body".to_owned(), message }];
    let text = match std::str::from_utf8(bytes) {
        // RFC 8259 §8.1: no byte order mark; bytes of 0 indicate UTF-16.
        Ok(text) if text.starts_with('\u{feff}') => {
            return Err(whole("must not begin with a byte order mark".to_owned()));
        }
        Ok(text) if !text.contains('\0') => text,
        _ => return Err(whole("must be in UTF-8".to_owned())),
    };
    let context = Context::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let reader = Reader { context: &context, place: Place::Whole, depth: 0 };
    let read = reader.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    let value = read.map_err(|error| whole(explained(&context, &error, text)))?;
    let twice = context.twice.into_inner();
    if !twice.is_empty() {
        let twice = twice.into_iter().take(TWICE_MAX);
        return Err(twice
            .map(|field| FieldProblem { field, message: "is given more than once".to_owned() })
            .collect());
    }
    match value {
        Value::Object(object) => Ok(object),
        other => Err(whole(format!("must be a JSON object, not {}", kind_of(&other)))),
    }
}

/// The JSON name of a value's type.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "an array",
        Value::Bool(_) => "true or false",
        Value::Null => "null",
        Value::Number(number) if number.is_f64() => "a fraction",
        Value::Number(_) => "a number",
        Value::Object(_) => "an object",
        Value::String(_) => "a string",
    }
}

/// A client's text in a form that is safe to repeat in an answer: short and without control characters.
pub fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(SHOWN_LEN_MAX).collect()
}

fn explained(context: &Context, error: &serde_json::Error, text: &str) -> String {
    if let Some(bound) = context.bound.get() {
        return bound.to_owned();
    }
    let at = format!("line {} column {}", error.line(), error.column());
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let rest = line.get(error.column().saturating_sub(1)..).unwrap_or_default();
    if ["NaN", "nan", "Inf", "inf", "-Inf", "-inf"].iter().any(|word| rest.starts_with(word)) {
        return format!("is not JSON at {at}: NaN and Infinity are no numbers there");
    }
    // The text without its position, which is at the end.
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or_default();
    format!("is not JSON at {at}: {said}")
}

/// The findings collected while the tree is built.
#[derive(Default)]
struct Context {
    /// The limit that was exceeded, if reading stopped.
    bound: Cell<Option<&'static str>>,
    values: Cell<usize>,
    twice: RefCell<Vec<String>>,
}

/// The position of a value in the body; the path is built only when it is reported.
#[derive(Clone, Copy)]
enum Place<'a> {
    Whole,
    Item(&'a Place<'a>, usize),
    Member(&'a Place<'a>, &'a str),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Whole => Ok(()),
            Place::Item(parent, index) => write!(f, "{parent}[{index}]"),
            Place::Member(Place::Whole, name) => f.write_str(&shown(name)),
            Place::Member(parent, name) => write!(f, "{parent}.{}", shown(name)),
        }
    }
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    context: &'a Context,
    place: Place<'a>,
    depth: usize,
}

impl Reader<'_> {
    /// Enters the next level.
    fn enter<E: Error>(&self) -> Result<(), E> {
        if self.depth >= DEPTH_MAX {
            return Err(self.give_up("is nested deeper than 32 levels"));
        }
        Ok(())
    }

    fn count<E: Error>(&self) -> Result<(), E> {
        let values = self.context.values.get() + 1;
        self.context.values.set(values);
        if values > VALUES_MAX { Err(self.give_up("holds more than 100000 values")) } else { Ok(()) }
    }

    fn give_up<E: Error>(&self, bound: &'static str) -> E {
        self.context.bound.set(Some(bound));
        E::custom(bound)
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut items = Vec::new();
        loop {
            let place = Place::Item(&self.place, items.len());
            let reader = Reader { context: self.context, place, depth: self.depth + 1 };
            match access.next_element_seed(reader)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut members = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let place = Place::Member(&self.place, &name);
            let reader = Reader { context: self.context, place, depth: self.depth + 1 };
            let value = access.next_value_seed(reader)?;
            let again = members.contains_key(&name).then(|| place.to_string());
            if let Some(path) = again {
                let mut twice = self.context.twice.borrow_mut();
                if !twice.contains(&path) && twice.len() < TWICE_MAX {
                    twice.push(path);
                }
            }
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

const DEPTH_MAX: usize = 32;
const SHOWN_LEN_MAX: usize = 64;
/// The most duplicate names that an answer lists.
const TWICE_MAX: usize = 20;
/// A body of empty arrays would take fifty times as much memory.
const VALUES_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn problem(text: &[u8]) -> String {
        let problems = object(text).unwrap_err();
        problems.iter().map(|p| format!("{}: {}", p.field, p.message)).collect::<Vec<_>>().join("; ")
    }

    fn nested(depth: usize) -> Vec<u8> {
        // The object is the first level.
        let arrays = depth - 1;
        [br#"{"a":"#.to_vec(), vec![b'['; arrays], vec![b']'; arrays], b"}".to_vec()].concat()
    }

    #[test]
    fn what_is_no_json_object_is_said_in_words() {
        let cases: &[(&[u8], &str)] = &[
            (b"", "body: is not JSON at line 1 column 0: EOF while parsing a value"),
            (b"{", "body: is not JSON at line 1 column 1: EOF while parsing an object"),
            (b"{} x", "body: is not JSON at line 1 column 4: trailing characters"),
            (b"[]", "body: must be a JSON object, not an array"),
            (b"null", "body: must be a JSON object, not null"),
            (b"1", "body: must be a JSON object, not a number"),
            (b"{\"a\":NaN}", "body: is not JSON at line 1 column 6: NaN and Infinity are no numbers there"),
            (
                b"{\"a\":Infinity}",
                "body: is not JSON at line 1 column 6: NaN and Infinity are no numbers there",
            ),
            (
                b"{\"a\":-Infinity}",
                "body: is not JSON at line 1 column 7: NaN and Infinity are no numbers there",
            ),
            (b"{\"a\":1e999}", "body: is not JSON at line 1 column 10: number out of range"),
            (b"{'a':1}", "body: is not JSON at line 1 column 2: key must be a string"),
            (b"{\"a\":1,}", "body: is not JSON at line 1 column 8: trailing comma"),
            (b"{\"a\":\"\\ud800\"}", "body: is not JSON at line 1 column 13: unexpected end of hex escape"),
            (b"\xef\xbb\xbf{}", "body: must not begin with a byte order mark"),
            (b"\xff\xfe{\0}\0", "body: must be in UTF-8"),
            (b"{\0}\0", "body: must be in UTF-8"),
            (b"{\"a\":\"\xff\"}", "body: must be in UTF-8"),
            (b"{\"a\":1,\"b\":2,\"a\":3,\"b\":1}", "a: is given more than once; b: is given more than once"),
            (b"{\"a\":[{},{\"x\":{\"y\":1,\"y\":1}}]}", "a[1].x.y: is given more than once"),
            (b"{\"\\u0061\":1,\"a\":3}", "a: is given more than once"),
        ];
        for (text, expected) in cases {
            assert_eq!(problem(text), *expected, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn depth_is_bounded() {
        assert!(object(&nested(32)).is_ok());
        assert_eq!(problem(&nested(33)), "body: is nested deeper than 32 levels");
        assert_eq!(problem(&nested(500_000)), "body: is nested deeper than 32 levels");
        assert_eq!(problem(&b"{\"a\":".repeat(100_000)), "body: is nested deeper than 32 levels");
    }

    #[test]
    fn the_number_of_values_is_bounded() {
        let body = [b"{\"a\":[0".to_vec(), b",0".repeat(VALUES_MAX), b"]}".to_vec()].concat();
        assert_eq!(problem(&body), "body: holds more than 100000 values");
    }

    #[test]
    fn a_number_of_a_million_digits_is_answered() {
        let fraction = format!("{{\"a\":0.{}}}", "9".repeat(1_000_000));
        assert_eq!(object(fraction.as_bytes()).unwrap()["a"].as_f64(), Some(1.0));
        let tiny = format!("{{\"a\":-1e-{}}}", "9".repeat(1_000_000));
        assert_eq!(object(tiny.as_bytes()).unwrap()["a"].as_f64(), Some(-0.0));
        let body = format!("{{\"a\":{}}}", "9".repeat(1_000_000));
        assert_eq!(
            problem(body.as_bytes()),
            "body: is not JSON at line 1 column 1000005: number out of range"
        );
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
            ".{0,8}"
                .prop_filter("the zero byte has a test of its own", |t| !t.contains('\0'))
                .prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::hash_map("[a-e]{0,3}", inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = object(&bytes);
        }

        #[test]
        fn almost_json_never_panics(text in r#"[\[\]{}:,"\\ua-c0-9.eE+\- \n]{0,60}"#) {
            let ours = object(text.as_bytes());
            // Input that serde_json does not read as an object is refused; accepted input has the same value
            // as with serde_json.
            match serde_json::from_str::<Map<String, Value>>(&text) {
                Err(_) => prop_assert!(ours.is_err()),
                Ok(theirs) => if let Ok(ours) = ours { prop_assert_eq!(ours, theirs) },
            }
        }

        #[test]
        fn what_is_written_is_read_the_same(value in json()) {
            let text = serde_json::to_string(&serde_json::json!({ "a": value })).unwrap();
            let read = object(text.as_bytes()).unwrap();
            prop_assert_eq!(&read["a"], &value);
        }
    }
}
