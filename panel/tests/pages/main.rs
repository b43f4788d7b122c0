//! Every page over an API whose every text is an attack, and over one that refuses.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod browser;
mod guarded;
mod hostile;
mod markup;
mod safe_texts;
