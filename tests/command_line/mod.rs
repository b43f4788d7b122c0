//! The program from a shell: its output, its stream, and its exit status.

mod analyze;
mod book;
mod captures;
mod check;
mod documents;
mod excerpts;
mod phone;
mod self_test;
mod top;
mod usage;
