//! Plots over time as inline SVG: steps, so that each second has its full width and nothing is interpolated.
//!
//! The drawing scales with the page, so all its text is in HTML beside it.

use sidetone_model::quality::Hundredths;

use crate::markup::Html;
use crate::number::grouped;
use crate::timeline::{Course, Point};

/// Draws values over time: jitter, loss, intervals, lateness, and the audio level if known.
pub fn plots(html: &mut Html, course: &Course, limits: Limits) {
    html.raw("<div class=\"plots\">");
    let lost = |point: &Point| point.measured.then_some(i64::from(point.lost) * 100);
    let late = |point: &Point| point.measured.then_some(i64::from(point.late) * 100);
    let per = if course.point_s == 1 { "packets each second".to_owned() } else { each(course.point_s) };
    let number = |value: Option<Hundredths>| value.map(|value| value.0);
    let jitter = |point: &Point| number(point.jitter);
    let mean = |point: &Point| number(point.interval_mean);
    let longest = |point: &Point| number(point.interval_max);
    let lateness = |point: &Point| number(point.lateness);
    let plot = |title, unit: &str, lines: &[Line<'_>], limit, least| Plot {
        course,
        title,
        unit: unit.to_owned(),
        top: top(course, lines, limit, least),
        bottom: 0,
        limit,
    };
    let lines: [Line<'_>; 1] = [("line", "", &jitter)];
    let jitter_plot = plot("Jitter", "ms", &lines, limits.jitter, 500);
    jitter_plot.draw(html, &lines);
    let lines: [Line<'_>; 2] = [("area warn", "late", &late), ("area bad", "lost", &lost)];
    plot("Lost and late packets", &per, &lines, None, 500).draw(html, &lines);
    let lines: [Line<'_>; 2] = [("line soft", "longest", &longest), ("line", "mean", &mean)];
    plot("Interval between packets", "ms", &lines, None, 4_000).draw(html, &lines);
    let lines: [Line<'_>; 1] = [("line", "", &lateness)];
    let lateness_plot = plot("Lateness of the latest packet", "ms", &lines, limits.late, 2_000);
    lateness_plot.draw(html, &lines);
    if course.has_level() {
        level(html, course);
    }
    html.raw("</div>");
    let has_limit = [jitter_plot, lateness_plot].iter().any(|plot| plot.shown_limit().is_some());
    legend(html, course, has_limit);
}

/// Draws the audio level; lower values are drawn at the lower edge.
fn level(html: &mut Html, course: &Course) {
    let level = |point: &Point| point.level.map(|level| (level.0 - LEVEL_BOTTOM).max(0));
    let plot = Plot {
        course,
        title: "Level of the audio",
        unit: "dBov; silence is below the dashed line".to_owned(),
        top: -LEVEL_BOTTOM,
        bottom: LEVEL_BOTTOM,
        limit: Some(Hundredths(SILENCE_DBOV - LEVEL_BOTTOM)),
    };
    plot.draw(html, &[("line", "", &level)]);
}

/// Explains the shading and the dashed lines.
fn legend(html: &mut Html, course: &Course, has_limit: bool) {
    html.raw("<p class=\"legend\">");
    if course.affected.is_some() {
        html.raw("<span><i class=\"key hit\"></i> the seconds that the verdict is about</span>");
    }
    if !course.silences().is_empty() {
        html.raw("<span><i class=\"key dead\"></i> no packets came</span>");
    }
    if has_limit {
        html.raw("<span><i class=\"key limit\"></i> limit of a rule</span>");
    }
    html.raw("<span>Time is minutes and seconds since the first packet of this stream.</span></p>");
}

/// The thresholds of the rules that a plot shows.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of the jitter, ms.
    pub jitter: Option<Hundredths>,
    /// Of the lateness, ms.
    pub late: Option<Hundredths>,
}

/// A CSS class, the name if there are several lines, and the value of a point in hundredths.
type Line<'a> = (&'static str, &'static str, &'a dyn Fn(&Point) -> Option<i64>);

struct Plot<'a> {
    course: &'a Course,
    title: &'static str,
    unit: String,
    /// The value at the upper edge, relative to the lower one.
    top: i64,
    /// The value at the lower edge; drawn values are relative to it.
    bottom: i64,
    limit: Option<Hundredths>,
}

impl Plot<'_> {
    fn draw(&self, html: &mut Html, lines: &[Line<'_>]) {
        let width = self.course.points.len();
        html.raw("<figure><figcaption><b>").text(self.title).raw("</b> ").text(&self.unit);
        for (class, name, _) in lines.iter().filter(|(_, name, _)| !name.is_empty()) {
            html.raw(" <em><i class=\"key ").text(class).raw("\"></i> ").text(name).raw("</em>");
        }
        if let Some((peak, at)) = self.peak(lines) {
            html.raw(" <span>peak ")
                .text(self.number(peak))
                .raw(" at ")
                .text(clock(at * self.course.point_s));
            html.raw("</span>");
        }
        html.raw("</figcaption><div class=\"frame\"><div class=\"y\"><i>").text(self.number(self.top));
        html.raw("</i><i>")
            .text(self.number(self.top / 2))
            .raw("</i><i>")
            .text(self.number(0))
            .raw("</i></div>");
        html.raw("<svg class=\"plot\" viewBox=\"0 0 ")
            .text(width)
            .raw(" 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"");
        html.text(self.in_words(lines)).raw("\">");
        for (first, last) in self.course.silences() {
            self.shade(html, "dead", (first, last), "no packets came");
        }
        if let Some(stretch) = self.course.affected {
            self.shade(html, "hit", stretch, "the seconds that the verdict is about");
        }
        html.raw("<path class=\"grid\" d=\"M0,50H").text(width).raw("\"/>");
        if let Some(limit) = self.shown_limit() {
            html.raw("<path class=\"limit\" d=\"M0,").text(self.height(limit.0)).raw("H").text(width);
            html.raw("\"><title>limit ")
                .text(self.number(limit.0))
                .raw(" ")
                .text(&self.unit)
                .raw("</title></path>");
        }
        for (class, _, value) in lines {
            html.raw("<path class=\"").text(class).raw("\" d=\"");
            html.text(self.path(value, class.starts_with("area"))).raw("\"/>");
        }
        html.raw("</svg></div><svg class=\"x\" aria-hidden=\"true\">");
        let duration_s = self.course.duration_s();
        for at in ticks(duration_s) {
            // Thousandths of the width, as a percentage.
            let place = at * 1_000 / duration_s.max(1);
            html.raw("<text y=\"11\" x=\"").text(place / 10).raw(".").text(place % 10).raw("%\"");
            html.raw(if at == 0 { ">" } else { " class=\"mid\">" }).text(clock(at)).raw("</text>");
        }
        html.raw("</svg></figure>");
    }

    /// A description of the drawing, for readers who cannot see it.
    fn in_words(&self, lines: &[Line<'_>]) -> String {
        let mut words = format!("{}, {}", self.title, self.unit);
        for (_, name, value) in lines {
            let values = || self.course.points.iter().filter_map(value);
            let name = if name.is_empty() { String::new() } else { format!("{name} ") };
            match (values().min(), values().max()) {
                (Some(least), Some(most)) => {
                    words += &format!(": {name}{} to {}", self.number(least), self.number(most));
                }
                _ => words += &format!(": {name}not measured"),
            }
        }
        if let Some((peak, at)) = self.peak(lines) {
            words += &format!("; the peak, {}, at {}", self.number(peak), clock(at * self.course.point_s));
        }
        words
    }

    /// A value in the form in which it is shown.
    fn number(&self, value: i64) -> String {
        let value = value + self.bottom;
        let sign = if value < 0 { "\u{2212}" } else { "" };
        sign.to_owned() + &number(value.saturating_abs())
    }

    /// The limit of a rule, unless it is above the plot.
    fn shown_limit(&self) -> Option<Hundredths> {
        self.limit.filter(|limit| limit.0 <= self.top)
    }

    /// Shades the points from the first to the last of a range.
    fn shade(&self, html: &mut Html, class: &'static str, (first, last): (usize, usize), name: &'static str) {
        let point_s = self.course.point_s;
        let (from, to) = (first as u64 * point_s, (last as u64 + 1) * point_s);
        html.raw("<rect class=\"")
            .raw(class)
            .raw("\" x=\"")
            .text(first)
            .raw("\" y=\"0\" height=\"100\" width=\"");
        html.text((last + 1).saturating_sub(first)).raw("\"><title>").raw(name);
        html.raw(", ").text(clock(from)).raw(" to ").text(clock(to)).raw("</title></rect>");
    }

    /// Steps from point to point; nothing is drawn where nothing was measured.
    fn path(&self, value: &dyn Fn(&Point) -> Option<i64>, filled: bool) -> String {
        let mut path = String::new();
        let mut before = None;
        for (place, point) in self.course.points.iter().enumerate() {
            let height = value(point).map(|value| self.height(value));
            match (before, height) {
                (_, Some(height)) if filled => {
                    if height < 100 {
                        path.push_str(&format!("M{place},100V{height}h1V100"));
                    }
                }
                (None, Some(height)) => path.push_str(&format!("M{place},{height}h1")),
                (Some(before), Some(height)) if before == height => path.push_str("h1"),
                (Some(_), Some(height)) => path.push_str(&format!("V{height}h1")),
                (_, None) => {}
            }
            before = height;
        }
        path
    }

    /// The vertical position of a value, from 0 at the upper edge to 100.
    fn height(&self, value: i64) -> i64 {
        100 - value.clamp(0, self.top).saturating_mul(100) / self.top.max(1)
    }

    /// The highest value of the last line, which is the plot's main one, and its time.
    fn peak(&self, lines: &[Line<'_>]) -> Option<(i64, u64)> {
        let (.., value) = lines.iter().find(|(class, ..)| *class != "area warn")?;
        let values = self.course.points.iter().map(value).zip(0_u64..);
        let peak = values
            .filter_map(|(value, at)| Some((value?, at)))
            .max_by_key(|(value, at)| (*value, u64::MAX - at));
        peak.filter(|(value, _)| *value > 0)
    }
}

/// A round value at or above every drawn value.
fn top(course: &Course, lines: &[Line<'_>], limit: Option<Hundredths>, least: i64) -> i64 {
    let values = || lines.iter().flat_map(|(.., value)| course.points.iter().filter_map(value));
    let highest = values().max().unwrap_or(0).max(least);
    // A limit far above all values would only flatten the plot.
    let highest = limit.filter(|limit| limit.0 <= highest * 3).map_or(highest, |limit| highest.max(limit.0));
    let mut unit = 100_i64;
    loop {
        for step in [1, 2, 5] {
            let round = unit.saturating_mul(step);
            if round >= highest || round == i64::MAX {
                return round;
            }
        }
        unit = unit.saturating_mul(10);
    }
}

/// Hundredths without trailing zeros.
fn number(value: i64) -> String {
    let text = format!("{}.{:02}", value / 100, value % 100);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text.parse::<u64>() {
        Ok(whole) => grouped(whole),
        Err(_) => text.to_owned(),
    }
}

/// The seconds with labels on an axis: multiples of a round step, so that no two have the same label and each
/// is exact.
fn ticks(duration_s: u64) -> impl Iterator<Item = u64> {
    let step = STEPS_S.into_iter().find(|step| duration_s / step < TICKS_MAX);
    // For several days, whole days.
    let step = step.unwrap_or_else(|| duration_s.div_ceil(TICKS_MAX).next_multiple_of(DAY_S));
    // The last label would not fit on the page.
    (0..=duration_s / step)
        .map(move |number| number * step)
        .filter(move |at| *at == 0 || *at * 20 <= duration_s * 19)
}

/// The lower edge of the level plot, in hundredths of dBov: noiseless rooms and digital silence are below it.
const LEVEL_BOTTOM: i64 = -8_000;
/// Below this packets count as silent.
const SILENCE_DBOV: i64 = -6_000;
const STEPS_S: [u64; 15] = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 10_800, 21_600];
const TICKS_MAX: u64 = 6;
const DAY_S: u64 = 86_400;

/// Seconds as a clock shows them.
fn clock(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

fn each(seconds: u64) -> String {
    format!("packets every {seconds} s")
}

#[cfg(test)]
mod tests {
    use sidetone_model::media_quality::{QualitySecond, QualityTimeline};
    use sidetone_model::time::Timestamp;

    use super::*;

    #[test]
    fn axes_end_in_round_numbers() {
        let cases = [(0, "0"), (50, "0.5"), (1_234, "12.34"), (100_000, "1,000"), (120_050, "1200.5")];
        for (value, expected) in cases {
            assert_eq!(number(value), expected);
        }
        assert_eq!((clock(59), clock(125), clock(3_725)), ("0:59".into(), "2:05".into(), "1:02:05".into()));
    }

    #[test]
    fn the_level_is_drawn_where_it_is_known() {
        let row = |level: Option<i64>| QualitySecond {
            received: 50,
            level_dbov: level.map(|level| Hundredths(level * 100)),
            ..QualitySecond::default()
        };
        let drawn = |rows: Vec<QualitySecond>| {
            let timeline = QualityTimeline::new(Timestamp::from_micros(0), 1, rows);
            let course = Course::new(&timeline, None, None, 600).unwrap();
            let mut html = Html::default();
            plots(&mut html, &course, Limits { jitter: None, late: None });
            html.into_string()
        };
        assert!(!drawn(vec![row(None); 3]).contains("Level of the audio"));
        let page = drawn(vec![row(Some(-40)), row(Some(-127)), row(None), row(Some(-20))]);
        let level = page.split("<figure>").last().unwrap();
        for expected in [
            "<b>Level of the audio</b> dBov; silence is below the dashed line <span>peak \u{2212}20 at 0:03</span>",
            "<i>0</i><i>\u{2212}40</i><i>\u{2212}80</i>",
            "aria-label=\"Level of the audio, dBov; silence is below the dashed line: \u{2212}80 to \u{2212}20; \
             the peak, \u{2212}20, at 0:03\"",
            // Half of the height, the lower edge, a gap, and a quarter below the upper edge.
            "d=\"M0,50h1V100h1M3,25h1\"",
            // Silence: 60 of 80 dB.
            "class=\"limit\" d=\"M0,75H4\"",
        ] {
            assert!(level.contains(expected), "{expected} is missing:\n{level}");
        }
    }

    #[test]
    fn ticks_differ_and_stand_where_they_are() {
        let cases: [(u64, &[u64]); 8] = [
            (0, &[0]),
            (1, &[0]),
            (2, &[0, 1]),
            (5, &[0, 1, 2, 3, 4]),
            (7, &[0, 2, 4, 6]),
            (60, &[0, 20, 40]),
            (61, &[0, 20, 40]),
            (3_600, &[0, 1_200, 2_400]),
        ];
        for (duration_s, expected) in cases {
            assert_eq!(ticks(duration_s).collect::<Vec<_>>(), expected, "{duration_s}");
        }
        for duration_s in (1..2_000).chain([86_400, 1_000_000, 10_000_000]) {
            let ticks: Vec<u64> = ticks(duration_s).collect();
            let mut names: Vec<String> = ticks.iter().map(|at| clock(*at)).collect();
            assert!(ticks.len() <= 6 && ticks.iter().all(|at| *at < duration_s), "{duration_s}: {ticks:?}");
            names.dedup();
            assert_eq!(names.len(), ticks.len(), "{duration_s}: {names:?}");
        }
    }
}
