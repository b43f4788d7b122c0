//! Searches of texts in the call log, by blocks.
//!
//! A block contains the searchable texts of up to some thousand records of one organisation, in one row. A search
//! reads the blocks of its organisation and searches all of them: its time depends only on the number of records, not
//! on how many of them match, and every substring is found exactly, however short. Blocks that were read stay in
//! memory (`cache.rs`), and so do the matches of the latest searches (`searches.rs`); blocks never change.
//!
//! `write.rs` adds a block in each transaction that stores records, and merges small ones. `fill.rs` creates the
//! blocks of records that were stored before blocks existed. A search uses the blocks only if they contain as many
//! records as the organisation has; otherwise the records themselves are read.
//!
//! An index of trigrams (`pg_trgm`, FTS5) is not sufficient: for the total of a frequent text it has to visit every
//! match, texts below three characters are not in it, and the PostgreSQL extension requires a privilege of its own.

mod block;
mod cache;
mod fill;
mod find;
mod packing;
mod searches;
mod write;

pub(super) use block::Entry;
pub(super) use cache::TextCache;
pub use fill::Filled;
pub(super) use find::{Wanted, find};
pub(super) use write::{Unmerged, add_blocks};
