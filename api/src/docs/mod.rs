//! The reference: one page for people, generated from the API document when the engine starts.
//!
//! It has no script, no image, no font and no external request: it works with the strictest content security
//! policy, without a network, and in a browser that runs no scripts.

pub(crate) mod examples;
mod html;
mod operation;
mod page;
mod rules;
mod schema;

pub(crate) use page::page;

/// The page's one stylesheet.
pub(crate) const STYLE: &str = include_str!("style.css");
