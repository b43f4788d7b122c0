//! The reference: one page for people, written from the API document when the engine starts.
//!
//! No script, no picture, no font and no request elsewhere: it is read behind the strictest content security
//! policy, without a network, and by a browser that runs nothing.

mod examples;
mod html;
mod operation;
mod page;
mod rules;
mod schema;

pub(crate) use page::page;

/// The page's one stylesheet.
pub(crate) const STYLE: &str = include_str!("style.css");
