//! `Idempotency-Key`: a request that is repeated because its answer was lost is executed once.
//!
//! `key` reads the header, `layer` wraps the routes, `seal` encrypts the stored answer so that only the
//! caller can read it. The changes and the answer are stored in one transaction, see
//! [`Idempotency`](sidetone_model::idempotency::Idempotency).

mod key;
mod layer;
mod seal;

pub(crate) use layer::once;
