//! Byte ranges of a file (RFC 9110 §14), and conditional requests (§13).
//!
//! Multiple ranges are never sent; a request for them is refused. Dates are compared to the second.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use axum::http::header::{HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, RANGE};
use sidetone_model::time::Timestamp;

/// The identification of a version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    /// Its length in bytes.
    pub(crate) bytes: u64,
    /// A strong entity tag, with its quotes.
    pub(crate) etag: String,
    /// The last change of the file.
    pub(crate) modified: SystemTime,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The complete file.
    Full,
    /// Nothing: the caller has this version.
    NotModified,
    /// The bytes from the first to the last position.
    Part {
        /// The position of the first byte.
        first: u64,
        /// The position of the last byte, included.
        last: u64,
    },
    /// No content: the range does not exist, or several were requested.
    Unsatisfiable,
}

impl Version {
    /// The version of a file of this length that was written at `modified_at`.
    pub(crate) fn new(bytes: u64, modified_at: Timestamp) -> Self {
        let micros = u64::try_from(modified_at.as_micros()).unwrap_or(0);
        // A header's date has whole seconds.
        let modified = UNIX_EPOCH + Duration::from_secs(micros / 1_000_000);
        Self { bytes, etag: format!("\"{bytes:x}-{micros:x}\""), modified }
    }

    /// `Last-Modified`.
    pub(crate) fn last_modified(&self) -> String {
        httpdate::fmt_http_date(self.modified)
    }

    /// The answer to a request with these headers.
    pub(crate) fn answer(&self, headers: &HeaderMap, is_head: bool) -> Answer {
        if self.is_known(headers) {
            return Answer::NotModified;
        }
        // §14.2: Range applies only to GET, and an outdated If-Range requests the complete file.
        if is_head || !self.is_same(headers) {
            return Answer::Full;
        }
        let mut ranges = headers.get_all(RANGE).iter();
        match (ranges.next().map(|range| range.to_str()), ranges.next()) {
            (None, _) | (Some(Err(_)), None) => Answer::Full,
            (Some(Ok(range)), None) => self.range(range),
            (Some(_), Some(_)) => Answer::Unsatisfiable,
        }
    }

    /// §13.1.2, §13.1.3: the date is used only without a tag.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let mut tags = headers.get_all(IF_NONE_MATCH).iter().peekable();
        if tags.peek().is_some() {
            return tags.filter_map(|tags| tags.to_str().ok()).any(|tags| {
                tags.trim() == "*"
                    || tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == self.etag)
            });
        }
        date(headers, IF_MODIFIED_SINCE).is_some_and(|since| self.modified <= since)
    }

    /// §13.1.5: whether a range of this version may be sent to the client.
    fn is_same(&self, headers: &HeaderMap) -> bool {
        let mut versions = headers.get_all(IF_RANGE).iter();
        match (versions.next(), versions.next()) {
            (None, _) => true,
            (Some(version), None) => {
                // A weak tag never matches, because its `W/` makes the text differ.
                version.as_bytes() == self.etag.as_bytes()
                    || date(headers, IF_RANGE).is_some_and(|date| date == self.modified)
            }
            (Some(_), Some(_)) => false,
        }
    }

    /// §14.1.2. A unit other than bytes is ignored.
    fn range(&self, text: &str) -> Answer {
        let Some((unit, ranges)) = text.split_once('=') else { return Answer::Full };
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return Answer::Full;
        }
        // Empty list elements are ignored (§5.6.1).
        let mut parts = ranges.split(',').map(str::trim).filter(|part| !part.is_empty());
        let (Some(part), more) = (parts.next(), parts.next()) else { return Answer::Full };
        if more.is_some() {
            return Answer::Unsatisfiable;
        }
        let Some((first, last)) = part.split_once('-') else { return Answer::Full };
        match (number(first), number(last)) {
            (Some(first), Some(last)) if last < first => Answer::Full,
            (Some(first), Some(last)) => self.part(first, last),
            (Some(first), None) if last.is_empty() => self.part(first, u64::MAX),
            (None, Some(0)) if first.is_empty() => Answer::Unsatisfiable,
            (None, Some(count)) if first.is_empty() => self.part(self.bytes.saturating_sub(count), u64::MAX),
            _ => Answer::Full,
        }
    }

    fn part(&self, first: u64, last: u64) -> Answer {
        if first >= self.bytes {
            return Answer::Unsatisfiable;
        }
        Answer::Part { first, last: last.min(self.bytes - 1) }
    }
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

/// Only digits; a number that overflows is larger than every file.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    const ETAG: &str = "\"3e8-e35fa931a0000\"";
    const DATE: &str = "Sun, 01 Jan 2096 00:00:00 GMT";

    fn version() -> Version {
        let version = Version::new(1_000, Timestamp::from_micros(4_000_000_000_123_456));
        Version { etag: ETAG.to_owned(), modified: httpdate::parse_http_date(DATE).unwrap(), ..version }
    }

    fn headers(lines: &[(HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn part(first: u64, last: u64) -> Answer {
        Answer::Part { first, last }
    }

    #[test]
    fn ranges_of_rfc_9110_section_14() {
        let cases = [
            ("bytes=0-0", part(0, 0)),
            ("bytes=0-499", part(0, 499)),
            ("bytes=500-999", part(500, 999)),
            ("bytes=500-", part(500, 999)),
            ("bytes=999-", part(999, 999)),
            ("bytes=-500", part(500, 999)),
            ("bytes=-1", part(999, 999)),
            ("bytes=-5000", part(0, 999)),
            ("bytes=900-5000", part(900, 999)),
            ("bytes=0-99999999999999999999999", part(0, 999)),
            ("BYTES = 1-2", part(1, 2)),
            ("bytes=,1-2,", part(1, 2)),
            ("bytes=1000-", Answer::Unsatisfiable),
            ("bytes=1000-2000", Answer::Unsatisfiable),
            ("bytes=99999999999999999999999-", Answer::Unsatisfiable),
            ("bytes=-0", Answer::Unsatisfiable),
            ("bytes=0-0,-1", Answer::Unsatisfiable),
            ("bytes=0-1, 5-6", Answer::Unsatisfiable),
            ("bytes=2-1", Answer::Full),
            ("bytes=-", Answer::Full),
            ("bytes=", Answer::Full),
            ("bytes=a-b", Answer::Full),
            ("bytes=+1-2", Answer::Full),
            ("bytes=1-2x", Answer::Full),
            ("bytes=0x1-2", Answer::Full),
            ("bytes 0-1", Answer::Full),
            ("seconds=0-1", Answer::Full),
        ];
        for (range, expected) in cases {
            assert_eq!(version().answer(&headers(&[(RANGE, range)]), false), expected, "{range}");
            assert_eq!(version().answer(&headers(&[(RANGE, range)]), true), Answer::Full, "HEAD {range}");
        }
        let twice = headers(&[(RANGE, "bytes=0-0"), (RANGE, "bytes=1-1")]);
        assert_eq!(version().answer(&twice, false), Answer::Unsatisfiable);
        let empty = Version { bytes: 0, ..version() };
        for range in ["bytes=0-", "bytes=-1"] {
            assert_eq!(empty.answer(&headers(&[(RANGE, range)]), false), Answer::Unsatisfiable, "{range}");
        }
    }

    #[test]
    fn a_part_is_of_the_version_that_the_caller_has() {
        let weak = format!("W/{ETAG}");
        let cases = [
            (ETAG, part(1, 2)),
            (DATE, part(1, 2)),
            (weak.as_str(), Answer::Full),
            ("\"other\"", Answer::Full),
            ("Sun, 01 Jan 2096 00:00:01 GMT", Answer::Full),
            ("nonsense", Answer::Full),
        ];
        for (if_range, expected) in cases {
            let lines = [(RANGE, "bytes=1-2"), (IF_RANGE, if_range)];
            assert_eq!(version().answer(&headers(&lines), false), expected, "{if_range}");
        }
    }

    #[test]
    fn who_has_it_already_is_not_sent_it() {
        let known = [format!("W/{ETAG}"), ETAG.to_owned(), format!("\"a\", {ETAG}"), "*".to_owned()];
        for tag in &known {
            for more in [
                vec![],
                vec![(RANGE, "bytes=0-1")],
                vec![(IF_MODIFIED_SINCE, "Mon, 01 Jan 1996 00:00:00 GMT")],
            ] {
                let lines = [vec![(IF_NONE_MATCH, tag.as_str())], more].concat();
                assert_eq!(version().answer(&headers(&lines), false), Answer::NotModified, "{lines:?}");
            }
        }
        let since = |date| version().answer(&headers(&[(IF_MODIFIED_SINCE, date)]), false);
        assert_eq!(since(DATE), Answer::NotModified);
        assert_eq!(since("Sat, 31 Dec 2095 23:59:59 GMT"), Answer::Full);
        assert_eq!(since("yesterday"), Answer::Full);
        // A tag that differs takes precedence.
        let lines = [(IF_NONE_MATCH, "\"b\""), (IF_MODIFIED_SINCE, DATE)];
        assert_eq!(version().answer(&headers(&lines), false), Answer::Full);
    }

    #[test]
    fn a_version_is_told_by_its_length_and_its_time() {
        let at = |micros| Version::new(80, Timestamp::from_micros(micros));
        assert_eq!(at(1_767_225_600_250_000).last_modified(), "Thu, 01 Jan 2026 00:00:00 GMT");
        assert_ne!(at(1_767_225_600_250_000).etag, at(1_767_225_600_250_001).etag);
        assert!(at(0).etag.starts_with('"') && at(-1).etag.ends_with('"'));
    }

    proptest! {
        #[test]
        fn whatever_is_asked_for_is_inside_the_file(text in "(bytes=)?[0-9,\\- ]{0,24}", bytes in 0_u64..50) {
            let version = Version { bytes, ..version() };
            let Ok(value) = HeaderValue::from_str(&text) else { return Ok(()) };
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, value);
            if let Answer::Part { first, last } = version.answer(&headers, false) {
                prop_assert!(first <= last && last < bytes, "{first}-{last} of {bytes}");
            }
        }
    }
}
