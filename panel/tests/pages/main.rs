//! Every page with an API whose texts are all attacks, and with one that refuses every request.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod browser;
mod guarded;
mod hostile;
mod markup;
mod safe_texts;
