//! Ten simulated minutes of rooms: phones that behave, and phones that vanish.

mod ears;
mod soak;
mod storm;
