//! The subcommands, one file each: its arguments and what it does.

pub mod apply;
