//! The reasons for a leg's verdict: the measurement of every rule, and how far it was from applying.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, IntoDeserializer, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::call::words;
use crate::quality::{Hundredths, MediaVerdict};
use crate::time::Timestamp;

words! {
    /// Whose doing a judgement is.
    Blame {
        /// The network between the party and us.
        Network = "network",
        /// The party's device, or what it is configured to.
        Remote = "remote",
        /// This engine, its host or its configuration.
        Us = "us",
    }
}

words! {
    /// The result of a rule.
    RuleOutcome {
        /// Its conditions did not hold.
        Clear = "clear",
        /// It made the judgement.
        Fired = "fired",
        /// There was too little to look at.
        NotJudged = "not_judged",
        /// It would have made the judgement, had an earlier one not.
        Outranked = "outranked",
    }
}

/// The measurement of one rule of the verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RuleCheck {
    /// The verdict of the rule.
    pub rule: MediaVerdict,
    /// The condition; absent when the rule has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
    /// The result.
    pub outcome: RuleOutcome,
    /// How close the rule was to firing, in percent: at 100 the limiting condition has reached its threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached_pct: Option<Hundredths>,
    /// Its numbers, most telling first.
    #[serde(default)]
    pub measures: Vec<RuleMeasure>,
}

/// One number of a rule, beside the threshold it was compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RuleMeasure {
    /// The name of the figure; its unit comes last.
    #[cfg_attr(feature = "openapi", schema(example = "loss_pct"))]
    pub name: Cow<'static, str>,
    /// The measured value; absent when it cannot be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<QualityValue>,
    /// The threshold; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<QualityValue>,
}

/// A count, a decimal, a yes or no, or a text such as an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum QualityValue {
    /// A yes or no.
    Flag(bool),
    /// A count.
    Integer(i64),
    /// A decimal with two places.
    Decimal(Hundredths),
    /// An address or a name.
    Text(String),
}

/// Not derived: a derived implementation would try the alternatives in turn, and build an error for each that
/// fails.
impl<'de> Deserialize<'de> for QualityValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QualityVisitor)
    }
}

struct QualityVisitor;

impl Visitor<'_> for QualityVisitor {
    type Value = QualityValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a yes or no, a number or a text")
    }

    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<QualityValue, E> {
        Ok(QualityValue::Flag(flag))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<QualityValue, E> {
        Ok(QualityValue::Integer(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<QualityValue, E> {
        i64::try_from(number).map(QualityValue::Integer).map_err(|_| E::custom("figure out of range"))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<QualityValue, E> {
        Hundredths::deserialize(number.into_deserializer()).map(QualityValue::Decimal)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<QualityValue, E> {
        Ok(QualityValue::Text(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<QualityValue, E> {
        Ok(QualityValue::Text(text))
    }
}

/// Not derived: in JSON a count and a decimal are both numbers, but a value must match only one alternative.
#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for QualityValue {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
        let one = |kind, meaning: &str| ObjectBuilder::new().schema_type(kind).description(Some(meaning));
        OneOfBuilder::new()
            .description(Some("A count, a decimal, a yes or no, or a text such as an address."))
            .item(one(Type::Boolean, "A yes or no."))
            .item(one(Type::Number, "A count, or a decimal with two places."))
            .item(one(Type::String, "An address or a name."))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for QualityValue {}

impl fmt::Display for QualityValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QualityValue::Flag(true) => f.write_str("yes"),
            QualityValue::Flag(false) => f.write_str("no"),
            QualityValue::Integer(number) => number.fmt(f),
            QualityValue::Decimal(number) => number.as_f64().fmt(f),
            QualityValue::Text(text) => f.write_str(text),
        }
    }
}

/// The part of a leg that the verdict refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Affected {
    /// The first second affected, counted from where the timeline begins.
    pub first_s: u32,
    /// The last second affected.
    pub last_s: u32,
    /// When the first began.
    pub from: Timestamp,
    /// When the last ended.
    pub to: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_were_written() {
        let cases = [
            (QualityValue::Flag(true), "true"),
            (QualityValue::Integer(-3), "-3"),
            (QualityValue::Integer(i64::MAX), "9223372036854775807"),
            (QualityValue::Decimal(Hundredths(300)), "3.0"),
            (QualityValue::Decimal(Hundredths(-1_250)), "-12.5"),
            (QualityValue::Text("192.0.2.1:4000 \"é\"".to_owned()), "\"192.0.2.1:4000 \\\"é\\\"\""),
        ];
        for (value, text) in cases {
            assert_eq!(serde_json::to_string(&value).unwrap(), text);
            assert_eq!(serde_json::from_str::<QualityValue>(text).unwrap(), value);
            let json: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::from_value::<QualityValue>(json).unwrap(), value);
        }
        for refused in ["null", "[]", "{}", "1e300"] {
            assert!(serde_json::from_str::<QualityValue>(refused).is_err(), "{refused}");
        }
    }
}
