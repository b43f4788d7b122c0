//! The number and duration of requests, by route, method and class of status.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use parking_lot::Mutex;
use sidetone_model::metrics::{Family, Kind, Sample, Value};

use crate::server::ServerCounters;

/// The counters of the API.
///
/// *Bounds*: routes are templates of the router, methods and classes closed sets.
#[derive(Debug, Default)]
pub(crate) struct HttpMetrics {
    requests: Mutex<BTreeMap<Key, Latencies>>,
    panics: AtomicU64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    route: String,
    method: &'static str,
    status: &'static str,
}

#[derive(Debug, Clone, Default)]
struct Latencies {
    /// Requests with a duration up to the bound with the same index in [`BOUNDS_US`] and above the previous
    /// bound.
    within: [u64; BOUNDS_US.len()],
    count: u64,
    sum_us: u64,
}

impl HttpMetrics {
    /// Counts an answered request. `route` is the template of its path, `None` if no route matches.
    pub(crate) fn answered(&self, route: Option<&str>, method: &Method, status: StatusCode, took: Duration) {
        let key = Key {
            route: route.unwrap_or("unmatched").to_owned(),
            method: method_label(method),
            status: class(status),
        };
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let mut requests = self.requests.lock();
        let latencies = requests.entry(key).or_default();
        latencies.count += 1;
        latencies.sum_us = latencies.sum_us.saturating_add(took_us);
        let place = BOUNDS_US.iter().position(|bound| took_us <= *bound);
        if let Some(within) = place.and_then(|place| latencies.within.get_mut(place)) {
            *within += 1;
        }
    }

    /// Counts a head that never became a request.
    pub(crate) fn refused(&self, status: StatusCode) {
        self.answered(None, &Method::from_bytes(b"REFUSED").unwrap_or_default(), status, Duration::ZERO);
    }

    /// Counts a handler that panicked.
    pub(crate) fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Handlers that panicked.
    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Requests and connections.
    pub(super) fn families(&self, server: &ServerCounters) -> Vec<Family> {
        let samples = self.requests.lock().iter().map(|(key, latencies)| sample(key, latencies)).collect();
        let mut refused = Family::counter(
            "sidetone_http_connections_refused_total",
            "Connections refused because there were too many, in all or of their address.",
        );
        for (reason, count) in server.refused_total() {
            refused = refused.with([("reason", reason)], count);
        }
        let mut closed = Family::counter(
            "sidetone_http_connections_closed_total",
            "Connections closed because of a timeout, by kind.",
        );
        for (reason, count) in server.closed_total() {
            closed = closed.with([("reason", reason)], count);
        }
        vec![
            Family {
                name: "sidetone_http_request_duration_seconds",
                help: "How long requests took from their head to the head of their answer.",
                kind: Kind::Histogram,
                samples,
            },
            Family::gauge("sidetone_http_connections", "HTTP connections open now.").is(server.open()),
            Family::counter("sidetone_http_connections_accepted_total", "HTTP connections accepted.")
                .is(server.accepted_total()),
            refused,
            closed,
            Family::counter(
                "sidetone_http_accept_errors_total",
                "Times that accepting a connection failed for lack of descriptors or memory.",
            )
            .is(server.accept_errors_total()),
        ]
    }
}

fn sample(key: &Key, latencies: &Latencies) -> Sample {
    let mut within = 0;
    let buckets = BOUNDS_US.iter().zip(latencies.within).map(|(bound, count)| {
        within += count;
        (*bound, within)
    });
    let buckets = buckets.collect();
    Sample {
        labels: vec![
            ("route", key.route.clone()),
            ("method", key.method.to_owned()),
            ("status", key.status.to_owned()),
        ],
        value: Value::Histogram { buckets, count: latencies.count, sum_us: latencies.sum_us },
    }
}

/// The method's name if it is a standard one: a client may send any text.
pub(crate) fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::DELETE => "DELETE",
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        Method::POST => "POST",
        Method::PUT => "PUT",
        _ => "other",
    }
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        100..=199 => "1xx",
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        _ => "5xx",
    }
}

/// Upper bounds of the buckets: the target for a page of records is 50 ms.
const BOUNDS_US: [u64; 11] =
    [1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_in_its_bucket_and_in_all_above() {
        let metrics = HttpMetrics::default();
        for micros in [500, 1_000, 30_000, 9_000_000] {
            let took = Duration::from_micros(micros);
            metrics.answered(Some("/api/v1/cdrs"), &Method::GET, StatusCode::OK, took);
        }
        metrics.answered(None, &Method::from_bytes(b"BREW").unwrap(), StatusCode::NOT_FOUND, Duration::ZERO);
        let families = metrics.families(&ServerCounters::default());
        let [own, unknown] = &families[0].samples[..] else { panic!("{families:?}") };
        let Value::Histogram { buckets, count, sum_us } = &own.value else { panic!("{own:?}") };
        assert_eq!((buckets[0], buckets[5], buckets[10]), ((1_000, 2), (50_000, 3), (5_000_000, 3)));
        assert_eq!((*count, *sum_us), (4, 9_031_500));
        let labels: Vec<&str> = unknown.labels.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(labels, ["unmatched", "other", "4xx"]);
    }
}
