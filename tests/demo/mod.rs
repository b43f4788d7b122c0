//! `sidetone demo --once --json`: every call of the demo ends with its intended verdict.

mod verdicts;
