//! `sidetone phone` as a person's script sees it: the program itself, against a whole engine.

mod calls;
mod errors;
mod handset;
mod notes;
