//! Why a call was not answered, or a registration not accepted: the signalling, its meaning, and what to do.
//!
//! Everything here was in a message, or was counted; what caused it beyond that is not known.

mod cause;
mod outcome;
mod q850;
mod status;
mod words;

pub use cause::{of_cause, of_record};
pub use outcome::{Failure, FailureKind, Reason};
pub use status::{Request, known, phrase};
