//! `Idempotency-Key`: a request that is sent again because its answer was lost is carried out once.
//!
//! `key` reads the header, `layer` wraps the routes, `seal` hides what is kept from everybody but the caller.
//! What was done and what was answered are stored in one transaction, see
//! [`Idempotency`](sidetone_model::idempotency::Idempotency).

mod key;
mod layer;
mod seal;

pub(crate) use layer::once;
