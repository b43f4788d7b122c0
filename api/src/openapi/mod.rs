//! The API document, OpenAPI 3.1: generated from the handlers' annotations, completed with what is common to
//! all of them.
//!
//! A handler declares its path, parameters, body and answers, and in `x-permission` the permission.
//! [`complete`] adds the text that is the same for all operations: the failures that follow from that, the
//! common headers, the security scheme. It also changes the schemas to match the answers: an optional field
//! is left out, never null.

mod complete;
mod edit;
mod failures;
#[expect(dead_code, reason = "the types describe the payloads, which other parts write")]
mod payloads;
mod schemas;
mod webhooks;
mod words;

pub(crate) use complete::complete;

/// The committed document, which `tests/openapi` compares with the generated one. A unit test that generated it would
/// compile every handler a second time.
#[cfg(test)]
pub(crate) fn committed() -> serde_json::Value {
    serde_json::from_str(include_str!("../../openapi.json")).unwrap()
}
