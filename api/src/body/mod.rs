//! Reads the body of a request: strictly, completely before anything is done, and with every wrong field
//! reported.
//!
//! A handler takes [`Body`] as its last argument, checks the caller's permissions, and then reads:
//!
//! ```ignore
//! let new = body.read(|fields| {
//!     let name = fields.required_text("name", 1..=100);
//!     let team_id = fields.or_null("team_id", Fields::uuid); // omitted, null or an id
//!     let items = fields.items("items", 0..=100, |item| item.required("extension_id", Fields::uuid));
//!     fields.read_only(&["id", "created_at", "updated_at"]); // ignored, so that GET → PATCH works
//!     Some(NewThing { name: name?, team_id: team_id.flatten(), items: items.unwrap_or_default() })
//! })?;
//! ```
//!
//! Problems are collected and reported in the order of the request; a `None` always has a problem, or means
//! "left out". Nothing is parsed before the handler reads, so that a caller without permission gets that
//! answer, and not the problems of its JSON.

mod extract;
mod fields;
mod sound;

pub(crate) use extract::{Body, NoBody};
pub(crate) use fields::Fields;
pub(crate) use sound::Sound;
