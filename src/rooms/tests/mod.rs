//! The rooms, told what happens and read as they answer.

mod script;

pub(super) use script::any_instant;
