//! Who asks: the key's text, the address it is used from, how often, and what it may do.

mod address;
mod api_key;
mod caller;
mod rate_limit;

pub(crate) use caller::{Caller, identify, identity};
pub(crate) use rate_limit::RateLimits;
