//! Durations as people write them on a command line and in a phone's script: `500ms`, `30s`, `5m`, `3h`.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// It has another form.
    #[error("\"{0}\" is no duration: write a number with ms, s, m or h, such as 500ms, 30s, 2m or 1h30m")]
    Form(String),
    /// It is longer than allowed.
    #[error("\"{0}\" is too long: a duration is {max} hours at most, such as 3h", max = HOURS_MAX)]
    TooLong(String),
}

/// Reads a duration: whole numbers, each with its unit, the larger unit first. A bare number is seconds.
///
/// *Errors*: the text has another form, or is longer than 1,000 hours.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let form = || DurationError::Form(text.to_owned());
    let too_long = || DurationError::TooLong(text.to_owned());
    let (mut rest, mut total_ms, mut unit_before_ms) = (text.trim(), 0_u64, u64::MAX);
    if rest.is_empty() {
        return Err(form());
    }
    // Each iteration takes at least one digit.
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(digits);
        if number.is_empty() {
            return Err(form());
        }
        let unit = behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit);
        let unit_ms = match unit {
            "" if total_ms == 0 && unit_before_ms == u64::MAX => 1_000,
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => HOUR_MS,
            _ => return Err(form()),
        };
        if unit_ms >= unit_before_ms {
            return Err(form());
        }
        let number: u64 = number.parse().map_err(|_| too_long())?;
        total_ms =
            number.checked_mul(unit_ms).and_then(|ms| ms.checked_add(total_ms)).ok_or_else(too_long)?;
        (rest, unit_before_ms) = (behind, unit_ms);
    }
    if total_ms > HOURS_MAX * HOUR_MS {
        return Err(too_long());
    }
    Ok(Duration::from_millis(total_ms))
}

const HOUR_MS: u64 = 3_600_000;
const HOURS_MAX: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_a_unit_or_is_seconds() {
        let cases = [
            ("5", 5_000),
            ("0", 0),
            ("500ms", 500),
            ("30s", 30_000),
            ("2m", 120_000),
            ("3h", 10_800_000),
            ("1h30m", 5_400_000),
            ("1m5s250ms", 65_250),
            ("1000h", 3_600_000_000),
        ];
        for (text, ms) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_answered_with_an_example() {
        for text in ["", "soon", "s", "-5s", "5 s", "1.5h", "5d", "30m1h", "5s5s", "1h30", "５s"] {
            let error = parse(text).unwrap_err();
            assert_eq!(error, DurationError::Form(text.to_owned()), "{text}");
            assert!(error.to_string().contains("such as 500ms, 30s, 2m or 1h30m"), "{error}");
        }
        for text in ["1001h", "99999999999999999999s", "18446744073709551615h"] {
            assert_eq!(parse(text), Err(DurationError::TooLong(text.to_owned())), "{text}");
        }
    }
}
