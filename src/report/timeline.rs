//! The rows of a timeline, made few enough to draw.

use sidetone_model::media_quality::{Affected, QualitySecond, QualityTimeline};
use sidetone_model::quality::Hundredths;

/// What is drawn of one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) received: u32,
    pub(super) lost: u32,
    pub(super) late: u32,
    pub(super) jitter: Option<Hundredths>,
    pub(super) interval_mean: Option<Hundredths>,
    pub(super) interval_max: Option<Hundredths>,
    pub(super) lateness: Option<Hundredths>,
    /// Whether there is a row for it at all.
    pub(super) measured: bool,
}

/// A timeline in few points.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) points: Vec<Point>,
    /// The duration of a point in seconds.
    pub(super) point_s: u64,
    /// The first and the last point that are affected.
    pub(super) affected: Option<(usize, usize)>,
}

impl Course {
    /// `timeline` in at most `points_max` points; peaks stay peaks, counts add up.
    ///
    /// What is affected may lie behind the last row: audio that died is not there to be seen.
    pub(super) fn new(
        timeline: &QualityTimeline,
        affected: Option<Affected>,
        points_max: usize,
    ) -> Option<Self> {
        let step_s = u64::from(timeline.step_s.max(1));
        let last_row = affected.map_or(0, |affected| u64::from(affected.last_s) / step_s + 1);
        let rows = (timeline.seconds.len() as u64).max(last_row);
        if timeline.seconds.is_empty() {
            return None;
        }
        let rows_each = rows.div_ceil(points_max.max(1) as u64).max(1);
        let mut points: Vec<Point> = timeline
            .seconds
            .chunks(usize::try_from(rows_each).ok()?)
            .map(|rows| rows.iter().fold(Point::default(), |point, row| point.with(row)))
            .collect();
        points.resize(usize::try_from(rows.div_ceil(rows_each)).ok()?, Point::default());
        let point_s = step_s * rows_each;
        let place = |second: u32| usize::try_from(u64::from(second) / point_s).unwrap_or(usize::MAX);
        let affected = affected.map(|affected| (place(affected.first_s), place(affected.last_s)));
        Some(Course { points, point_s, affected })
    }

    /// From the first row to the end of the last.
    pub(super) fn duration_s(&self) -> u64 {
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
            measured: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use sidetone_model::time::Timestamp;

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
        let course = Course::new(&timeline, None, 4).unwrap();
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
        let course = Course::new(&timeline, affected, 600).unwrap();
        assert_eq!((course.points.len(), course.affected, course.duration_s()), (60, Some((19, 59)), 60));
        assert!(course.points[19].measured && !course.points[20].measured);
        let few = Course::new(&timeline, affected, 30).unwrap();
        assert_eq!((few.points.len(), few.affected), (30, Some((9, 29))));
    }
}
