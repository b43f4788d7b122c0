//! Why a call was not answered, or a registration not accepted: the signalling, its meaning, and advice.
//!
//! All facts come from messages or counters; causes beyond these are unknown.

mod cause;
mod outcome;
mod q850;
mod status;
mod words;

pub use cause::{of_calling_party, of_cause, of_record};
pub use outcome::{Failure, FailureKind, Reason};
pub use status::{Request, known, phrase};
