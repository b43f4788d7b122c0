//! The text exposition format, version 0.0.4.

use std::fmt::{self, Write};

use sidetone_model::metrics::{Family, Kind, Sample, Value};

/// The content type of the output of [`write`].
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `families` as text.
pub(super) fn write(families: &[Family]) -> String {
    let mut text = String::new();
    for family in families {
        // Writing to a string cannot fail.
        let _ = write_family(&mut text, family);
    }
    text
}

fn write_family(text: &mut String, family: &Family) -> fmt::Result {
    let kind = match family.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let name = family.name;
    writeln!(text, "# HELP {name} {}", family.help)?;
    writeln!(text, "# TYPE {name} {kind}")?;
    for sample in &family.samples {
        match &sample.value {
            Value::Number(number) => line(text, name, "", sample, None, *number)?,
            Value::Micros(micros) => line(text, name, "", sample, None, Seconds(*micros))?,
            Value::Histogram { buckets, count, sum_us } => {
                for (bound_us, within) in buckets {
                    let bound = Seconds(*bound_us).to_string();
                    line(text, name, "_bucket", sample, Some(&bound), *within)?;
                }
                line(text, name, "_bucket", sample, Some("+Inf"), *count)?;
                line(text, name, "_sum", sample, None, Seconds(*sum_us))?;
                line(text, name, "_count", sample, None, *count)?;
            }
        }
    }
    Ok(())
}

fn line(
    text: &mut String,
    name: &str,
    suffix: &str,
    sample: &Sample,
    bound: Option<&str>,
    value: impl fmt::Display,
) -> fmt::Result {
    write!(text, "{name}{suffix}")?;
    let labels = sample.labels.iter().map(|(name, value)| (*name, value.as_str()));
    let mut before = '{';
    for (name, value) in labels.chain(bound.map(|bound| ("le", bound))) {
        write!(text, "{before}{name}=\"{}\"", Escaped(value))?;
        before = ',';
    }
    let after = if before == '{' { "" } else { "}" };
    writeln!(text, "{after} {value}")
}

/// Seconds, with decimals only if they are not zero.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if micros == 0 {
            return write!(f, "{seconds}");
        }
        let fraction = format!("{micros:06}");
        write!(f, "{seconds}.{}", fraction.trim_end_matches('0'))
    }
}

struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                plain => f.write_char(plain)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_that_of_prometheus() {
        let histogram =
            Value::Histogram { buckets: vec![(5_000, 1), (1_000_000, 3)], count: 4, sum_us: 7_250_000 };
        let families = [
            Family::counter("a_total", "Things.").with([("kind", "x\"\\\n")], 3).with([("kind", "y")], 0),
            Family::gauge("b", "More things.").is(7),
            Family {
                name: "c_seconds",
                help: "Times.",
                kind: Kind::Histogram,
                samples: vec![Sample { labels: vec![("route", "/x".to_owned())], value: histogram }],
            },
            Family {
                samples: vec![Sample { labels: vec![], value: Value::Micros(1_500_000) }],
                ..Family::gauge("d_seconds", "A time.")
            },
        ];
        let expected = "\
# HELP a_total Things.
# TYPE a_total counter
a_total{kind=\"x\\\"\\\\\\n\"} 3
a_total{kind=\"y\"} 0
# HELP b More things.
# TYPE b gauge
b 7
# HELP c_seconds Times.
# TYPE c_seconds histogram
c_seconds_bucket{route=\"/x\",le=\"0.005\"} 1
c_seconds_bucket{route=\"/x\",le=\"1\"} 3
c_seconds_bucket{route=\"/x\",le=\"+Inf\"} 4
c_seconds_sum{route=\"/x\"} 7.25
c_seconds_count{route=\"/x\"} 4
# HELP d_seconds A time.
# TYPE d_seconds gauge
d_seconds 1.5
";
        assert_eq!(write(&families), expected);
    }
}
