//! Ladder tests of the user agent, by topic.

mod calls;
mod notes;
mod session;
mod within;
