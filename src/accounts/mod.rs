//! Authentication and secrets: passwords, keys, and the users that administrators manage.
//!
//! It connects the API, which uses ports, with the store, which contains hashes.

pub mod hash;
mod key_text;
mod passwords;
mod service;

pub use key_text::{generate as generate_key, stored as stored_key};
pub use passwords::Passwords;
pub use service::People;
