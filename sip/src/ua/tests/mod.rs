//! Ladders of the user agent, by theme.

mod calls;
mod notes;
mod session;
mod within;
