//! Plots over time as inline SVG: steps, so that a second is as wide as it lasted and nothing is made up between.
//!
//! The drawing stretches with the page, which is why every word of it stands in HTML beside.

use sidetone_model::quality::Hundredths;

use super::markup::Html;
use super::timeline::{Course, Point};
use crate::capture::grouped;

/// Draws what happened over time: jitter, loss, intervals and lateness.
pub(super) fn plots(html: &mut Html, course: &Course, limits: Limits) {
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
        limit,
    };
    let lines: [Line<'_>; 1] = [("line", &jitter)];
    plot("Jitter", "ms", &lines, limits.jitter, 500).draw(html, &lines);
    let lines: [Line<'_>; 2] = [("area warn", &late), ("area bad", &lost)];
    plot("Lost (and late) packets", &per, &lines, None, 500).draw(html, &lines);
    let lines: [Line<'_>; 2] = [("line soft", &longest), ("line", &mean)];
    plot("Interval, mean and longest", "ms", &lines, None, 4_000).draw(html, &lines);
    let lines: [Line<'_>; 1] = [("line", &lateness)];
    plot("Lateness of the latest packet", "ms", &lines, limits.late, 2_000).draw(html, &lines);
    html.raw("</div>");
}

/// What the rules compare with, where a plot shows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) jitter: Option<Hundredths>,
    pub(super) late: Option<Hundredths>,
}

/// A class of the page's style, and the value of a point in hundredths.
type Line<'a> = (&'static str, &'a dyn Fn(&Point) -> Option<i64>);

struct Plot<'a> {
    course: &'a Course,
    title: &'static str,
    unit: String,
    /// The value at the upper edge.
    top: i64,
    limit: Option<Hundredths>,
}

impl Plot<'_> {
    fn draw(&self, html: &mut Html, lines: &[Line<'_>]) {
        let width = self.course.points.len();
        html.raw("<figure><figcaption><b>").text(self.title).raw("</b> ").text(&self.unit);
        if let Some((peak, at)) = self.peak(lines) {
            html.raw(" <span>peak ").text(number(peak)).raw(" at ").text(clock(at * self.course.point_s));
            html.raw("</span>");
        }
        html.raw("</figcaption><div class=\"frame\"><div class=\"y\"><i>").text(number(self.top));
        html.raw("</i><i>").text(number(self.top / 2)).raw("</i><i>0</i></div>");
        html.raw("<svg viewBox=\"0 0 ")
            .text(width)
            .raw(" 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"");
        html.text(self.title).raw("\">");
        if let Some((first, last)) = self.course.affected {
            html.raw("<rect class=\"hit\" x=\"").text(first).raw("\" y=\"0\" height=\"100\" width=\"");
            html.text((last + 1).saturating_sub(first)).raw("\"/>");
        }
        html.raw("<path class=\"grid\" d=\"M0,50H").text(width).raw("\"/>");
        if let Some(limit) = self.limit.filter(|limit| limit.0 <= self.top) {
            html.raw("<path class=\"limit\" d=\"M0,")
                .text(self.height(limit.0))
                .raw("H")
                .text(width)
                .raw("\"/>");
        }
        for (class, value) in lines {
            html.raw("<path class=\"").text(class).raw("\" d=\"");
            html.text(self.path(value, class.starts_with("area"))).raw("\"/>");
        }
        html.raw("</svg></div><div class=\"x\">");
        for quarter in 0..=4 {
            html.element("<i>", clock(self.course.duration_s() * quarter / 4), "</i>");
        }
        html.raw("</div></figure>");
    }

    /// Steps from point to point; where nothing was measured, nothing is drawn.
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

    /// Where a value stands, from 0 at the upper edge to 100.
    fn height(&self, value: i64) -> i64 {
        100 - value.clamp(0, self.top).saturating_mul(100) / self.top.max(1)
    }

    /// The highest value of the last line, which is the plot's own, and where it was reached.
    fn peak(&self, lines: &[Line<'_>]) -> Option<(i64, u64)> {
        let (_, value) = lines.iter().find(|(class, _)| *class != "area warn")?;
        let values = self.course.points.iter().map(value).zip(0_u64..);
        let peak = values
            .filter_map(|(value, at)| Some((value?, at)))
            .max_by_key(|(value, at)| (*value, u64::MAX - at));
        peak.filter(|(value, _)| *value > 0)
    }
}

/// A round value at or above everything that is drawn.
fn top(course: &Course, lines: &[Line<'_>], limit: Option<Hundredths>, least: i64) -> i64 {
    let values = || lines.iter().flat_map(|(_, value)| course.points.iter().filter_map(value));
    let highest = values().max().unwrap_or(0).max(least);
    // A limit that nothing comes near would only flatten the picture.
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

/// Hundredths without zeros at their end.
fn number(value: i64) -> String {
    let text = format!("{}.{:02}", value / 100, value % 100);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text.parse::<u64>() {
        Ok(whole) => grouped(whole),
        Err(_) => text.to_owned(),
    }
}

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
    use super::*;

    #[test]
    fn axes_end_in_round_numbers() {
        let cases = [(0, "0"), (50, "0.5"), (1_234, "12.34"), (100_000, "1,000"), (120_050, "1200.5")];
        for (value, expected) in cases {
            assert_eq!(number(value), expected);
        }
        assert_eq!((clock(59), clock(125), clock(3_725)), ("0:59".into(), "2:05".into(), "1:02:05".into()));
    }
}
