//! What an analysis says, for people and for spreadsheets: one HTML page, and rows of CSV; pure.
//!
//! The page is one file that asks nothing of any network. Whatever comes from a capture is escaped on its way in
//! (`markup`), and the page's own policy forbids every script and style but the two it brings.

mod call;
mod csv;
mod facts;
mod figures;
mod ladder;
mod markup;
mod page;
mod plots;
mod rules;
mod stream;
mod timeline;

pub use csv::csv;
pub use page::html;

#[cfg(test)]
mod tests;
