//! Reads the body of a request: strictly, completely before any change is made, and with every wrong field
//! reported.
//!
//! A body is declared once, for the reader and for the document:
//!
//! ```ignore
//! body! {
//!     /// A new thing.
//!     pub(crate) struct NewThingBody {
//!         /// Its name.
//!         #[schema(min_length = 1, max_length = 100)]
//!         name: String = required(parsed(rules::name)),
//!         /// Its team.
//!         #[schema(value_type = Option<String>, format = Uuid, extensions(("x-nullable" = json!(true))))]
//!         team_id: Option<Option<TeamId>> = nullable(Fields::uuid), // omitted, null or an id
//!     }
//!     ignores &["id", "created_at", "updated_at"]; // so that GET → PATCH works
//! }
//! ```
//!
//! A handler takes [`Body`] as its last argument, checks the caller's permissions, and then reads:
//! `body.read(NewThingBody::read)?`.
//!
//! A value to be checked against the stored data is declared with `checked` or `id_of`, and the body is read with
//! [`Body::read_new`] or [`Body::read_change`]. The answer reports it together with fields that are wrong in
//! themselves.
//!
//! Problems are collected and reported in the order of the request; a `None` always has a problem, or means
//! "left out". Nothing is parsed before the handler reads, so a caller without permission gets 403 and not
//! the problems of its JSON.

mod checked;
pub(crate) mod declare;
mod extract;
mod fields;
mod sound;

pub(crate) use declare::body;
pub(crate) use extract::{Body, MERGE_PATCH, NoBody, OpenBody};
pub(crate) use fields::Fields;
pub(crate) use sound::Sound;
