//! Users: accounts, authentication, management and declaration.

mod accounts;
mod declare;
mod manage;
mod rows;

pub use declare::UserRow;
