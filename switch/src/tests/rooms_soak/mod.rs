//! Ten simulated minutes of rooms: phones that behave, and phones that vanish.

mod soak;
mod storm;
