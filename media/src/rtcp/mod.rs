//! RTCP: a party's reports about the stream it receives and the stream it sends (RFC 3550 §6).
//!
//! [`Compound`] reads one datagram. The crate rtcp-types reads sender and receiver reports and goodbyes;
//! extended reports (RFC 3611) are read here, because the crate has no VoIP metrics and statistics summaries.
//! [`RtcpFold`] combines what a leg receives and sends into an [`RtcpView`], with O(1) state and no
//! allocation; implausible numbers are rejected and counted. None of it affects the figures of
//! [`crate::stats`]: a party's reports are shown besides the measurements.

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
mod voip;
mod write;

pub use compound::{Block, Compound, Element, SenderInfo, Unreadable, is_plausible};
pub use extended::{Delay, Delays, Extended, XrBlock};
pub use fold::RtcpFold;
pub use heard::Heard;
pub use reception::Reception;
pub use view::{FarEnd, RoundTrip, RtcpView, SenderCount, StatisticsSummary, VoipMetrics};
pub use write::{CNAME_BYTES, ExtendedContent, REPORT_BYTES_MAX, ReportWriter, SummaryContent};
