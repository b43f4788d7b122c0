//! The screens of the terminal: the live view of a switch (`sidetone top`) and the browser of a capture
//! (`sidetone analyze -i`).
//!
//! Two state machines without I/O, [`Top`] and [`Browse`], take keys and responses and return a [`Screen`]: texts and
//! their tones. [`draw()`] draws a screen on a terminal, [`plain()`] writes one as text for programs. The caller
//! handles terminals, HTTP and captures. Text from outside this program (names, devices, messages) enters a screen
//! only through [`clean()`], so that no escape sequence reaches the terminal.

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
