//! Organisations.

mod declare;
mod manage;
mod rows;

pub use declare::OrganisationRow;
