//! Users: accounts, authentication, management and declaration.

mod accounts;
mod declare;
mod manage;

pub use declare::UserRow;
