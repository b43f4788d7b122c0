//! Audio as samples: clips in memory and the files that they come from, levels, other sample rates, and what stands in
//! for lost parts. Whatever codec it came from.

pub mod clip;
pub(crate) mod conceal;
mod convert;
pub mod level;
pub mod resample;
pub mod wav;
