//! What an analysis says, for people, spreadsheets and programs: one HTML page, rows of CSV, and JSON; pure.
//!
//! The page is one file that asks nothing of any network. Whatever comes from a capture is escaped on its way in
//! (`markup`), and the page's own policy forbids every script and style but the two it brings.

mod call;
mod contents;
mod csv;
mod facts;
mod figures;
mod file;
mod json;
mod ladder;
mod layout;
mod markup;
mod page;
mod plots;
mod registrations;
mod rules;
mod serializer;
mod stream;
mod timeline;

pub use csv::Csv;
pub use json::Json;
pub use page::Page;

#[cfg(test)]
mod tests;
