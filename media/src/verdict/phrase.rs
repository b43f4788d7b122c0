//! Formats numbers and addresses for sentences.

use crate::stats::Hundredths;
use crate::verdict::Party;

/// The name of a party within a sentence, and at its beginning.
#[derive(Clone, Copy)]
pub(super) struct Name {
    pub(super) within: &'static str,
    pub(super) first: &'static str,
}

impl Name {
    pub(super) fn of(party: Party) -> Name {
        let (within, first) = match party {
            Party::Called => ("the called party", "The called party"),
            Party::Caller => ("the caller", "The caller"),
            Party::Sender => ("the sender", "The sender"),
            Party::Unnamed => ("this party", "This party"),
        };
        Name { within, first }
    }
}

pub(super) fn packets(count: u64) -> String {
    counted(count, "packet", "packets")
}

pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// The number, or the word for zero.
pub(super) fn none_or(number: u64) -> String {
    if number == 0 { "none".to_owned() } else { grouped(number) }
}

/// Digits in groups of three.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A decimal without trailing zeros.
pub(super) fn short(number: Hundredths) -> String {
    let text = number.to_string();
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(super) fn seconds_of_ms(ms: i64) -> String {
    let tenths = (ms.max(0) + 50) / 100;
    match (tenths / 10, tenths % 10) {
        (1, 0) => "1 second".to_owned(),
        (whole, 0) => format!("{} seconds", grouped(whole.unsigned_abs())),
        (whole, tenth) => format!("{}.{tenth} seconds", grouped(whole.unsigned_abs())),
    }
}

/// `media` relative to `real` as a speed: "80 % of", or "600 times".
pub(super) fn speed(media: i64, real: i64) -> String {
    let times = Hundredths::ratio(media.into(), real.into());
    match times {
        Some(times) if times.0 >= 200 => format!("{} times", short(times)),
        _ => {
            let share = Hundredths::ratio(i128::from(media) * 100, real.into());
            format!("{} % of", share.map_or_else(|| "?".to_owned(), short))
        }
    }
}

pub(super) fn percent(part: u64, whole: u64) -> String {
    Hundredths::ratio(i128::from(part) * 100, whole.into()).map_or_else(|| "?".to_owned(), short)
}

pub(super) fn text(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "an unknown address".to_owned(), |value| value.to_string())
}
