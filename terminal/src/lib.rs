//! The screens of the terminal: the live view of a switch (`sidetone top`) and the browser of a capture
//! (`sidetone analyze -i`).
//!
//! Two machines without I/O, [`Top`] and [`Browse`], take keys and answers and give a [`Screen`]: texts and their tones.
//! [`draw()`] puts a screen on a terminal, [`plain()`] writes one for programs. Terminals, HTTP and captures are with the
//! caller. Texts of others (names, devices, messages) enter a screen through [`clean()`] alone, so that no escape sequence
//! reaches the terminal.

mod asks;
mod browse;
mod call_page;
mod calls;
mod clean;
mod draw;
mod json;
mod key;
mod ladder;
mod list;
mod plain;
mod registrations;
mod rooms;
mod screen;
mod top;
#[cfg(test)]
mod top_tests;
mod trunks;

pub use asks::{Failure, Fetch};
pub use browse::{Browse, BrowseOutput};
pub use call_page::{CallFacts, call_page};
pub use clean::clean;
pub use draw::draw;
pub use key::Key;
pub use ladder::{LadderMessage, ladder_lines};
pub use list::{Badness, Row};
pub use plain::plain;
pub use screen::{Body, Column, Line, ListBody, Screen, Tone, Width};
pub use top::{Input, Output, Top};
