//! Parked calls: a party waits with music in a numbered slot of its organisation until an extension picks it up.

use std::ops::RangeInclusive;

use serde::Serialize;

use crate::ids::{CallId, ExtensionId, LegId};
use crate::time::Timestamp;

/// Parks the party that a leg talks to, and hangs up the leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParkOrder {
    /// The call.
    pub call: CallId,
    /// The leg that parks; by default the phone of the extension that the call belongs to.
    pub leg: Option<LegId>,
    /// The slot; by default the lowest free one.
    pub slot: Option<u16>,
    /// After how many seconds the party is returned to the extension that parked it.
    pub seconds: u32,
}

/// Connects a waiting call with an extension, whose phones are called: the parked party, or the caller of a call that rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickUpOrder {
    /// The call.
    pub call: CallId,
    /// The extension.
    pub by: ExtensionId,
}

/// The slot that the party of a call waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ParkedIn {
    /// The slot, a number of the organisation.
    #[cfg_attr(feature = "openapi", schema(value_type = i32, minimum = 1, maximum = 99))]
    pub slot: u16,
    /// The extension that parked it.
    pub by: ExtensionId,
    /// When it is returned to that extension.
    pub until: Timestamp,
}

/// The usual time of parking, in seconds.
pub const PARK_SECONDS: u32 = 300;
/// The slots of an organisation.
pub const SLOTS: RangeInclusive<u16> = 1..=99;
