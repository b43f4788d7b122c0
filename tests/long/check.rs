//! The report of a load test, and its settings from the environment.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

/// The checks of one test: printed one by one, judged together at the end.
#[derive(Default)]
pub struct Checks {
    failed: Vec<String>,
}

impl Checks {
    /// Prints one check as a line of JSON and remembers whether it failed.
    pub fn check(&mut self, id: &str, pass: bool, figure: impl Display, limit: &str) {
        let figure = figure.to_string();
        let line = serde_json::json!({"id": id, "pass": pass, "figure": figure, "limit": limit});
        println!("{line}");
        if !pass {
            self.failed.push(format!("{id}: {figure}, the limit is {limit}"));
        }
    }

    /// Fails the test if any check failed.
    pub fn end(self) {
        assert!(self.failed.is_empty(), "{}", self.failed.join("\n"));
    }
}

/// Prints a line that is not a check: a figure without a limit.
pub fn note(text: impl Display) {
    println!("# {text}");
}

/// The value of an environment variable, or the default.
///
/// # Panics
/// When the variable does not hold such a value.
pub fn setting<T: FromStr>(name: &str, default: T) -> T {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}: {text} is no number")),
        Err(_) => default,
    }
}

/// A number of seconds from the environment.
pub fn seconds(name: &str, default: u64) -> Duration {
    Duration::from_secs(setting(name, default))
}

/// The value below which `share` (0 to 1) of the durations are, in milliseconds; 0 without any.
pub fn percentile_ms(durations: &[Duration], share: f64) -> f64 {
    let mut sorted: Vec<Duration> = durations.to_vec();
    sorted.sort();
    let place = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(place.saturating_sub(1)).map_or(0.0, |value| value.as_secs_f64() * 1e3)
}

/// Median, 99th percentile and maximum of some durations, as text.
pub fn spread_ms(durations: &[Duration]) -> String {
    let [median, high, most] = [0.5, 0.99, 1.0].map(|share| percentile_ms(durations, share));
    format!("n {} p50 {median:.1} ms p99 {high:.1} ms max {most:.1} ms", durations.len())
}
