//! The ten verdicts, and the numbers that explain one.

use std::fmt;

use crate::stats::Hundredths;

/// The judgement on the audio that a party sent, and on whether it could receive ours.
///
/// In the order of the public API's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// No fault was found.
    Ok,
    /// The leg was never answered.
    Unanswered,
    /// The party should have sent audio and sent none.
    NoInboundMedia,
    /// We should have sent audio to the party and sent none.
    NoOutboundMedia,
    /// An address in SDP, the party's or ours, was not reachable.
    WrongAdvertisedAddress,
    /// Too many of the party's packets were lost.
    LossyInbound,
    /// The network delivered the party's packets too irregularly.
    JitteryInbound,
    /// The party sent in clumps or at the wrong rate.
    UnpacedSender,
    /// The party's packets have another duration than advertised.
    PtimeMismatch,
    /// The audio had another fault, or stopped before the call ended.
    DegradedAudio,
}

impl Verdict {
    /// Every verdict, in the public API's order.
    pub const ALL: [Verdict; 10] = [
        Verdict::Ok,
        Verdict::Unanswered,
        Verdict::NoInboundMedia,
        Verdict::NoOutboundMedia,
        Verdict::WrongAdvertisedAddress,
        Verdict::LossyInbound,
        Verdict::JitteryInbound,
        Verdict::UnpacedSender,
        Verdict::PtimeMismatch,
        Verdict::DegradedAudio,
    ];

    /// The verdict's public name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Unanswered => "unanswered",
            Verdict::NoInboundMedia => "no_inbound_media",
            Verdict::NoOutboundMedia => "no_outbound_media",
            Verdict::WrongAdvertisedAddress => "wrong_advertised_address",
            Verdict::LossyInbound => "lossy_inbound",
            Verdict::JitteryInbound => "jittery_inbound",
            Verdict::UnpacedSender => "unpaced_sender",
            Verdict::PtimeMismatch => "ptime_mismatch",
            Verdict::DegradedAudio => "degraded_audio",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The evidence for a verdict: the rule that matched and the numbers it compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The verdict of the rule that matched; `None` when there was nothing to judge.
    pub rule: Option<Verdict>,
    /// The condition of the rule that held, such as `clumps` or `dead_tail`; empty for `ok`.
    pub reason: &'static str,
    /// The numbers, most significant first.
    pub measures: Vec<Measure>,
}

/// One number of the evidence, with the threshold it was compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The number's name, unit last.
    pub name: &'static str,
    /// The measured value.
    pub value: Value,
    /// The threshold it was compared with, if there is one.
    pub threshold: Option<Value>,
}

impl Measure {
    /// The same measure with its threshold.
    pub(crate) fn held_to(self, threshold: Hundredths) -> Self {
        let threshold = match self.value {
            Value::Integer(_) if threshold.0 % 100 == 0 => Value::Integer(threshold.0 / 100),
            _ => Value::Hundredths(threshold),
        };
        Measure { threshold: Some(threshold), ..self }
    }
}

/// A count.
pub(crate) fn count(name: &'static str, value: u64) -> Measure {
    plain(name, Value::Integer(i64::try_from(value).unwrap_or(i64::MAX)))
}

/// A decimal, or the word for a value that cannot be computed.
pub(crate) fn decimal(name: &'static str, value: Option<Hundredths>) -> Measure {
    plain(name, value.map_or_else(|| Value::Text("absent".into()), Value::Hundredths))
}

/// A yes or no.
pub(crate) fn flag(name: &'static str, value: bool) -> Measure {
    plain(name, Value::Flag(value))
}

/// Microseconds as whole milliseconds.
pub(crate) fn millis(name: &'static str, us: i64) -> Measure {
    plain(name, Value::Integer(us / 1000))
}

/// `part` in percent of `whole`.
pub(crate) fn share(name: &'static str, part: i64, whole: i64) -> Measure {
    decimal(name, Hundredths::ratio(i128::from(part) * 100, i128::from(whole)))
}

/// An address or a name.
pub(crate) fn text(name: &'static str, value: String) -> Measure {
    plain(name, Value::Text(value))
}

fn plain(name: &'static str, value: Value) -> Measure {
    Measure { name, value, threshold: None }
}

/// A number or a word of the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A yes or no.
    Flag(bool),
    /// A decimal with two places.
    Hundredths(Hundredths),
    /// A count.
    Integer(i64),
    /// An address or a name.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(value) => value.fmt(f),
            Value::Hundredths(value) => value.fmt(f),
            Value::Integer(value) => value.fmt(f),
            Value::Text(value) => f.pad(value),
        }
    }
}
