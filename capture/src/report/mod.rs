//! The output of an analysis for people, spreadsheets and programs: one HTML page, rows of CSV, and JSON;
//! pure.
//!
//! The page is one file without external requests. All text from a capture is escaped (`markup`), and the
//! page's own policy forbids every script and style except the two it contains.

mod anchor;
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
mod row;
mod rules;
mod serializer;
mod stream;
mod timeline;

pub use csv::Csv;
pub use json::Json;
pub use page::Page;

#[cfg(test)]
mod tests;
