//! Who is let in, where secrets are made and checked: passwords, keys, and the users that people manage.
//!
//! Between the HTTP face, which sees ports, and the store, which sees hashes.

pub mod hash;
mod key_text;
mod passwords;
mod service;

pub use key_text::{generate as generate_key, stored as stored_key};
pub use passwords::Passwords;
pub use service::People;
