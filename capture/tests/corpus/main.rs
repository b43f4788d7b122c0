//! Whole captures: the golden ones, those of others, and one call in everything that captures are made of.

mod captures;
mod captures_rtcp;
mod golden;
mod wraps;
