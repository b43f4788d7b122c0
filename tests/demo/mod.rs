//! `sidetone demo` as a process.

mod verdicts;
