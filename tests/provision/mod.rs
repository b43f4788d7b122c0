//! Apply files end to end: refusals and their messages, the created resources, and the changes of a second run.

mod command;
mod contract;
mod declaration;
mod prices;
mod refused;
mod rooms;
mod spoken_names;
mod users;

use declaration::{ACME, declare, json, parse, refusals, with_store};
