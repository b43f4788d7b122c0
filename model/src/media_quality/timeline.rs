//! The packets that arrived on a leg, for every second.

use std::borrow::Cow;

use serde::de::Error;
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::quality::Hundredths;
use crate::time::Timestamp;

/// What arrived on a leg, one row per step of time.
///
/// *Bounds*: the number of rows is limited; a longer leg has rows of two seconds, four, …
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QualityTimeline {
    /// Where the first row begins.
    pub begins_at: Timestamp,
    /// Seconds in a row: 1, or a power of two where the leg lasted too long for rows of a second.
    pub step_s: u32,
    /// The names of the columns.
    #[serde(deserialize_with = "own_columns")]
    pub columns: Vec<Cow<'static, str>>,
    /// The rows, each with one number per column; null where nothing was measured.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Vec<Option<f64>>>))]
    pub seconds: Vec<QualitySecond>,
}

/// One row of a timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QualitySecond {
    /// Packets that arrived.
    pub received: u32,
    /// Packets that never arrived although their successors did.
    pub lost: u32,
    /// Packets too late for a buffer of 100 ms.
    pub late: u32,
    /// Packets that arrived more than once.
    pub duplicates: u32,
    /// Peak of the smoothed jitter, ms.
    pub jitter_max_ms: Option<Hundredths>,
    /// Mean gap between arriving audio packets, ms.
    pub interval_mean_ms: Option<Hundredths>,
    /// Longest gap between arriving packets, ms.
    pub interval_max_ms: Option<Hundredths>,
    /// How late the latest packet was, ms.
    pub lateness_max_ms: Option<Hundredths>,
    /// Whether audio from the party was expected.
    pub audio_expected: bool,
    /// Whether the sender announced silence.
    pub silence_announced: bool,
    /// Whether telephone events (keys) were sent.
    pub event: bool,
    /// Mean level of the audio that was decoded, in whole dBov; −127 is digital silence (RFC 6465 §3). `None` when none
    /// was decoded.
    pub level_dbov: Option<Hundredths>,
}

impl QualityTimeline {
    /// The names of the columns, in the order of a row.
    pub const COLUMNS: [&'static str; COLUMNS] = [
        "received",
        "lost",
        "late",
        "duplicates",
        "jitter_max_ms",
        "interval_mean_ms",
        "interval_max_ms",
        "lateness_max_ms",
        "audio_expected",
        "silence_announced",
        "event",
        "level_dbov",
    ];

    /// Returns the timeline of these rows.
    pub fn new(begins_at: Timestamp, step_s: u32, seconds: Vec<QualitySecond>) -> Self {
        let columns = Self::COLUMNS.map(Cow::Borrowed).to_vec();
        QualityTimeline { begins_at, step_s, columns, seconds }
    }
}

impl QualitySecond {
    fn cells(&self) -> [Option<Hundredths>; COLUMNS] {
        let count = |number: u32| Some(Hundredths(i64::from(number) * 100));
        let mark = |set: bool| Some(Hundredths(i64::from(set) * 100));
        [
            count(self.received),
            count(self.lost),
            count(self.late),
            count(self.duplicates),
            self.jitter_max_ms,
            self.interval_mean_ms,
            self.interval_max_ms,
            self.lateness_max_ms,
            mark(self.audio_expected),
            mark(self.silence_announced),
            mark(self.event),
            self.level_dbov,
        ]
    }

    fn of_cells(cells: [Option<Hundredths>; COLUMNS]) -> Self {
        let count =
            |cell: Option<Hundredths>| u32::try_from(cell.map_or(0, |cell| cell.0 / 100)).unwrap_or_default();
        let mark = |cell: Option<Hundredths>| cell.is_some_and(|cell| cell.0 != 0);
        let [
            received,
            lost,
            late,
            duplicates,
            jitter,
            mean,
            interval,
            lateness,
            expected,
            silence,
            event,
            level,
        ] = cells;
        QualitySecond {
            received: count(received),
            lost: count(lost),
            late: count(late),
            duplicates: count(duplicates),
            jitter_max_ms: jitter,
            interval_mean_ms: mean,
            interval_max_ms: interval,
            lateness_max_ms: lateness,
            audio_expected: mark(expected),
            silence_announced: mark(silence),
            event: mark(event),
            level_dbov: level,
        }
    }
}

impl Serialize for QualitySecond {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_seq(Some(COLUMNS))?;
        for cell in self.cells() {
            match cell {
                // Rows are numerous, so integers are written without decimals.
                Some(Hundredths(number)) if number % 100 == 0 => row.serialize_element(&(number / 100))?,
                other => row.serialize_element(&other)?,
            }
        }
        row.end()
    }
}

impl<'de> Deserialize<'de> for QualitySecond {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut cells = Vec::<Option<Hundredths>>::deserialize(deserializer)?;
        // Rows stored before the level column existed.
        if cells.len() == COLUMNS - 1 {
            cells.push(None);
        }
        let cells =
            cells.try_into().map_err(|_| D::Error::custom("a row of a timeline has other columns"))?;
        Ok(QualitySecond::of_cells(cells))
    }
}

/// Returns the current columns, whatever the text contains: an older version may have written fewer.
fn own_columns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Cow<'static, str>>, D::Error> {
    Vec::<String>::deserialize(deserializer)?;
    Ok(QualityTimeline::COLUMNS.map(Cow::Borrowed).to_vec())
}

const COLUMNS: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_list_of_short_numbers_and_comes_back() {
        let row = QualitySecond {
            received: 49,
            lost: 1,
            jitter_max_ms: Some(Hundredths(1234)),
            interval_mean_ms: Some(Hundredths(2000)),
            audio_expected: true,
            level_dbov: Some(Hundredths(-2600)),
            ..QualitySecond::default()
        };
        let json = serde_json::to_string(&row).unwrap();
        assert_eq!(json, "[49,1,0,0,12.34,20,null,null,1,0,0,-26]");
        assert_eq!(serde_json::from_str::<QualitySecond>(&json).unwrap(), row);
        assert!(serde_json::from_str::<QualitySecond>("[1,2]").is_err());
        assert_eq!(QualityTimeline::COLUMNS.len(), COLUMNS);
    }

    #[test]
    fn a_timeline_from_before_the_level_is_read_with_the_columns_of_now() {
        let mut old = serde_json::to_value(QualityTimeline::new(
            Timestamp::from_micros(0),
            1,
            vec![QualitySecond { received: 50, event: true, ..QualitySecond::default() }],
        ))
        .unwrap();
        let without = |cells: &mut serde_json::Value| cells.as_array_mut().unwrap().pop();
        without(&mut old["columns"]);
        without(&mut old["seconds"][0]);
        let read: QualityTimeline = serde_json::from_value(old).unwrap();
        assert_eq!(read.columns, QualityTimeline::COLUMNS);
        assert_eq!((read.seconds[0].received, read.seconds[0].event), (50, true));
        assert_eq!(read.seconds[0].level_dbov, None);
    }
}
