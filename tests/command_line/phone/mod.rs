//! `sidetone phone` driven by scripts: the program itself, against a complete engine.

mod calls;
mod errors;
mod handset;
mod notes;
