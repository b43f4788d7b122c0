//! The rows of a timeline, reduced to a number of points that can be drawn.

use sidetone_model::media_quality::{Affected, QualitySecond, QualityTimeline};
use sidetone_model::quality::Hundredths;
use sidetone_model::time::Timestamp;

/// The values that are drawn for one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) received: u32,
    pub(crate) lost: u32,
    pub(crate) late: u32,
    pub(crate) jitter: Option<Hundredths>,
    pub(crate) interval_mean: Option<Hundredths>,
    pub(crate) interval_max: Option<Hundredths>,
    pub(crate) lateness: Option<Hundredths>,
    pub(crate) level: Option<Hundredths>,
    /// Whether the interval has a row.
    pub(crate) measured: bool,
    /// Whether packets were due but none arrived.
    pub(crate) silent: bool,
}

/// A timeline reduced to points.
#[derive(Debug)]
pub struct Course {
    pub(crate) points: Vec<Point>,
    /// The duration of a point in seconds.
    pub(crate) point_s: u64,
    /// The first and the last point that are affected.
    pub(crate) affected: Option<(usize, usize)>,
}

impl Course {
    /// Reduces `timeline` to at most `points_max` points; peaks are kept, counts are added up.
    ///
    /// The affected time may be after the last row, and so may the rest of a call whose packets stopped
    /// before its end, `until`: the plot must show audio that is missing at the end.
    pub fn new(
        timeline: &QualityTimeline,
        affected: Option<Affected>,
        until: Option<Timestamp>,
        points_max: usize,
    ) -> Option<Self> {
        let step_s = u64::from(timeline.step_s.max(1));
        let last_row = affected.map_or(0, |affected| u64::from(affected.last_s) / step_s + 1);
        let measured = timeline.seconds.len() as u64;
        let until_us = until.map_or(0, |until| until.as_micros() - timeline.begins_at.as_micros());
        let until_row = u64::try_from(until_us).unwrap_or(0) / 1_000_000 / step_s;
        // The last packets of a call arrive a little before its end.
        let until_row = if until_row > measured + TAIL_ROWS { until_row } else { 0 };
        let rows = measured.max(last_row).max(until_row);
        if timeline.seconds.is_empty() {
            return None;
        }
        let rows_each = rows.div_ceil(points_max.max(1) as u64).max(1);
        let mut points: Vec<Point> = timeline
            .seconds
            .chunks(usize::try_from(rows_each).ok()?)
            .map(|rows| {
                rows.iter().fold(Point { silent: true, ..Point::default() }, |point, row| point.with(row))
            })
            .collect();
        let dead = Point { silent: true, ..Point::default() };
        points.resize(usize::try_from(rows.div_ceil(rows_each)).ok()?, dead);
        let point_s = step_s * rows_each;
        let place = |second: u32| usize::try_from(u64::from(second) / point_s).unwrap_or(usize::MAX);
        let affected = affected.map(|affected| (place(affected.first_s), place(affected.last_s)));
        Some(Course { points, point_s, affected })
    }

    /// The first and the last point of every interval without packets.
    pub(crate) fn silences(&self) -> Vec<(usize, usize)> {
        let mut stretches: Vec<(usize, usize)> = Vec::new();
        for (place, _) in self.points.iter().enumerate().filter(|(_, point)| point.silent) {
            match stretches.last_mut() {
                Some((_, last)) if *last + 1 == place => *last = place,
                _ => stretches.push((place, place)),
            }
        }
        stretches
    }

    /// Whether any row has the audio level.
    pub(crate) fn has_level(&self) -> bool {
        self.points.iter().any(|point| point.level.is_some())
    }

    /// From the first row to the end of the last.
    pub(crate) fn duration_s(&self) -> u64 {
        self.point_s * self.points.len() as u64
    }
}

impl Point {
    fn with(self, row: &QualitySecond) -> Point {
        let mean = match (self.interval_mean, row.interval_mean_ms) {
            (Some(so_far), Some(next)) => {
                let (before, after) = (i64::from(self.received), i64::from(row.received));
                let sum = so_far.0 * before + next.0 * after;
                sum.checked_div(before + after).map(Hundredths)
            }
            (one, other) => one.or(other),
        };
        Point {
            received: self.received.saturating_add(row.received),
            lost: self.lost.saturating_add(row.lost),
            late: self.late.saturating_add(row.late),
            jitter: self.jitter.max(row.jitter_max_ms),
            interval_mean: mean,
            interval_max: self.interval_max.max(row.interval_max_ms),
            lateness: self.lateness.max(row.lateness_max_ms),
            level: self.level.max(row.level_dbov),
            measured: true,
            silent: self.silent && row.received == 0 && row.audio_expected && !row.silence_announced,
        }
    }
}

/// The number of rows after the last packet that do not count as missing audio.
const TAIL_ROWS: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn second(received: u32, lost: u32, jitter: i64) -> QualitySecond {
        QualitySecond {
            received,
            lost,
            jitter_max_ms: Some(Hundredths(jitter)),
            interval_mean_ms: Some(Hundredths(jitter)),
            ..QualitySecond::default()
        }
    }

    #[test]
    fn peaks_stay_and_counts_add_up() {
        let rows = (0..10).map(|n| second(50, u32::from(n == 3), n * 100)).collect();
        let timeline = QualityTimeline::new(Timestamp::from_micros(0), 1, rows);
        let course = Course::new(&timeline, None, None, 4).unwrap();
        let jitter: Vec<_> = course.points.iter().map(|point| point.jitter.unwrap().0).collect();
        assert_eq!((course.point_s, jitter), (3, vec![200, 500, 800, 900]));
        let lost: Vec<_> = course.points.iter().map(|point| (point.received, point.lost)).collect();
        assert_eq!(lost, [(150, 0), (150, 1), (150, 0), (50, 0)]);
        assert_eq!(course.points[0].interval_mean, Some(Hundredths(100)));
    }

    #[test]
    fn silence_behind_the_last_row_is_drawn() {
        let timeline = QualityTimeline::new(Timestamp::from_micros(0), 1, vec![second(50, 0, 10); 20]);
        let at = Timestamp::from_micros(0);
        let affected = Some(Affected { first_s: 19, last_s: 59, from: at, to: at });
        let course = Course::new(&timeline, affected, None, 600).unwrap();
        assert_eq!((course.points.len(), course.affected, course.duration_s()), (60, Some((19, 59)), 60));
        assert!(course.points[19].measured && !course.points[20].measured);
        assert_eq!(course.silences(), [(20, 59)]);
        let few = Course::new(&timeline, affected, None, 30).unwrap();
        assert_eq!((few.points.len(), few.affected), (30, Some((9, 29))));
    }

    #[test]
    fn a_dead_tail_is_drawn_to_the_end_of_the_call() {
        let timeline = QualityTimeline::new(Timestamp::from_micros(0), 1, vec![second(50, 0, 10); 20]);
        let end = |seconds: i64| Some(Timestamp::from_micros(seconds * 1_000_000));
        for (until, points) in [(None, 20), (end(10), 20), (end(21), 20), (end(22), 22), (end(60), 60)] {
            let course = Course::new(&timeline, None, until, 600).unwrap();
            assert_eq!(course.points.len(), points, "{until:?}");
        }
        let course = Course::new(&timeline, None, end(60), 30).unwrap();
        assert_eq!((course.points.len(), course.silences()), (30, vec![(10, 29)]));
    }

    #[test]
    fn a_silence_is_one_only_where_audio_was_due() {
        let mut rows = vec![second(50, 0, 10); 6];
        rows[2] = QualitySecond { received: 0, audio_expected: true, ..QualitySecond::default() };
        rows[4] = QualitySecond { received: 0, audio_expected: false, ..QualitySecond::default() };
        let timeline = QualityTimeline::new(Timestamp::from_micros(0), 1, rows);
        assert_eq!(Course::new(&timeline, None, None, 600).unwrap().silences(), [(2, 2)]);
    }
}
