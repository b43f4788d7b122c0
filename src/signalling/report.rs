//! The driver's reports about SIP: messages with their calls, and the ends of calls.

use bytes::Bytes;
use sidetone_model::ids::{CallId, OrganisationId};
use sidetone_model::media_quality::CallQuality;
use sidetone_model::signalling::SipDirection;
use sidetone_model::time::Timestamp;
use sidetone_sip::flow::Flow;

/// A call and the organisation that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedCall {
    /// The call.
    pub call: CallId,
    /// Its organisation.
    pub organisation: OrganisationId,
}

/// A report about the SIP messages of a call.
#[derive(Debug)]
pub(super) enum Report {
    /// The call has ended; only the last messages of its dialogs may follow.
    Ended(Ended),
    /// A message was received or sent.
    Heard(Heard),
}

/// The end of a call.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) of: OwnedCall,
    /// Its figures, if they are exported.
    pub(super) quality: Option<Box<CallQuality>>,
}

/// A message that was received or sent.
#[derive(Debug)]
pub(super) struct Heard {
    /// The call that it belongs to; `None` only for messages that are only exported.
    pub(super) call: Option<OwnedCall>,
    pub(super) at: Timestamp,
    pub(super) flow: Flow,
    pub(super) direction: SipDirection,
    pub(super) bytes: Bytes,
    /// Whether it is reported for the second time, after its call was found.
    pub(super) is_repeated: bool,
}
