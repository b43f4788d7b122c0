//! The rooms, told what happens and read as they answer.

mod entering;
mod guard;
mod invites;
mod laws;
mod races;
pub(crate) mod reader;
mod script;
mod sitting;
mod world;

pub(super) use world::any_instant;
