//! RTCP: what a party reports about the stream it gets, and about the one it sends (RFC 3550 §6).
//!
//! [`Compound`] reads one datagram; sender and receiver reports and goodbyes are rtcp-types', extended reports
//! (RFC 3611) are read here, since VoIP metrics and statistics summaries are not in that crate. [`RtcpFold`]
//! folds what a leg hears and sends into an [`RtcpView`]: O(1) state, no allocation, and every number that
//! cannot be true is refused and counted. None of it feeds the figures of [`crate::stats`]: what a party says is
//! its own word, told beside what was measured.

mod bounds;
mod compound;
mod extended;
mod far_end;
mod fold;
mod heard;
mod reception;
mod round_trip;
mod sender;
mod view;
mod write;

pub use compound::{Block, Compound, Element, SenderInfo, Unreadable, is_plausible};
pub use extended::{Delay, Delays, Extended, XrBlock};
pub use fold::RtcpFold;
pub use heard::Heard;
pub use reception::Reception;
pub use view::{FarEnd, RoundTrip, RtcpView, SenderCount, StatisticsSummary, VoipMetrics};
pub use write::{CNAME_BYTES, REPORT_BYTES_MAX, ReportWriter};
