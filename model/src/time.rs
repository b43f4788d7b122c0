//! Wall-clock times of records.

use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Date, OffsetDateTime, UtcOffset};

/// A UTC instant in whole microseconds since 1970-01-01; written as RFC 3339 with `Z` and milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime, example = "2026-01-31T12:00:00.000Z"))]
pub struct Timestamp(i64);

/// The time of an input: the monotonic clock for decisions, the wall clock for records.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The monotonic clock.
    pub instant: Instant,
    /// The wall clock.
    pub wall: Timestamp,
}

impl Timestamp {
    /// The instant `micros` microseconds after the Unix epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Timestamp(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// This instant moved by `micros` microseconds, saturating.
    #[must_use]
    pub const fn plus_micros(self, micros: i64) -> Self {
        Timestamp(self.0.saturating_add(micros))
    }

    /// This instant in whole milliseconds, the precision of its text.
    #[must_use]
    pub const fn whole_millis(self) -> Self {
        Timestamp(self.0.saturating_sub(self.0.rem_euclid(1000)))
    }

    /// Microseconds from `earlier` to `self`; negative when `earlier` is the later one.
    pub const fn since(self, earlier: Timestamp) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Reads an RFC 3339 timestamp, or a date `YYYY-MM-DD` as its midnight in UTC.
    ///
    /// # Errors
    /// Any other text, and instants outside the years 0 to 9999.
    pub fn parse_bound(text: &str) -> Result<Self, ParseTimestampError> {
        if let Ok(date) = Date::parse(text, format_description!("[year]-[month]-[day]")) {
            return Self::from_offset(date.midnight().assume_utc());
        }
        text.parse()
    }

    /// The instant in the form of HTTP headers: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7); `None` outside
    /// the years of the calendar.
    pub fn to_http_date(self) -> Option<String> {
        let format = format_description!(
            "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
        );
        let instant = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1000).ok()?;
        instant.format(format).ok()
    }

    fn from_offset(instant: OffsetDateTime) -> Result<Self, ParseTimestampError> {
        i64::try_from(instant.unix_timestamp_nanos().div_euclid(1000))
            .map(Timestamp)
            .map_err(|_| ParseTimestampError)
    }
}

/// The text is not an RFC 3339 timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 timestamp such as 2026-01-31T12:00:00Z")]
pub struct ParseTimestampError;

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        OffsetDateTime::parse(text, &Rfc3339)
            .map_err(|_| ParseTimestampError)
            // The last hours of the year 9999 may be in the year 10000 in UTC.
            .and_then(|instant| instant.checked_to_offset(UtcOffset::UTC).ok_or(ParseTimestampError))
            .and_then(Self::from_offset)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = frequent(self.0) {
            return f.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?);
        }
        match calendar(self.0) {
            Some(text) => f.write_str(&text),
            // After the year 9999 there is no calendar form; the number still shows the stored value.
            None => write!(f, "{}us", self.0),
        }
    }
}

/// The text of an instant; `None` outside the years of the calendar.
fn calendar(us: i64) -> Option<String> {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(us) * 1000).ok()?.format(format).ok()
}

/// The same for the years 0 to 9999, without an allocation: the report on a capture has a dozen instants for
/// every call.
fn frequent(us: i64) -> Option<[u8; 24]> {
    let instant = OffsetDateTime::from_unix_timestamp(us.div_euclid(1_000_000)).ok()?;
    let (year, month, day) = instant.to_calendar_date();
    let year = u32::try_from(year).ok().filter(|year| *year <= 9_999)?;
    let (month, day) = (u32::from(u8::from(month)), u32::from(day));
    let (hour, minute, second) = instant.to_hms();
    let [hour, minute, second] = [hour, minute, second].map(u32::from);
    // Less than a thousand.
    let ms = (us.rem_euclid(1_000_000) / 1_000) as u32;
    let digit = |number: u32| b'0' + (number % 10) as u8;
    Some([
        digit(year / 1000),
        digit(year / 100),
        digit(year / 10),
        digit(year),
        b'-',
        digit(month / 10),
        digit(month),
        b'-',
        digit(day / 10),
        digit(day),
        b'T',
        digit(hour / 10),
        digit(hour),
        b':',
        digit(minute / 10),
        digit(minute),
        b':',
        digit(second / 10),
        digit(second),
        b'.',
        digit(ms / 100),
        digit(ms / 10),
        digit(ms),
        b'Z',
    ])
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_frequent_is_written_as_the_rest(us in prop_oneof![0_i64..253_402_300_800_000_000, any::<i64>()]) {
            let text = frequent(us).map(|text| String::from_utf8(text.to_vec()).unwrap());
            prop_assert!(text.is_none() || text == calendar(us), "{us}: {text:?}");
            prop_assert!(text.is_some() || !(0..253_402_300_800_000_000).contains(&us), "{us}");
        }
    }

    #[test]
    fn writes_milliseconds_and_z() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_767_225_600_123_999, "2026-01-01T00:00:00.123Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ];
        for (micros, text) in cases {
            assert_eq!(Timestamp::from_micros(micros).to_string(), text);
        }
        assert_eq!(Timestamp::from_micros(i64::MAX).to_string(), "9223372036854775807us");
    }

    #[test]
    fn writes_the_date_of_a_header() {
        let instant: Timestamp = "1994-11-06T08:49:37Z".parse().unwrap();
        assert_eq!(instant.to_http_date().unwrap(), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(Timestamp::from_micros(i64::MAX).to_http_date(), None);
    }

    #[test]
    fn reads_offsets_and_dates() {
        let cases = [
            ("2026-01-01", Some(1_767_225_600_000_000)),
            ("2026-01-01T01:00:00+01:00", Some(1_767_225_600_000_000)),
            ("2026-01-01T00:00:00.000001Z", Some(1_767_225_600_000_001)),
            ("2026-02-30", None),
            ("9999-12-31T23:59:59-01:00", None),
            ("0000-01-01T00:00:00+01:00", Some(-62_167_222_800_000_000)),
            ("yesterday", None),
            ("", None),
        ];
        for (text, micros) in cases {
            assert_eq!(Timestamp::parse_bound(text).ok().map(Timestamp::as_micros), micros, "{text}");
        }
    }
}
