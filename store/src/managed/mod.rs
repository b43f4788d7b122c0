//! Organisations, extensions, numbers and trunks as the API manages them one by one; what apply files declare
//! is in the parent module.

mod extensions;
mod numbers;
mod organisations;
mod trunks;

pub use extensions::MakeHa1;
pub(super) use extensions::no_organisation;
