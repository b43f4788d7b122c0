//! A mix in simulated time: what each party hears is identified by the frequencies of tones.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may stop where it fails"
)]

mod clips;
mod heard;
mod keys;
mod laws;
mod loudness;
mod orders;
mod pauses;
mod room;
mod seams;
mod sounds;
mod ticks;
mod whisper;
