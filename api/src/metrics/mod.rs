//! `/metrics`: the counters of the engine and of the API for Prometheus.
//!
//! `http` counts requests, `text` writes the exposition format, `scrape` is the route: only for this host and
//! the networks of `[http] metrics_allow`.

mod http;
pub(crate) mod scrape;
mod text;

pub(crate) use http::{HttpMetrics, method_label};
