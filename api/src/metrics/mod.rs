//! `/metrics`: what the engine and the HTTP face count, as Prometheus reads it.
//!
//! `http` counts requests, `text` writes the exposition format, `scrape` is the route: for this host and the
//! networks of `[http] metrics_allow` alone.

mod http;
pub(crate) mod scrape;
mod text;

pub(crate) use http::{HttpMetrics, method_label};
