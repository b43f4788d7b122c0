//! The subcommands, one file each: its arguments and what it does.

pub mod analyze;
pub mod apply;
