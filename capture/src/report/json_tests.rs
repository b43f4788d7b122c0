//! The layout, and that the content is the same as with `serde_json`.

use proptest::prelude::*;
use serde_json::{Value, json};
use sidetone_media::simulate::Scenario;

use super::*;
use crate::{EngineOptions, Source, compose, read_parts, read_with};

fn laid_out(value: &impl Serialize, flat_from: usize) -> String {
    let mut layout = Layout::new(flat_from);
    value.serialize(&mut layout).unwrap();
    String::from_utf8(layout.text).unwrap()
}

proptest! {
    #[test]
    fn decimals_are_written_as_ever(hundredths in prop_oneof![-10_000_i64..10_000_000, any::<i64>()], other: f64) {
        let near = hundredths as f64 / 100.0;
        for value in [near, near.next_up(), near.next_down(), other, f64::from(other as f32), -0.0, hundredths as f64] {
            prop_assert_eq!(laid_out(&value, 9), serde_json::to_string(&value).unwrap());
        }
    }

    #[test]
    fn texts_and_whole_numbers_are_written_as_ever(text in "\\PC*|[\0-\u{ff}]*", signed: i64, unsigned: u64) {
        prop_assert_eq!(laid_out(&text, 9), serde_json::to_string(&text).unwrap());
        prop_assert_eq!(laid_out(&signed, 9), signed.to_string());
        prop_assert_eq!(laid_out(&unsigned, 9), unsigned.to_string());
    }
}

#[test]
fn every_kind_of_value_is_written_as_ever() {
    #[derive(Serialize)]
    enum Kind {
        Unit,
        One(u8),
        Two(u8, f32),
        Named { a: Option<bool>, b: () },
    }
    #[derive(Serialize)]
    struct Pair(char, Kind);
    #[derive(Serialize)]
    struct Outer {
        #[serde(flatten)]
        inner: std::collections::BTreeMap<String, (i8, u16)>,
        kinds: [Kind; 4],
        pair: Pair,
        limits: (i64, u64, f64),
    }
    let value = Outer {
        inner: [("a\"b".to_owned(), (-7, 65_535))].into(),
        kinds: [Kind::Unit, Kind::One(1), Kind::Two(2, 0.5), Kind::Named { a: Some(true), b: () }],
        pair: Pair('\n', Kind::Named { a: None, b: () }),
        limits: (i64::MIN, u64::MAX, f64::NAN),
    };
    let text = laid_out(&value, 9);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), serde_json::to_value(&value).unwrap());
    let numbers = std::collections::BTreeMap::from([(1, 2)]);
    assert!(numbers.serialize(&mut Layout::new(9)).is_err(), "a key that is no text");
}

#[test]
fn rows_of_numbers_are_one_line() {
    let value = json!({
        "name": "a\n\"b\"", "nothing": null, "none": [], "empty": {}, "types": [0, 101],
        "rows": [[1, 2.5, null], [3, true, "x"]], "calls": [{ "streams": [0, 1] }, {
            "rules": [{ "rule": "ok", "measures": [{ "name": "a", "of": [1, 2] }, {}] }, {}], "why": {},
        }],
    });
    let text = laid_out(&value, RULES_DEPTH);
    let expected = r#"{
  "name": "a\n\"b\"",
  "nothing": null,
  "none": [],
  "empty": {},
  "types": [0,101],
  "rows": [
    [1,2.5,null],
    [3,true,"x"]
  ],
  "calls": [
    {
      "streams": [0,1]
    },
    {
      "rules": [
        {"rule": "ok", "measures": [{"name": "a", "of": [1,2]},{}]},
        {}
      ],
      "why": {}
    }
  ]
}"#;
    assert_eq!(text, expected);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
}

#[test]
fn what_is_written_call_by_call_is_the_whole() {
    let mut file = Vec::new();
    // Long enough for threads to read ahead.
    compose(&"clean duration=30s".parse::<Scenario>().unwrap(), &mut file).unwrap();
    let options = |threads| EngineOptions { threads, ..EngineOptions::default() };
    for (name, bytes) in [("of a \"call\"", &file[..]), ("of nothing", &file[..24])] {
        let path = std::env::temp_dir().join(format!("sidetone-json-{}", uuid::Uuid::new_v4()));
        std::fs::write(&path, bytes).unwrap();
        let opened = || Source::File(std::fs::File::open(&path).unwrap());
        let analysis = read_with(options(1), name, &mut &*bytes, &mut |_, _| {}).analysis;
        let (mut whole, mut list) = (Vec::new(), Vec::new());
        let value = serde_json::to_value(&analysis).unwrap();
        let mut one = Json::object(&mut whole);
        one.parts(analysis.into()).unwrap();
        one.finish().unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&whole).unwrap(), value);
        let mut two = Json::list(&mut list);
        for threads in 1..=3 {
            let parts = || read_parts(options(threads), name, opened(), &mut |_, _| {}).parts;
            let mut written = Vec::new();
            let mut one = Json::object(&mut written);
            one.parts(parts()).unwrap();
            one.finish().unwrap();
            assert_eq!(written, whole, "{name} by {threads} threads");
            two.parts(parts()).unwrap();
        }
        two.parts(read_with(options(1), name, &mut &*bytes, &mut |_, _| {}).analysis.into()).unwrap();
        two.finish().unwrap();
        std::fs::remove_file(&path).unwrap();
        let list = String::from_utf8(list).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&list).unwrap(), json!([value, value, value, value]));
        let deeper = String::from_utf8(whole).unwrap().replace('\n', "\n  ");
        assert_eq!(list, format!("[\n  {deeper},\n  {deeper},\n  {deeper},\n  {deeper}\n]"));
    }
}
