//! SIP messages on the wire: a guard, an index, typed views and a writer (RFC 3261 §7, §20, §25).
//!
//! Bytes enter through [`parse_datagram`] or [`StreamParser`]. The guard applies its rules in a fixed order
//! and names each refusal by a [`Rejection`]; a refused request comes with the response for it. An accepted
//! one is a [`Message`]: one buffer with an index of header lines. Views such as [`Via`] and [`NameAddr`] are
//! created on request, and unchanged header lines are written back byte for byte.
//!
//! The meaning of a header for a transaction or a dialog is not decided here.

mod address;
mod build;
mod digest;
mod fields;
mod guard;
mod headers;
mod host;
mod index;
pub mod limits;
mod method;
mod multipart;
mod name;
mod params;
mod parse;
mod peek;
mod rejected;
mod rejection;
mod request;
mod response;
pub mod rsip;
mod scan;
mod status;
mod stream;
mod uri;
mod via;
mod views;

pub use self::address::{Contacts, NameAddr};
pub use self::build::{RequestBuilder, ResponseBuilder};
pub use self::digest::Digest;
pub use self::fields::{CSeq, Event, RAck, Reason, Replaces, SessionExpires};
pub use self::headers::{Header, Headers, InvalidValue};
pub use self::host::Host;
pub use self::method::Method;
pub use self::multipart::part;
pub use self::name::Name;
pub(crate) use self::params::write_quoted;
pub use self::params::{Param, Params};
pub use self::parse::{Datagram, Message, parse_datagram};
pub use self::peek::{Glance, Kind, glance};
pub use self::rejected::Rejected;
pub use self::rejection::{FieldError, Malformed, Rejection};
pub use self::request::Request;
pub use self::response::Response;
pub use self::scan::List;
pub use self::status::StatusCode;
pub use self::stream::{StreamEvent, StreamParser};
pub use self::uri::{Scheme, Uri};
pub(crate) use self::via::Hop;
pub use self::via::{Transport, Via};
