//! Typed, named access to a TOML table: every mistake becomes a [`Problem`] that carries the
//! full path of its key, and keys nobody asked for are refused by name.
//!
//! Both `sidetone.toml` and the apply files are read through it, so that a typing error in
//! either is reported the same way, and all of them at once.

use std::fmt;

use toml::{Table, Value};

/// One thing that is wrong with a configuration or an apply file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The full path of the key, such as `sip.listen` or `organisations[0].api_keys[1].allow`.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl Problem {
    /// A problem with `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.key, self.message)
        }
    }
}

/// The fields of one table, taken out by name.
///
/// A field that is missing is `None`; one of the wrong type is `None` too and leaves a
/// [`Problem`]. [`Fields::finish`] refuses what was not taken.
#[derive(Debug)]
pub struct Fields<'p> {
    path: String,
    table: Table,
    known: Vec<&'static str>,
    problems: &'p mut Vec<Problem>,
}

impl<'p> Fields<'p> {
    /// The fields of `table`, which stands at `path` (empty for the whole file).
    pub fn new(path: impl Into<String>, table: Table, problems: &'p mut Vec<Problem>) -> Self {
        Self { path: path.into(), table, known: Vec::new(), problems }
    }

    /// The text under `key`.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        match self.take(key)? {
            Value::String(text) => Some(text),
            other => self.mistyped(key, "a text in quotes", &other),
        }
    }

    /// The text under `key`, which must be there and not be blank.
    pub fn required_text(&mut self, key: &'static str) -> Option<String> {
        let present = self.table.contains_key(key);
        match self.text(key) {
            Some(text) if !text.trim().is_empty() => Some(text),
            Some(_) => self.refuse(key, "must not be empty"),
            None if present => None,
            None => self.refuse(key, "is missing"),
        }
    }

    /// The text under `key` in the form that `rule` gives it; what the rule says is wrong becomes a problem.
    pub fn checked<T>(
        &mut self,
        key: &'static str,
        rule: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(key)?;
        rule(&text).map_err(|message| self.refuse::<()>(key, message)).ok()
    }

    /// [`Fields::checked`] of a text that must be there and not be blank.
    pub fn required_checked<T>(
        &mut self,
        key: &'static str,
        rule: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.required_text(key)?;
        rule(&text).map_err(|message| self.refuse::<()>(key, message)).ok()
    }

    /// The whole number under `key`, which must lie in `range`.
    pub fn integer(&mut self, key: &'static str, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        match self.take(key)? {
            Value::Integer(number) if range.contains(&number) => Some(number),
            Value::Integer(number) => self
                .refuse(key, format!("{number} is out of range, write {} to {}", range.start(), range.end())),
            other => self.mistyped(key, "a whole number", &other),
        }
    }

    /// The `true` or `false` under `key`.
    pub fn boolean(&mut self, key: &'static str) -> Option<bool> {
        match self.take(key)? {
            Value::Boolean(value) => Some(value),
            other => self.mistyped(key, "true or false", &other),
        }
    }

    /// The list of texts under `key`.
    pub fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        let items = match self.take(key)? {
            Value::Array(items) => items,
            other => return self.mistyped(key, "a list of texts", &other),
        };
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Value::String(text) => texts.push(text),
                other => return self.mistyped(key, "a list of texts", &other),
            }
        }
        Some(texts)
    }

    /// The list of ports under `key`.
    pub fn ports(&mut self, key: &'static str) -> Option<Vec<u16>> {
        let items = match self.take(key)? {
            Value::Array(items) => items,
            other => return self.mistyped(key, "a list of ports", &other),
        };
        let port = |item: &Value| {
            item.as_integer().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)
        };
        let ports: Vec<u16> = items.iter().filter_map(port).collect();
        if ports.len() < items.len() {
            return self.refuse(key, "must be a list of ports between 1 and 65535, such as [443, 8443]");
        }
        Some(ports)
    }

    /// The table under `key` with its path.
    pub fn table(&mut self, key: &'static str) -> Option<(String, Table)> {
        match self.take(key)? {
            Value::Table(table) => Some((self.path_of(key), table)),
            other => self.mistyped(key, "a table", &other),
        }
    }

    /// The tables of `[[key]]`, each with its path; none when the key is missing.
    pub fn tables(&mut self, key: &'static str) -> Vec<(String, Table)> {
        let items = match self.take(key) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.mistyped::<()>(key, &format!("a list of tables, each under [[{key}]]"), &other);
                return Vec::new();
            }
        };
        let mut tables = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let path = format!("{}[{index}]", self.path_of(key));
            match item {
                Value::Table(table) => tables.push((path, table)),
                other => self.problems.push(Problem::new(path, mistyped_text("a table", &other))),
            }
        }
        tables
    }

    /// Whether `key` is there and has not been taken.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Takes `key` out whatever it is, for fields this build refuses.
    pub fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        self.table.remove(key)
    }

    /// Notes that what stands under `key` cannot be used.
    pub fn refuse<T>(&mut self, key: &str, message: impl Into<String>) -> Option<T> {
        self.problems.push(Problem::new(self.path_of(key), message));
        None
    }

    /// The full path of `key` in the file.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The problems found so far in the whole file.
    pub fn problems(&mut self) -> &mut Vec<Problem> {
        self.problems
    }

    /// Refuses every key that was never asked for.
    pub fn finish(mut self) {
        let unknown: Vec<String> = self.table.keys().cloned().collect();
        let known = self.known.join(", ");
        for key in unknown {
            self.refuse::<()>(&key, format!("unknown key, known here are: {known}"));
        }
    }

    fn mistyped<T>(&mut self, key: &str, wanted: &str, found: &Value) -> Option<T> {
        self.refuse(key, mistyped_text(wanted, found))
    }
}

fn mistyped_text(wanted: &str, found: &Value) -> String {
    format!(
        "must be {wanted}, not {}",
        match found {
            Value::Array(_) => "a list",
            Value::Boolean(_) => "true or false",
            Value::Datetime(_) => "a date",
            Value::Float(_) => "a fraction",
            Value::Integer(_) => "a number",
            Value::String(_) => "a text",
            Value::Table(_) => "a table",
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str, read: impl FnOnce(&mut Fields<'_>)) -> Vec<String> {
        let mut problems = Vec::new();
        let mut fields = Fields::new("", text.parse().unwrap(), &mut problems);
        read(&mut fields);
        fields.finish();
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_mistake_is_named_with_its_path() {
        let found = problems("a = 1\nb = \"x\"\nc = 99\nd = [1]\nzz = 1\n[[e]]\nf = 1\n", |fields| {
            fields.text("a");
            fields.boolean("b");
            fields.integer("c", 1..=10);
            fields.texts("d");
            fields.required_text("name");
            for (path, table) in fields.tables("e") {
                Fields::new(path, table, fields.problems()).finish();
            }
        });
        assert_eq!(
            found,
            [
                "a: must be a text in quotes, not a number",
                "b: must be true or false, not a text",
                "c: 99 is out of range, write 1 to 10",
                "d: must be a list of texts, not a number",
                "name: is missing",
                "e[0].f: unknown key, known here are: ",
                "zz: unknown key, known here are: a, b, c, d, name, e",
            ]
        );
    }
}
