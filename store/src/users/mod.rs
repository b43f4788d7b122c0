//! Users: who they are, how they are let in, how they are managed and declared.

mod accounts;
mod declare;
mod manage;

pub use declare::UserRow;
