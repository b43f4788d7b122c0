//! The output of an analysis for people, spreadsheets and programs: one HTML page, rows of CSV, and JSON. Without I/O.
//!
//! The page is one file without external requests. The crate `report` writes the description of each call and stream,
//! as for the panel's call pages.

mod anchor;
mod call;
mod contents;
mod csv;
mod facts;
mod file;
mod json;
mod layout;
mod page;
mod registrations;
mod row;
mod serializer;
mod stream;

pub use csv::Csv;
pub use json::Json;
pub use page::Page;

#[cfg(test)]
mod tests;
