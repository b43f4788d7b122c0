//! The metrics of a running engine: counters, gauges and times, as Prometheus defines them.

use crate::port_future::PortFuture;

/// One metric with all its label sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name, unit last: `sidetone_rtp_received_bytes_total`.
    pub name: &'static str,
    /// Its help text, one sentence.
    pub help: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its values.
    pub samples: Vec<Sample>,
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It counts values by size.
    Histogram,
}

/// One value of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its labels; names and values come from closed, small sets.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

/// The value of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The number of durations within each bound.
    Histogram {
        /// The upper bounds of the buckets with their cumulative counts.
        buckets: Vec<(u64, u64)>,
        /// The total count.
        count: u64,
        /// The sum of all durations.
        sum_us: u64,
    },
    /// A time, published in seconds.
    Micros(u64),
    /// A whole number.
    Number(u64),
}

impl Family {
    /// A counter without values yet.
    pub fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: Kind::Counter, samples: Vec::new() }
    }

    /// A gauge without values yet.
    pub fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind: Kind::Gauge, samples: Vec::new() }
    }

    /// Returns the metric with its only value.
    #[must_use]
    pub fn is(self, number: u64) -> Self {
        self.with([], number)
    }

    /// Returns the metric with one more value.
    #[must_use]
    pub fn with<const N: usize>(mut self, labels: [(&'static str, &str); N], number: u64) -> Self {
        let labels = labels.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
        self.samples.push(Sample { labels, value: Value::Number(number) });
        self
    }
}

/// Provides the engine's metrics.
pub trait Metrics: Send + Sync {
    /// Returns all current metrics. They are read from existing counters, so that metrics do not slow down
    /// the measured code.
    fn families(&self) -> PortFuture<'_, Vec<Family>>;
}
