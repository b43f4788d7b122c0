//! Typed access to a TOML table by name: every error becomes a [`Problem`] with the full path of its key, and keys
//! that were never read are refused by name.
//!
//! Both `sidetone.toml` and the apply files are read with it, so that errors in either are reported in the same way,
//! and all of them together.

use std::fmt;

use toml::{Table, Value};

/// An error in a configuration or an apply file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The full path of the key, such as `sip.listen` or `organisation "Acme", API key "crm": allow`.
    pub key: String,
    /// The error and a remedy.
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
/// A missing field is `None`; one of the wrong type is `None` too and adds a [`Problem`]. [`Fields::finish`] refuses
/// the fields that were not taken.
#[derive(Debug)]
pub struct Fields<'p> {
    path: String,
    table: Table,
    known: Vec<&'static str>,
    problems: &'p mut Vec<Problem>,
}

impl<'p> Fields<'p> {
    /// The fields of `table` at `path` (empty for the whole file).
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

    /// The text under `key`, which is required and must not be blank.
    pub fn required_text(&mut self, key: &'static str) -> Option<String> {
        let present = self.table.contains_key(key);
        match self.text(key) {
            Some(text) if !text.trim().is_empty() => Some(text),
            Some(_) => self.refuse(key, "must not be empty"),
            None if present => None,
            None => self.refuse(key, "is missing"),
        }
    }

    /// The text under `key`, converted by `rule`; an error of the rule becomes a problem.
    pub fn checked<T>(
        &mut self,
        key: &'static str,
        rule: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(key)?;
        rule(&text).map_err(|message| self.refuse::<()>(key, message)).ok()
    }

    /// Like [`Fields::checked`], for a text that is required and must not be blank.
    pub fn required_checked<T>(
        &mut self,
        key: &'static str,
        rule: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.required_text(key)?;
        rule(&text).map_err(|message| self.refuse::<()>(key, message)).ok()
    }

    /// The integer under `key`, which must be in `range`.
    pub fn integer(&mut self, key: &'static str, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        match self.take(key)? {
            Value::Integer(number) if range.contains(&number) => Some(number),
            Value::Integer(number) => self
                .refuse(key, format!("{number} is out of range, write {} to {}", range.start(), range.end())),
            other => self.mistyped(key, "a whole number", &other),
        }
    }

    /// The boolean under `key`.
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

    /// The tables of `[[key]]`, each with its path, which identifies the item; none when the key is missing.
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
            match item {
                Value::Table(table) => tables.push((item_path(&self.path, key, index, &table), table)),
                other => {
                    let path = item_path(&self.path, key, index, &Table::new());
                    self.problems.push(Problem::new(path, mistyped_text("a table", &other)));
                }
            }
        }
        tables
    }

    /// Whether `key` is present and has not been taken.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Takes `key` out, of any type, for fields that this build refuses.
    pub fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        self.table.remove(key)
    }

    /// Adds a problem for the value of `key`.
    pub fn refuse<T>(&mut self, key: &str, message: impl Into<String>) -> Option<T> {
        self.problems.push(Problem::new(self.path_of(key), message));
        None
    }

    /// The full path of `key` in the file.
    pub fn path_of(&self, key: &str) -> String {
        key_of(&self.path, key)
    }

    /// The problems found so far in the whole file.
    pub fn problems(&mut self) -> &mut Vec<Problem> {
        self.problems
    }

    /// Refuses every key that was never read.
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

/// The full path of `key` within `path`: `sip.listen`, `organisation "Acme": name`.
pub fn key_of(path: &str, key: &str) -> String {
    match path.chars().next_back() {
        None => key.to_owned(),
        // Only the path of a list item ends like this.
        Some('"' | ')') => format!("{path}: {key}"),
        Some(_) => format!("{path}.{key}"),
    }
}

/// The path of an item of the list `key`: its kind and its natural key, or its index if it has none.
fn item_path(parent: &str, key: &str, index: usize, item: &Table) -> String {
    let text = |name: &str| item.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let kind = kind_of(key);
    let named =
        ["number", "email", "extension", "prefix", "model", "name"].iter().find_map(|name| text(name));
    let item = match (named, text("from"), text("to")) {
        (Some(name), ..) => {
            match text("organisation").or_else(|| text("trunk")).filter(|_| key != "trunks") {
                Some(owner) => format!("{kind} \"{}\" of \"{}\"", shown(name), shown(owner)),
                None => format!("{kind} \"{}\"", shown(name)),
            }
        }
        (None, Some(from), Some(to)) => format!("{kind} \"{}\" to \"{}\"", shown(from), shown(to)),
        _ => format!("{kind} (no. {})", index + 1),
    };
    match parent.chars().next_back() {
        None => item,
        Some('"' | ')') => format!("{parent}, {item}"),
        Some(_) => format!("{parent}: {item}"),
    }
}

/// The singular of a list's key, as text: `api_keys` becomes `API key`.
fn kind_of(key: &str) -> String {
    let singular = key.strip_suffix('s').unwrap_or(key).replace('_', " ");
    match singular.split_once(' ') {
        Some((first @ ("api" | "ai"), rest)) => format!("{} {rest}", first.to_uppercase()),
        _ => singular,
    }
}

/// A name on one line, truncated if it is long.
fn shown(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Characters of a name that a problem shows.
const NAME_CHARS_MAX: usize = 60;

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
                "e (no. 1): f: unknown key, known here are: ",
                "zz: unknown key, known here are: a, b, c, d, name, e",
            ]
        );
    }

    #[test]
    fn an_item_of_a_list_is_named() {
        let found = problems(
            "[[organisations]]\nname = \"Acme\"\nx = 1\n[[organisations.api_keys]]\nname = \"c\\nr\"\nx = 1\n\
             [[organisations.api_keys]]\nx = { y = 1 }\n[[organisations]]\nname = \" \"\nx = 1\n\
             [[fx_rates]]\nfrom = \"EUR\"\nto = \"USD\"\nx = 1\n\
             [[sell_rates]]\nprefix = \"+44\"\norganisation = \"Acme\"\nx = 1\n",
            |fields| {
                for list in ["organisations", "fx_rates", "sell_rates"] {
                    for (path, table) in fields.tables(list) {
                        let mut fields = Fields::new(path, table, fields.problems());
                        for (path, table) in fields.tables("api_keys") {
                            let mut fields = Fields::new(path, table, fields.problems());
                            if let Some((path, table)) = fields.table("x") {
                                Fields::new(path, table, fields.problems()).finish();
                            }
                        }
                        fields.boolean("x");
                    }
                }
            },
        );
        assert_eq!(
            found,
            [
                "organisation \"Acme\", API key \"c r\": x: must be a table, not a number",
                "organisation \"Acme\", API key (no. 2): x.y: unknown key, known here are: ",
                "organisation \"Acme\": x: must be true or false, not a number",
                "organisation (no. 2): x: must be true or false, not a number",
                "fx rate \"EUR\" to \"USD\": x: must be true or false, not a number",
                "sell rate \"+44\" of \"Acme\": x: must be true or false, not a number",
            ]
        );
    }
}
