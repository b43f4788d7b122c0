//! Phone numbers and their destinations.

mod declare;
mod manage;
mod rows;

pub use declare::NumberRow;
pub(super) use rows::destination;
