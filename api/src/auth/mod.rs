//! Authentication and authorisation: the key or the session, its source address, its rate, and its
//! permissions.

mod acting;
mod address;
mod api_key;
mod attempts;
mod caller;
mod credential;
mod key_form;
mod known;
mod own_extensions;
mod rate_limit;
mod standing;
mod token;

pub(crate) use acting::act;
pub(crate) use address::{client_address, is_client_known};
pub(crate) use attempts::{Attempts, LoginRefusal};
pub(crate) use caller::{Caller, Client, charge, identify, identity};
pub(crate) use known::KnownTokens;
pub(crate) use own_extensions::own_extensions;
pub(crate) use rate_limit::RateLimits;
pub(crate) use standing::{Standing, Still};
pub use token::TokenKey;
