//! Tests of the parts together: text in, text out.

mod parse;
mod rewrite;
