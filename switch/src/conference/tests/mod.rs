//! Tests of the rooms by their inputs and outputs.

mod channels;
mod claiming;
mod confirming;
mod controlling;
mod dialling;
mod entering;
mod invites;
mod laws;
mod moderating;
mod naming;
mod pin_attempts;
mod playing;
mod races;
pub(crate) mod reader;
mod script;
mod sitting;
mod world;

pub(super) use world::any_instant;
