//! One capture of the corpus: its description and the correct result.

use std::fmt;

use super::capture_builder::CaptureBuilder;

/// A capture of the golden corpus.
#[derive(Clone, Copy)]
pub struct Golden {
    /// Its file, without the extension.
    pub name: &'static str,
    /// Its description.
    pub shows: &'static str,
    /// How other tools misread it, and where that was reported; empty for the plain captures of each verdict.
    pub misread: &'static str,
    /// The verdict on the caller's leg; empty where there must be none.
    pub verdict: &'static str,
    /// Figures that an analysis must give.
    pub figures: &'static [Expected],
    /// Records the call.
    pub(super) record: fn(&mut CaptureBuilder),
}

/// One figure of the analysis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Its location in the JSON of `sidetone analyze`, as a JSON pointer (RFC 6901).
    pub at: &'static str,
    /// The expected value.
    pub is: Is,
}

/// The expected value of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Is {
    /// Not present: it cannot be judged.
    Absent,
    /// A number in this range, both ends included.
    Between(f64, f64),
    /// True or false.
    Flag(bool),
    /// Exactly this number.
    Number(f64),
    /// Exactly this text.
    Text(&'static str),
}

impl fmt::Debug for Golden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Golden")
            .field("name", &self.name)
            .field("verdict", &self.verdict)
            .finish_non_exhaustive()
    }
}

pub(super) const fn number(at: &'static str, number: f64) -> Expected {
    Expected { at, is: Is::Number(number) }
}

pub(super) const fn between(at: &'static str, from: f64, to: f64) -> Expected {
    Expected { at, is: Is::Between(from, to) }
}

pub(super) const fn flag(at: &'static str, flag: bool) -> Expected {
    Expected { at, is: Is::Flag(flag) }
}

pub(super) const fn text(at: &'static str, text: &'static str) -> Expected {
    Expected { at, is: Is::Text(text) }
}

pub(super) const fn absent(at: &'static str) -> Expected {
    Expected { at, is: Is::Absent }
}
