//! Parameters of header values and URIs: a short ordered list with raw values.

use std::borrow::Cow;
use std::fmt;

use crate::text::Text;

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The name, as it was written.
    pub name: Text,
    /// The value, as it was written, a quoted string with its quotes; `None` when no `=` follows the name.
    pub value: Option<Text>,
}

/// Parameters in order; names compare case-insensitively.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params(Vec<Param>);

impl Params {
    /// No parameters.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends a parameter that a view has parsed and counted.
    pub(crate) fn push(&mut self, name: &str, value: Option<&str>) {
        self.0.push(Param { name: name.into(), value: value.map(Text::from) });
    }

    /// Sets a parameter to a raw value: in place when it exists, otherwise at the end.
    pub fn set(&mut self, name: &str, value: Option<&str>) {
        let value = value.map(Text::from);
        match self.0.iter_mut().find(|p| p.name.eq_ignore_ascii_case(name)) {
            Some(param) => param.value = value,
            None => self.0.push(Param { name: name.into(), value }),
        }
    }

    /// Removes every parameter of this name.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|p| !p.name.eq_ignore_ascii_case(name));
    }

    /// The raw value; `None` when the parameter is absent, `Some("")` when it has no value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|p| p.name.eq_ignore_ascii_case(name)).map(|p| p.value.as_deref().unwrap_or(""))
    }

    /// The value without the quotes and escapes of a quoted string.
    #[must_use]
    pub fn unquoted(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name).map(unquote)
    }

    /// Whether the parameter is there, with or without a value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether there is no parameter.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All parameters in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Param> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Params {
    type Item = &'a Param;
    type IntoIter = std::slice::Iter<'a, Param>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Param { name, value } in self {
            write!(f, ";{name}")?;
            if let Some(value) = value {
                write!(f, "={value}")?;
            }
        }
        Ok(())
    }
}

/// Removes the quotes and backslashes of a quoted string; other text is unchanged.
pub(crate) fn unquote(raw: &str) -> Cow<'_, str> {
    let Some(inner) = raw.strip_prefix('"').and_then(|t| t.strip_suffix('"')) else {
        return Cow::Borrowed(raw);
    };
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut text = String::with_capacity(inner.len());
    let mut escaped = false;
    for c in inner.chars() {
        if c == '\\' && !escaped {
            escaped = true;
        } else {
            escaped = false;
            text.push(c);
        }
    }
    Cow::Owned(text)
}

/// Writes text as a quoted string.
pub(crate) fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    use fmt::Write as _;
    f.write_char('"')?;
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(c)?;
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_raw_and_names_ignore_case() {
        let mut params = Params::new();
        params.set("lr", None);
        params.set("x", Some(r#""a\";b""#));
        assert_eq!(params.to_string(), r#";lr;x="a\";b""#);
        assert_eq!(params.get("LR"), Some(""));
        assert_eq!(params.unquoted("X").as_deref(), Some("a\";b"));
        params.set("LR", Some("on"));
        params.remove("X");
        assert_eq!(params.to_string(), ";lr=on");
    }
}
