//! Why a leg got its verdict: what every rule measured, and how far it was from applying.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

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
    /// What came of a rule.
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

/// What one rule of the verdict measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RuleCheck {
    /// The judgement that the rule makes.
    pub rule: MediaVerdict,
    /// Which of its conditions is meant; left out when it has but one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
    /// What came of it.
    pub outcome: RuleOutcome,
    /// How near it was to firing, in percent: at 100 the condition that held it back is at its threshold.
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
    /// What was measured, its unit last.
    #[cfg_attr(feature = "openapi", schema(example = "loss_pct"))]
    pub name: Cow<'static, str>,
    /// What it came to; left out where it cannot be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<QualityValue>,
    /// What it was compared with; left out where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<QualityValue>,
}

/// A count, a decimal, a yes or no, or a text such as an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Written by hand: in JSON a count and a decimal are both numbers, and a value may match only one
/// alternative.
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

/// The part of a leg that the judgement is about.
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
