//! The results of a run, as a table or as JSON.

use serde_json::{Map, Value};

/// Figures of a run in the order in which they are shown.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    title: String,
    rows: Vec<Row>,
    failures: u64,
    is_json: bool,
}

#[derive(Clone, Debug)]
struct Row {
    name: String,
    value: Value,
    shown: String,
}

impl Report {
    /// Holds no figures yet.
    pub(crate) fn new(title: &str) -> Self {
        Report { title: title.to_owned(), rows: Vec::new(), failures: 0, is_json: false }
    }

    /// Adds a count.
    pub(crate) fn count(&mut self, name: &str, count: u64) {
        self.add(name, count.into(), count.to_string());
    }

    /// Adds a count of failures; any makes the run incomplete.
    pub(crate) fn failed(&mut self, name: &str, count: u64) {
        self.failures += count;
        self.count(name, count);
    }

    /// Adds milliseconds.
    pub(crate) fn ms(&mut self, name: &str, ms: f64) {
        self.number(name, ms, "ms");
    }

    /// Adds a number with its unit.
    pub(crate) fn number(&mut self, name: &str, number: f64, unit: &str) {
        let shown = match number.abs() {
            size if size >= 100.0 => format!("{number:.0}"),
            size if size >= 10.0 => format!("{number:.1}"),
            _ => format!("{number:.3}"),
        };
        let rounded = (number * 10_000.0).round() / 10_000.0;
        self.add(&format!("{name} [{unit}]"), rounded.into(), format!("{shown} {unit}"));
    }

    /// Whether every unit of the run succeeded.
    pub(crate) fn is_whole(&self) -> bool {
        self.failures == 0
    }

    /// Returns a figure by its name, as JSON shows it.
    #[cfg(test)]
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.rows.iter().find(|row| row.name == name).map(|row| &row.value)
    }

    /// Shows the figures as JSON instead of a table.
    pub(crate) fn shown_as_json(mut self) -> Self {
        self.is_json = true;
        self
    }

    /// Returns the figures in the requested form.
    pub(crate) fn text(&self) -> String {
        if self.is_json { self.json().to_string() } else { self.table() }
    }

    /// Returns the figures as a table of two columns.
    pub(crate) fn table(&self) -> String {
        let label = |row: &Row| row.name.split(" [").next().unwrap_or_default().to_owned();
        let width = self.rows.iter().map(|row| label(row).chars().count()).max().unwrap_or_default();
        let mut text = format!("{}\n", self.title);
        for row in &self.rows {
            let padding = " ".repeat(width - label(row).chars().count());
            text += &format!("  {}{padding}  {}\n", label(row), row.shown);
        }
        text
    }

    /// Returns the figures as one object, whose names carry their units.
    pub(crate) fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("run".to_owned(), self.title.clone().into());
        object.extend(self.rows.iter().map(|row| (row.name.clone(), row.value.clone())));
        Value::Object(object)
    }

    fn add(&mut self, name: &str, value: Value, shown: String) {
        self.rows.push(Row { name: name.to_owned(), value, shown });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_and_json_hold_the_same_figures() {
        let mut report = Report::new("calls");
        report.count("done", 20);
        report.failed("failed", 0);
        report.ms("INVITE → 200 p50", 1.23456);
        report.number("CPU per call", 123.4, "ms");
        assert!(report.is_whole());
        assert_eq!(
            report.text(),
            "calls\n  done              20\n  failed            0\n  INVITE → 200 p50  1.235 ms\n  CPU per call      123 ms\n"
        );
        assert_eq!(
            report.clone().shown_as_json().text(),
            r#"{"run":"calls","done":20,"failed":0,"INVITE → 200 p50 [ms]":1.2346,"CPU per call [ms]":123.4}"#
        );
        assert_eq!(report.value("done"), Some(&20.into()));
        report.failed("failed 503", 1);
        assert!(!report.is_whole());
    }
}
