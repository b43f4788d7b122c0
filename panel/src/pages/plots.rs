//! Plots of a leg over time as inline SVG: steps, so that each row of the timeline has its full width.
//!
//! The drawing scales with the page, so all its text is in HTML beside it.

use maud::{Markup, html};
use serde_json::Value;

use crate::show::duration;

/// A plot: its title, its unit, and its lines as `(class, column of the timeline, name)`.
type Plot = (&'static str, &'static str, &'static [(&'static str, &'static str, &'static str)]);

const PLOTS: [Plot; 4] = [
    (
        "Lost and late packets",
        "packets in a step",
        &[("area warn", "late", "late"), ("area bad", "lost", "lost")],
    ),
    ("Jitter", "ms", &[("line", "jitter_max_ms", "")]),
    (
        "Interval between packets",
        "ms",
        &[("line soft", "interval_max_ms", "longest"), ("line", "interval_mean_ms", "mean")],
    ),
    ("Lateness of the latest packet", "ms", &[("line", "lateness_max_ms", "")]),
];

/// The plots of a leg; nothing when it has no timeline.
pub(crate) fn plots(leg: &Value) -> Markup {
    let timeline = &leg["inbound"]["timeline"];
    let rows = timeline["seconds"].as_array().map_or(&[][..], Vec::as_slice);
    let rows = rows.get(..rows.len().min(ROWS_MAX)).unwrap_or_default();
    let step = timeline["step_s"].as_i64().filter(|step| (1..=86_400).contains(step)).unwrap_or(1);
    let course = Course { timeline, rows, step, affected: affected(leg, step) };
    html! {
        @if !rows.is_empty() {
            div class="plots" { @for plot in &PLOTS { (course.draw(plot)) } }
            p class="soft legend" {
                @if course.affected.is_some() { span { i class="key hit" {} " the seconds that the verdict is about" } }
                @if course.silences().next().is_some() { span { i class="key dead" {} " no packets came" } }
                span { "Time is minutes and seconds since the first packet; a step is " (step) " s." }
            }
        }
    }
}

struct Course<'v> {
    timeline: &'v Value,
    rows: &'v [Value],
    step: i64,
    /// The first and the last row that the verdict is about.
    affected: Option<(usize, usize)>,
}

impl Course<'_> {
    fn draw(&self, (title, unit, lines): &Plot) -> Markup {
        let width = self.rows.len();
        let values: Vec<Vec<Option<f64>>> = lines.iter().map(|(_, column, _)| self.column(column)).collect();
        let peak = values.iter().flatten().flatten().copied().fold(0.0, f64::max);
        let top = round_up(peak.max(LEAST_TOP));
        html! {
            figure {
                figcaption {
                    b { (title) } " " span class="soft" { (unit) }
                    @for (class, _, name) in lines.iter().filter(|(.., name)| !name.is_empty()) {
                        " " span { i class={ "key " (class) } {} " " (name) }
                    }
                    span class="right soft" { "peak " (number(peak)) }
                }
                div class="frame" {
                    div class="y soft" aria-hidden="true" { span { (number(top)) } span { "0" } }
                    svg class="plot" viewBox={ "0 0 " (width) " 100" } preserveAspectRatio="none" role="img"
                        aria-label={ (title) ", peak " (number(peak)) " " (unit) } {
                        @for (first, last) in self.silences() { (shade("dead", first, last)) }
                        @if let Some((first, last)) = self.affected { (shade("hit", first, last)) }
                        path class="grid" d={ "M0,50H" (width) } {}
                        @for ((class, ..), values) in lines.iter().zip(&values) {
                            path class=(class) d=(path(values, top, class.starts_with("area"))) {}
                        }
                    }
                }
                div class="x soft" aria-hidden="true" {
                    span { "0:00" } span { (duration(i64::try_from(width).unwrap_or(0).saturating_mul(self.step))) }
                }
            }
        }
    }

    /// The values of a column, one for each row.
    fn column(&self, name: &str) -> Vec<Option<f64>> {
        let columns = self.timeline["columns"].as_array().map_or(&[][..], Vec::as_slice);
        let place = columns.iter().position(|column| column == name);
        let value = |row: &Value| row.get(place?)?.as_f64().filter(|value| value.is_finite());
        self.rows.iter().map(value).collect()
    }

    /// Runs of rows in which audio was expected and no packet came.
    fn silences(&self) -> impl Iterator<Item = (usize, usize)> {
        let (received, expected) = (self.column("received"), self.column("audio_expected"));
        let is_silent = move |row: usize| {
            let at = |column: &Vec<Option<f64>>| column.get(row).copied().flatten();
            at(&received) == Some(0.0) && at(&expected) == Some(1.0)
        };
        let len = self.rows.len();
        let mut row = 0;
        std::iter::from_fn(move || {
            while row < len && !is_silent(row) {
                row += 1;
            }
            let first = row;
            while row < len && is_silent(row) {
                row += 1;
            }
            (row > first).then_some((first, row - 1))
        })
    }
}

/// The rows that the verdict of the leg is about.
fn affected(leg: &Value, step: i64) -> Option<(usize, usize)> {
    let row = |key: &str| {
        let second = leg["affected"][key].as_i64()?;
        usize::try_from(second / step).ok().filter(|row| *row < ROWS_MAX)
    };
    Some((row("first_s")?, row("last_s")?)).filter(|(first, last)| first <= last)
}

fn shade(class: &str, first: usize, last: usize) -> Markup {
    html! { rect class=(class) x=(first) y="0" width=(last - first + 1) height="100" {} }
}

/// Steps through the values; a row without a value interrupts a line.
fn path(values: &[Option<f64>], top: f64, is_area: bool) -> String {
    let height = |value: f64| (100.0 - 100.0 * (value / top).clamp(0.0, 1.0)).round();
    let mut path = String::new();
    let mut is_down = false;
    for (row, value) in values.iter().enumerate() {
        let Some(value) = value else {
            if is_area && is_down {
                path.push_str("V100Z");
            }
            is_down = false;
            continue;
        };
        let y = height(*value);
        match (is_down, is_area) {
            (false, true) => path.push_str(&format!("M{row},100V{y}")),
            (false, false) => path.push_str(&format!("M{row},{y}")),
            (true, _) => path.push_str(&format!("V{y}")),
        }
        path.push_str(&format!("H{}", row + 1));
        is_down = true;
    }
    if is_area && is_down {
        path.push_str("V100Z");
    }
    path
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= value - 1e-9);
    step.unwrap_or(10.0) * power
}

fn number(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    format!("{rounded}")
}

/// The least value at the upper edge, so that a few packets do not fill the plot.
const LEAST_TOP: f64 = 5.0;
/// Rows that are drawn; the API keeps timelines below it by longer steps.
const ROWS_MAX: usize = 20_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn steps_are_drawn_and_gaps_left_open() {
        assert_eq!(path(&[Some(0.0), Some(5.0), None, Some(10.0)], 10.0, false), "M0,100H1V50H2M3,0H4");
        assert_eq!(path(&[None, Some(5.0), None], 10.0, true), "M1,100V50H2V100Z");
        assert_eq!(path(&[], 10.0, true), "");
    }

    #[test]
    fn the_upper_edge_is_a_round_number() {
        let tops: Vec<f64> = [5.0, 5.1, 12.0, 20.0, 999.0].map(round_up).to_vec();
        assert_eq!(tops, [5.0, 10.0, 20.0, 20.0, 1_000.0]);
    }

    #[test]
    fn silence_and_the_affected_seconds_are_shaded() {
        let leg = json!({"affected": {"first_s": 1, "last_s": 1}, "inbound": {"timeline": {
            "step_s": 1, "columns": ["received", "lost", "audio_expected"],
            "seconds": [[50, 0, 1], [0, 50, 1], [0, 0, 0]]}}});
        let drawn = plots(&leg).into_string();
        assert!(drawn.contains("<rect class=\"hit\" x=\"1\" y=\"0\" width=\"1\" height=\"100\">"), "{drawn}");
        assert!(
            drawn.contains("<rect class=\"dead\" x=\"1\" y=\"0\" width=\"1\" height=\"100\">"),
            "{drawn}"
        );
        assert_eq!(drawn.matches("<figure>").count(), 4);
        assert_eq!(plots(&json!({})).into_string(), "");
    }

    /// A timeline that the API never writes is drawn without a panic.
    #[test]
    fn strange_timelines_are_drawn() {
        for timeline in [
            json!({"seconds": [[1], 7, null, [null, "x"]], "columns": ["lost"], "step_s": 0}),
            json!({"seconds": [[1e308, -5.0]], "columns": ["lost", "late"], "step_s": -1}),
            json!({"seconds": [[1]], "columns": 7}),
        ] {
            assert!(plots(&json!({"inbound": {"timeline": timeline}})).into_string().contains("<svg"));
        }
    }
}
