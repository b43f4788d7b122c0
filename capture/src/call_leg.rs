//! The leg that a call is judged by, and a figure of a rule as JSON. Both the analysis and the explanation of a verdict
//! write them.

use std::ops::Deref;

use serde::{Serialize, Serializer};
use sidetone_media::session::{Report, Value};
use sidetone_model::media_quality::LegSide;

/// The leg that a call is judged by: the caller's; in a trace, the traced leg.
#[derive(Debug, PartialEq, Eq)]
pub struct CallLeg {
    /// The report of its session.
    pub report: Box<Report>,
    /// Which side of the call it is.
    pub side: LegSide,
    /// The sentence about the call when that is not about its media: it was not answered.
    pub words: Option<String>,
}

impl CallLeg {
    /// The caller's leg.
    pub fn of_caller(report: Box<Report>) -> Self {
        CallLeg { report, side: LegSide::A, words: None }
    }
}

impl Deref for CallLeg {
    type Target = Report;

    fn deref(&self) -> &Report {
        &self.report
    }
}

/// A figure of a rule.
pub(super) struct ValueReport<'a>(pub(super) &'a Value);

impl Serialize for ValueReport<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::Hundredths(number) => serializer.serialize_f64(number.as_f64()),
            Value::Integer(number) => serializer.serialize_i64(*number),
            Value::Text(text) => serializer.serialize_str(text),
        }
    }
}
