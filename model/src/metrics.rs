//! What the engine can be asked for while it runs: counts, gauges and times, in the shape of Prometheus.

use crate::ports::PortFuture;

/// One metric with all its label sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name, unit last: `sidetone_rtp_received_bytes_total`.
    pub name: &'static str,
    /// What it says, one sentence.
    pub help: &'static str,
    /// How it may be read.
    pub kind: Kind,
    /// Its values.
    pub samples: Vec<Sample>,
}

/// How a metric may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It counts by size.
    Histogram,
}

/// One value of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// What it is the value of; names and values of closed, small sets.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

/// The value of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// How many times something took at most so long.
    Histogram {
        /// The upper bounds of the buckets and how many are within each, those of the smaller ones included.
        buckets: Vec<(u64, u64)>,
        /// How many there are in all.
        count: u64,
        /// The sum of all.
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

    /// The metric with its one value.
    #[must_use]
    pub fn is(self, number: u64) -> Self {
        self.with([], number)
    }

    /// The metric with one more value.
    #[must_use]
    pub fn with<const N: usize>(mut self, labels: [(&'static str, &str); N], number: u64) -> Self {
        let labels = labels.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
        self.samples.push(Sample { labels, value: Value::Number(number) });
        self
    }
}

/// Who knows the engine's metrics.
pub trait Metrics: Send + Sync {
    /// All of them now. Read from counters that are there anyway: asking costs who is asked nothing.
    fn families(&self) -> PortFuture<'_, Vec<Family>>;
}
