//! One call, live or captured. What SDP settled becomes a media description ([`media_plan`]), the report of a media
//! session becomes what is stored, shown and printed of a leg ([`quality`]), and both legs become the call record
//! ([`record`]). Pure: no I/O, no clock.

pub mod media_plan;
pub mod quality;
pub mod quality_rtcp;
pub mod record;
