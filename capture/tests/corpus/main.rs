//! Whole captures: the golden ones, foreign ones, and one call in every format and encapsulation.

mod captures;
mod captures_rtcp;
mod golden;
mod wraps;
