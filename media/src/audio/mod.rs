//! Audio as samples, independent of the codec: clips in memory, WAV files, levels, sample rates, and
//! concealment of lost parts.

pub mod clip;
pub(crate) mod conceal;
mod convert;
pub mod level;
pub mod resample;
pub mod wav;
