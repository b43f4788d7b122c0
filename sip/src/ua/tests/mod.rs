//! Ladder tests of the user agent, by topic.

mod calls;
mod notes;
mod reliable;
mod session;
mod updating;
mod within;
