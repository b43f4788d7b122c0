//! Who asks: the key or the session, the address it is used from, how often, and what it may do.

mod address;
mod api_key;
mod attempts;
mod caller;
mod credential;
mod key_form;
mod rate_limit;
mod standing;
mod token;

pub(crate) use address::client_address;
pub(crate) use attempts::{Attempts, LoginRefusal};
pub(crate) use caller::{Caller, Client, identify, identity};
pub(crate) use rate_limit::RateLimits;
pub(crate) use standing::{Standing, Still};
pub use token::TokenKey;
