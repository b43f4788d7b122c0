//! The consequences of a broken, full or slow disk, a power cut, a jump of the clock and a killed process.

mod crash;
mod disk;
mod journal;
mod power_loss;
mod registrations;
