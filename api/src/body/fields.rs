//! The fields of a JSON object, read by name and kind; problems are collected.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};
use sidetone_model::field_check::{FieldCheck, StoredRule};
use sidetone_model::json::kind_of;
use sidetone_model::money::Amount;
use sidetone_model::problem::FieldProblem;
use sidetone_model::time::Timestamp;
use uuid::Uuid;

use crate::error::ApiError;
use crate::page::shown;

/// The fields of the body, or of an object inside it.
///
/// A field that is left out is `None`. A wrong field is `None` as well and adds a problem, so that the
/// request is refused. `null` is wrong unless the field is read with [`Fields::or_null`].
#[derive(Debug)]
pub(crate) struct Fields {
    path: String,
    /// Whether an unknown field is a problem.
    strict: bool,
    /// The position of the object in the request: the index of each member on the path to it.
    place: Vec<usize>,
    members: Vec<Member>,
    /// The names that were read, in order.
    known: Vec<&'static str>,
    problems: Vec<Wrong>,
    /// The values to check against the stored data.
    checks: Vec<PlacedCheck>,
}

/// A check and the position of its field in the request.
#[derive(Debug)]
pub(super) struct PlacedCheck {
    place: Vec<usize>,
    pub(super) check: FieldCheck,
}

#[derive(Debug)]
struct Member {
    name: String,
    /// `None` after it was taken.
    value: Option<Value>,
}

/// A problem and its position in the request.
#[derive(Debug)]
struct Wrong {
    place: Vec<usize>,
    problem: FieldProblem,
}

impl Fields {
    /// The fields of a whole body.
    pub(super) fn new(object: Map<String, Value>, strict: bool) -> Self {
        Self::inside(String::new(), Vec::new(), object, strict)
    }

    fn inside(path: String, place: Vec<usize>, object: Map<String, Value>, strict: bool) -> Self {
        let members = object.into_iter().map(|(name, value)| Member { name, value: Some(value) }).collect();
        Self { path, strict, place, members, known: Vec::new(), problems: Vec::new(), checks: Vec::new() }
    }

    /// Reads a field with `read`; leaving it out is a problem.
    pub(crate) fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Self, &'static str) -> Option<T>,
    ) -> Option<T> {
        if self.has(name) {
            return read(self, name);
        }
        self.known.push(name);
        self.refuse(name, "is required")
    }

    /// Returns the value of a required field that was already read; a wrong one was refused when it was read.
    pub(crate) fn require_given<T>(&mut self, name: &'static str, read: Option<T>) -> Option<T> {
        if read.is_none() && !self.has(name) {
            return self.refuse(name, "is required");
        }
        read
    }

    /// Reads a field with `read`; `Some(None)` if it is null.
    pub(crate) fn or_null<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Self, &'static str) -> Option<T>,
    ) -> Option<Option<T>> {
        let member = self.members.iter_mut().find(|member| member.name == name);
        match member.and_then(|member| member.value.take_if(|value| value.is_null())) {
            Some(_) => {
                self.known.push(name);
                Some(None)
            }
            None => read(self, name).map(Some),
        }
    }

    /// Reads a text on one line, with a length in this range.
    pub(crate) fn text(&mut self, name: &'static str, len: RangeInclusive<usize>) -> Option<String> {
        let text = self.string(name)?;
        if text.chars().any(char::is_control) {
            return self.refuse(name, "must be on one line, without control characters");
        }
        self.bounded(name, text, len)
    }

    /// Like [`Fields::text`], for a required text that is not blank.
    pub(crate) fn required_text(&mut self, name: &'static str, len: RangeInclusive<usize>) -> Option<String> {
        let text = self.required(name, |fields, name| fields.text(name, len))?;
        if text.trim().is_empty() { self.refuse(name, "must not be empty") } else { Some(text) }
    }

    /// Reads a text of any number of lines, at most `len_max` characters.
    pub(crate) fn lines(&mut self, name: &'static str, len_max: usize) -> Option<String> {
        let text = self.string(name)?;
        if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
            return self.refuse(name, "must not contain control characters other than line ends and tabs");
        }
        self.bounded(name, text, 0..=len_max)
    }

    /// Reads a text with `parse`, which returns a value or a problem (a lower-case fragment).
    pub(crate) fn parsed<T, E: Display>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.string(name)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(message) => self.refuse(name, message.to_string()),
        }
    }

    /// Reads one of the words `known`.
    pub(crate) fn word<T: Copy>(&mut self, name: &'static str, known: &[(&str, T)]) -> Option<T> {
        self.parsed(name, |text| {
            let found = known.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
            found.ok_or_else(|| {
                let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
                format!("must be one of {}", words.join(", "))
            })
        })
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&mut self, name: &'static str) -> Option<bool> {
        match self.take(name)? {
            Value::Bool(value) => Some(value),
            other => self.mistyped(name, "true or false", &other),
        }
    }

    /// A whole number in `range`.
    pub(crate) fn integer(&mut self, name: &'static str, range: RangeInclusive<i64>) -> Option<i64> {
        let number = match self.take(name)? {
            Value::Number(number) => number,
            other => return self.mistyped(name, "a whole number", &other),
        };
        match number.as_i64().or_else(|| number.as_f64().and_then(whole)) {
            Some(number) if range.contains(&number) => Some(number),
            // Numbers beyond the database's range are also out of this range.
            Some(_) => self.refuse(name, out_of(&range)),
            None if number.is_u64() => self.refuse(name, out_of(&range)),
            None => self.refuse(name, "must be a whole number, not a fraction"),
        }
    }

    /// An exact decimal, written as a string.
    pub(crate) fn amount(&mut self, name: &'static str) -> Option<Amount> {
        match self.take(name)? {
            Value::String(text) => match text.parse::<Amount>() {
                Ok(amount) => Some(amount),
                Err(error) => {
                    self.refuse(name, format!("must be an exact decimal such as \"12.50\": {error}"))
                }
            },
            Value::Number(_) => self
                .refuse(name, "must be a decimal in a string, such as \"12.50\": a JSON number is not exact"),
            other => self.mistyped(name, "a decimal in a string, such as \"12.50\"", &other),
        }
    }

    /// A hyphenated UUID, the form of every id.
    pub(crate) fn uuid<T: From<Uuid>>(&mut self, name: &'static str) -> Option<T> {
        self.parsed(name, crate::page::uuid).map(T::from)
    }

    /// An RFC 3339 instant.
    pub(crate) fn timestamp(&mut self, name: &'static str) -> Option<Timestamp> {
        self.parsed(name, |text| {
            let wanted = "must be an RFC 3339 timestamp such as 2026-01-31T12:00:00Z";
            text.parse::<Timestamp>().map_err(|_| wanted)
        })
    }

    /// Reads a list of `count` texts, each converted by `parse`; a problem contains the index.
    pub(crate) fn texts<T, E: Display>(
        &mut self,
        name: &'static str,
        count: RangeInclusive<usize>,
        mut parse: impl FnMut(&str) -> Result<T, E>,
    ) -> Option<Vec<T>> {
        let (items, place) = self.array(name, count)?;
        let mut values = Vec::with_capacity(items.len());
        let mut complete = true;
        for (index, item) in items.into_iter().enumerate() {
            let parsed = match item {
                Value::String(text) => parse(&text).map_err(|message| message.to_string()),
                other => Err(format!("must be a string, not {}", kind_of(&other))),
            };
            match parsed {
                Ok(value) => values.push(value),
                Err(message) => {
                    complete = false;
                    let field = format!("{}[{index}]", self.path_of(name));
                    let place = [place.as_slice(), &[index]].concat();
                    self.problems.push(Wrong { place, problem: FieldProblem { field, message } });
                }
            }
        }
        complete.then_some(values)
    }

    /// Reads an object with `take`.
    pub(crate) fn object<T>(
        &mut self,
        name: &'static str,
        take: impl FnOnce(&mut Fields) -> Option<T>,
    ) -> Option<T> {
        let place = self.place_of(name);
        match self.take(name)? {
            Value::Object(object) => self.descend(self.path_of(name), place, object, take),
            other => self.mistyped(name, "an object", &other),
        }
    }

    /// Reads a list of `count` objects, each with `take`.
    pub(crate) fn items<T>(
        &mut self,
        name: &'static str,
        count: RangeInclusive<usize>,
        mut take: impl FnMut(&mut Fields) -> Option<T>,
    ) -> Option<Vec<T>> {
        let (items, place) = self.array(name, count)?;
        let mut values = Vec::with_capacity(items.len());
        let mut complete = true;
        for (index, item) in items.into_iter().enumerate() {
            let path = format!("{}[{index}]", self.path_of(name));
            let place = [place.as_slice(), &[index]].concat();
            let value = match item {
                Value::Object(object) => self.descend(path, place, object, &mut take),
                other => {
                    let message = format!("must be an object, not {}", kind_of(&other));
                    self.problems.push(Wrong { place, problem: FieldProblem { field: path, message } });
                    None
                }
            };
            complete &= value.is_some();
            values.extend(value);
        }
        complete.then_some(values)
    }

    /// Reads any JSON value except null.
    pub(crate) fn value(&mut self, name: &'static str) -> Option<Value> {
        self.take(name)
    }

    /// Ignores fields that the resource shows and the caller cannot set, so that a resource can be sent back
    /// as it was read.
    pub(crate) fn read_only(&mut self, names: &[&str]) {
        for member in self.members.iter_mut().filter(|member| names.contains(&member.name.as_str())) {
            member.value = None;
        }
    }

    /// Whether the field is present.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name)
    }

    /// The text, or the digits of the number, of a field that is not taken yet.
    pub(super) fn given_text(&self, name: &str) -> Option<String> {
        let member = self.members.iter().find(|member| member.name == name)?;
        match member.value.as_ref()? {
            Value::Number(number) => Some(number.to_string()),
            value => value.as_str().map(str::to_owned),
        }
    }

    /// Whether the field of that name, or a part of it, was refused.
    pub(crate) fn is_refused(&self, name: &str) -> bool {
        let path = self.path_of(name);
        let is_at_or_below = |field: &str| {
            field
                .strip_prefix(path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.problems.iter().any(|wrong| is_at_or_below(&wrong.problem.field))
    }

    /// Adds a problem: a lower-case fragment that states what to do.
    pub(crate) fn refuse<T>(&mut self, name: &str, message: impl Into<String>) -> Option<T> {
        let place = self.place_of(name);
        let problem = FieldProblem { field: self.path_of(name), message: message.into() };
        self.problems.push(Wrong { place, problem });
        None
    }

    /// Adds a value to check against the stored data.
    pub(crate) fn check(&mut self, name: &str, rule: StoredRule, value: impl ToString) {
        let check = FieldCheck { field: self.path_of(name), rule, value: value.to_string() };
        self.checks.push(PlacedCheck { place: self.place_of(name), check });
    }

    /// Takes out the checks, in the order in which the fields were read.
    pub(super) fn take_checks(&mut self) -> Vec<PlacedCheck> {
        std::mem::take(&mut self.checks)
    }

    /// Adds the problem of a checked value.
    pub(super) fn refuse_checked(&mut self, checked: PlacedCheck, message: &str) {
        let PlacedCheck { place, check } = checked;
        let problem = FieldProblem { field: check.field, message: message.to_owned() };
        self.problems.push(Wrong { place, problem });
    }

    /// Whether anything was refused.
    pub(crate) fn is_wrong(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Returns the value that a reader took.
    ///
    /// # Errors
    /// `invalid_request` with all problems.
    pub(super) fn taken<T>(self, taken: Option<T>) -> Result<T, ApiError> {
        let problems = self.finish();
        match taken {
            Some(taken) if problems.is_empty() => Ok(taken),
            // A reader that fails without reporting a problem is an internal error.
            None if problems.is_empty() => Err(ApiError::internal()),
            _ => Err(ApiError::invalid(problems)),
        }
    }

    /// Returns all problems in the order of the request; missing fields come last.
    fn finish(mut self) -> Vec<FieldProblem> {
        self.problems.sort_by(|a, b| a.place.cmp(&b.place));
        let mut problems: Vec<FieldProblem> = self.problems.into_iter().map(|wrong| wrong.problem).collect();
        problems.truncate(PROBLEMS_MAX);
        problems
    }

    /// Refuses the fields that no reader took.
    pub(super) fn refuse_unknown(&mut self) {
        if !self.strict {
            return;
        }
        let unknown: Vec<String> = self
            .members
            .iter()
            .filter(|member| member.value.is_some())
            .map(|member| member.name.clone())
            .take(PROBLEMS_MAX)
            .collect();
        let known = match self.known.join(", ") {
            none if none.is_empty() => "the request has no fields".to_owned(),
            known => format!("the fields are {known}"),
        };
        for name in unknown {
            self.refuse::<()>(&name, format!("is not a field here, {known}"));
        }
    }

    fn descend<T>(
        &mut self,
        path: String,
        place: Vec<usize>,
        object: Map<String, Value>,
        take: impl FnOnce(&mut Fields) -> Option<T>,
    ) -> Option<T> {
        let mut fields = Fields::inside(path, place, object, self.strict);
        let value = take(&mut fields);
        fields.refuse_unknown();
        let wrong = !fields.problems.is_empty();
        self.problems.append(&mut fields.problems);
        self.checks.append(&mut fields.checks);
        value.filter(|_| !wrong)
    }

    fn string(&mut self, name: &'static str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(text),
            other => self.mistyped(name, "a string", &other),
        }
    }

    fn array(
        &mut self,
        name: &'static str,
        count: RangeInclusive<usize>,
    ) -> Option<(Vec<Value>, Vec<usize>)> {
        let place = self.place_of(name);
        match self.take(name)? {
            Value::Array(items) if count.contains(&items.len()) => Some((items, place)),
            Value::Array(_) => {
                self.refuse(name, format!("must hold {} to {} items", count.start(), count.end()))
            }
            other => self.mistyped(name, "an array", &other),
        }
    }

    fn bounded(&mut self, name: &'static str, text: String, len: RangeInclusive<usize>) -> Option<String> {
        if len.contains(&text.chars().count()) {
            return Some(text);
        }
        if text.is_empty() {
            return self.refuse(name, "must not be empty");
        }
        if *len.start() <= 1 {
            return self.refuse(name, format!("must be at most {} characters", len.end()));
        }
        self.refuse(name, format!("must be {} to {} characters", len.start(), len.end()))
    }

    /// Takes the field out; null is a problem.
    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        let member = self.members.iter_mut().find(|member| member.name == name)?;
        match member.value.take()? {
            Value::Null => self.refuse(name, "must not be null"),
            value => Some(value),
        }
    }

    fn mistyped<T>(&mut self, name: &str, wanted: &str, found: &Value) -> Option<T> {
        self.refuse(name, format!("must be {wanted}, not {}", kind_of(found)))
    }

    fn path_of(&self, name: &str) -> String {
        let name = shown(name);
        if self.path.is_empty() { name } else { format!("{}.{name}", self.path) }
    }

    /// The position of a field, or of a part of it; a missing field sorts after every present one.
    fn place_of(&self, name: &str) -> Vec<usize> {
        let named = |name: &str| self.members.iter().position(|member| member.name == name);
        let whole = name.split(['.', '[']).next().unwrap_or(name);
        let at = named(name).or_else(|| named(whole)).unwrap_or(usize::MAX);
        [self.place.as_slice(), &[at]].concat()
    }
}

fn out_of(range: &RangeInclusive<i64>) -> String {
    if *range.end() == i64::MAX {
        format!("must be {} or more", range.start())
    } else {
        format!("must be between {} and {}", range.start(), range.end())
    }
}

/// `5.0` and `5e0` are the integer 5, as in JSON Schema.
fn whole(number: f64) -> Option<i64> {
    // Below 2^53 a double is exact.
    let exact = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
    exact.then_some(number as i64)
}

/// Largest number of problems in one answer.
const PROBLEMS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The problems found when `read` reads `body`.
    fn problems<T>(body: Value, read: impl FnOnce(&mut Fields) -> Option<T>) -> Vec<String> {
        let Value::Object(object) = body else { panic!("not an object") };
        let mut fields = Fields::new(object, true);
        read(&mut fields);
        fields.refuse_unknown();
        fields.finish().iter().map(|p| format!("{}: {}", p.field, p.message)).collect()
    }

    #[test]
    fn every_wrong_field_is_named_in_the_order_of_the_request() {
        let body = json!({"z": 1, "list": [{"n": "x"}, {"m": 1}, 3], "on": "yes", "name": "", "t": "a\nb"});
        let found = problems(body, |fields| {
            fields.required("id", Fields::uuid::<Uuid>);
            fields.required_text("name", 1..=10);
            fields.text("t", 0..=10);
            fields.boolean("on");
            fields.items("list", 0..=9, |item| item.required("n", |item, name| item.integer(name, 0..=9)));
            Some(())
        });
        let expected = [
            "z: is not a field here, the fields are id, name, t, on, list",
            "list[0].n: must be a whole number, not a string",
            "list[1].m: is not a field here, the fields are n",
            "list[1].n: is required",
            "list[2]: must be an object, not a number",
            "on: must be true or false, not a string",
            "name: must not be empty",
            "t: must be on one line, without control characters",
            "id: is required",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn whole_numbers_are_read_as_json_schema_has_them() {
        let read = |number: Value| {
            let mut found = None;
            let problems = problems(json!({ "n": number }), |fields| {
                found = fields.integer("n", 0..=500);
                Some(())
            });
            found.map_or_else(|| problems.join(";"), |number: i64| number.to_string())
        };
        let cases = [
            (json!(5), "5"),
            (json!(5.0), "5"),
            (json!(-0.0), "0"),
            (json!(0.5), "n: must be a whole number, not a fraction"),
            (json!(501), "n: must be between 0 and 500"),
            (json!(u64::MAX), "n: must be between 0 and 500"),
            (json!(1e300), "n: must be a whole number, not a fraction"),
            (json!("5"), "n: must be a whole number, not a string"),
            (json!(null), "n: must not be null"),
        ];
        for (number, expected) in cases {
            assert_eq!(read(number.clone()), expected, "{number}");
        }
    }

    #[test]
    fn amounts_are_exact_texts() {
        let wrong = |amount: Value| problems(json!({ "a": amount }), |fields| fields.amount("a"));
        assert!(wrong(json!("12.50")).is_empty());
        let not_exact = "a: must be a decimal in a string, such as \"12.50\": a JSON number is not exact";
        assert_eq!(wrong(json!(12.5)), [not_exact]);
        let places = "a: must be an exact decimal such as \"12.50\": more than 8 decimal places";
        assert_eq!(wrong(json!("0.000000001")), [places]);
    }

    #[test]
    fn null_is_a_value_only_where_it_is_asked_for() {
        let read = |body: Value| {
            let mut team = None;
            let found = problems(body, |fields| {
                team = fields.or_null("team_id", |fields, name| fields.text(name, 0..=9));
                fields.text("name", 0..=9);
                Some(())
            });
            (team, found)
        };
        assert_eq!(read(json!({})), (None, vec![]));
        assert_eq!(read(json!({"team_id": null})), (Some(None), vec![]));
        assert_eq!(read(json!({"team_id": "x"})), (Some(Some("x".to_owned())), vec![]));
        assert_eq!(read(json!({"name": null})).1, ["name: must not be null"]);
    }

    #[test]
    fn read_only_fields_are_ignored_and_a_lax_reader_ignores_all() {
        let body = json!({"id": 1, "created_at": {}, "nmae": 1, "inner": {"x": 1}});
        let read = |fields: &mut Fields| {
            fields.read_only(&["id", "created_at"]);
            fields.object("inner", |inner| inner.text("y", 0..=9));
            fields.text("name", 0..=9)
        };
        let unknown = [
            "nmae: is not a field here, the fields are inner, name",
            "inner.x: is not a field here, the fields are y",
        ];
        assert_eq!(problems(body.clone(), read), unknown);
        let Value::Object(object) = body else { panic!("not an object") };
        let mut lax = Fields::new(object, false);
        read(&mut lax);
        lax.refuse_unknown();
        assert!(lax.finish().is_empty());
    }

    /// For any input and any reader: a missing value always has a problem that explains it.
    #[test]
    fn a_missing_value_always_comes_with_a_problem() {
        use proptest::prelude::*;

        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        let value = leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-d]", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        });
        let body = prop::collection::hash_map("[a-d]", value, 0..5);
        let object = |body: std::collections::HashMap<String, Value>| body.into_iter().collect::<Map<_, _>>();
        proptest!(|(body in body, kind in 0..9_usize)| {
            let mut fields = Fields::new(object(body), true);
            let read = match kind {
                0 => fields.required_text("a", 1..=4).is_some(),
                1 => fields.required("a", Fields::boolean).is_some(),
                2 => fields.required("a", |fields, name| fields.integer(name, -5..=5)).is_some(),
                3 => fields.required("a", Fields::amount).is_some(),
                4 => fields.required("a", Fields::uuid::<Uuid>).is_some(),
                5 => fields.required("a", Fields::timestamp).is_some(),
                6 => fields.required("a", |fields, name| fields.lines(name, 3)).is_some(),
                7 => fields
                    .required("a", |fields, name| fields.texts(name, 0..=2, |text| text.parse::<i32>()))
                    .is_some(),
                _ => fields
                    .required("a", |fields, name| {
                        fields.items(name, 0..=2, |item| item.required("b", Fields::boolean))
                    })
                    .is_some(),
            };
            for name in ["a", "b", "c", "d"] {
                fields.known.push(name);
                fields.read_only(&[name]);
            }
            fields.refuse_unknown();
            let said = fields.finish();
            prop_assert_eq!(read, said.is_empty(), "{:?}", said);
        });
    }

    #[test]
    fn lists_are_bounded_and_their_items_named() {
        let read = |value: Value| {
            problems(json!({ "allow": value }), |fields| {
                fields.texts("allow", 1..=2, |text| if text == "ok" { Ok(()) } else { Err("must be ok") })
            })
        };
        assert!(read(json!(["ok"])).is_empty());
        assert_eq!(read(json!([])), ["allow: must hold 1 to 2 items"]);
        assert_eq!(
            read(json!(["no", 1])),
            ["allow[0]: must be ok", "allow[1]: must be a string, not a number"]
        );
        assert_eq!(read(json!("ok")), ["allow: must be an array, not a string"]);
    }
}
