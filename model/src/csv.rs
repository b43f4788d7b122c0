//! CSV rows (RFC 4180) that a spreadsheet reads as texts and numbers, never as formulas.

use std::borrow::Cow;

use serde_json::Value;

/// Adds the header row.
pub fn write_header(text: &mut String, columns: &[&str]) {
    write_row(text, columns.iter().map(|column| (*column).into()));
}

/// Adds a row with the values of `object` for the columns; empty where a value is null or absent.
pub fn write_object(text: &mut String, columns: &[&str], object: &Value) {
    write_values(text, columns.iter().map(|column| object.get(*column).unwrap_or(&Value::Null)));
}

/// Adds a row with these values; empty where a value is null.
pub fn write_values<'a>(text: &mut String, values: impl Iterator<Item = &'a Value>) {
    write_row(
        text,
        values.map(|value| match value {
            Value::Null => Cow::Borrowed(""),
            Value::String(value) => disarmed(value),
            value => value.to_string().into(),
        }),
    );
}

fn write_row<'a>(text: &mut String, cells: impl Iterator<Item = Cow<'a, str>>) {
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            text.push(',');
        }
        if cell.contains(['"', ',', '\r', '\n']) {
            text.push('"');
            text.push_str(&cell.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(&cell);
        }
    }
    text.push_str("\r\n");
}

/// The text with a leading apostrophe if a spreadsheet would read it as a formula. This matters because a
/// caller chooses the text of its number, and another person opens the export.
///
/// A number keeps its sign: `+442071230000` is E.164, `-0.40` a loss.
fn disarmed(value: &str) -> Cow<'_, str> {
    let signed = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let armed = match value.chars().next() {
        Some('=' | '@' | '\t' | '\r' | '\n') => true,
        Some(sign @ ('+' | '-')) => !value.strip_prefix(sign).is_some_and(signed),
        _ => false,
    };
    if armed { format!("'{value}").into() } else { value.into() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn formulas_are_texts_and_numbers_stay() {
        let cases = [
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "'\r=1"),
            ("+442071230000", "+442071230000"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-0.40", "-0.40"),
            ("-1+1", "'-1+1"),
            ("+", "'+"),
            ("1001", "1001"),
            ("", ""),
        ];
        for (value, cell) in cases {
            assert_eq!(disarmed(value), cell, "{value}");
        }
    }

    #[test]
    fn a_row_is_quoted_where_it_must_be() {
        let object = json!({"a": "x,\"y\"", "b": null, "c": 1.5, "d": true, "f": "two\r\nlines"});
        let mut text = String::new();
        write_header(&mut text, &["a", "b"]);
        write_object(&mut text, &["a", "b", "c", "d", "e", "f"], &object);
        assert_eq!(text, "a,b\r\n\"x,\"\"y\"\"\",,1.5,true,,\"two\r\nlines\"\r\n");
    }
}
