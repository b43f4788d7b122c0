//! One call, live or captured. [`media_plan`] turns the negotiated SDP into a media description, [`quality`] turns the
//! report of a media session into the leg's quality as stored, shown and printed, and [`record`] builds the call record
//! from both legs. Pure: no I/O, no clock.

pub mod media_plan;
pub mod quality;
pub mod quality_rtcp;
pub mod record;
