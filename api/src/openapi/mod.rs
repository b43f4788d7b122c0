//! The API document, OpenAPI 3.1: made of the handlers' own annotations, completed with what is true of all
//! of them.
//!
//! A handler names its path, parameters, body and answers, and in `x-permission` what the caller needs.
//! [`complete`] adds what would be the same text everywhere: the failures that follow from that, the common
//! headers, the security scheme. It also turns the schemas into the ones that the answers have: an optional
//! field is left out, never null.

mod complete;
mod edit;
mod failures;
mod schemas;
mod words;

pub(crate) use complete::complete;
