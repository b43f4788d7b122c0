//! The engine of Sidetone: the rooms that the binary composes.

pub mod accounts;
pub mod app;
pub mod call_info;
pub mod call_news;
pub mod capture;
pub mod cdr;
pub mod cli;
pub mod config;
pub mod demo;
pub mod dns;
pub mod events;
pub mod fields;
pub mod log;
pub mod media_plan;
pub mod metrics;
pub mod notes;
pub mod outbound_http;
pub mod phone;
pub mod process;
pub mod provision;
pub mod rating;
pub mod routing;
pub mod store;
pub mod sweep;
pub mod switch;
pub mod watch;
