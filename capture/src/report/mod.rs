//! The output of an analysis for people, spreadsheets and programs: one HTML page, rows of CSV, and JSON;
//! pure.
//!
//! The page is one file without external requests. What it says of a call or a stream is written by the crate `report`,
//! as the panel's pages of calls are.

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
