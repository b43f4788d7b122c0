//! Organisations, extensions, numbers and trunks as they are managed one by one; what apply files declare is
//! beside this room.

mod extensions;
mod numbers;
mod organisations;
mod trunks;

pub use extensions::MakeHa1;
pub(super) use extensions::no_organisation;
