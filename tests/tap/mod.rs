//! Passive capture of other systems' calls: they are recorded once, on both databases, as by their own switch.

mod apart;
mod hangup;
mod interfaces;
mod live;
mod written;
