//! Audio as samples: clips in memory and the files that they come from.

pub mod clip;
mod convert;
pub mod wav;
