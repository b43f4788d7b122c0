//! The state of a trunk at a running switch, and the port that returns it.

use serde::Serialize;

use crate::call::words;
use crate::ids::TrunkId;
use crate::port_future::PortFuture;
use crate::quality::Hundredths;
use crate::time::Timestamp;

words! {
    /// Whether the switch is registered with a carrier.
    TrunkRegistrationState {
        /// The last attempt failed, and the next one waits.
        Failed = "failed",
        /// It is registered.
        Registered = "registered",
        /// The first registration is under way.
        Registering = "registering",
    }
}

words! {
    /// Whether an address of a carrier answers OPTIONS.
    TrunkAddressState {
        /// It answered the last one.
        Reachable = "reachable",
        /// None has been answered yet, or none is sent.
        Unknown = "unknown",
        /// It did not answer the last one.
        Unreachable = "unreachable",
    }
}

/// The state of a trunk at the node that is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TrunkStatus {
    /// The trunk.
    pub trunk_id: TrunkId,
    /// Our registration with the carrier; null when the trunk does not register.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub registration: Option<TrunkRegistration>,
    /// Live calls over the trunk, in both directions.
    pub calls: u64,
    /// The carrier's addresses that are known now, in the order in which its servers are configured.
    pub addresses: Vec<TrunkAddressStatus>,
    /// The last refusals of the carrier, newest first, at most 20. Refusals of the called party, such as 486, are not among
    /// them.
    pub refusals: Vec<TrunkRefusal>,
}

/// Our registration with a carrier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TrunkRegistration {
    /// Its state.
    #[cfg_attr(feature = "openapi", schema(inline))]
    pub state: TrunkRegistrationState,
    /// The address where it is registered; null when it is not.
    #[cfg_attr(feature = "openapi", schema(required, example = "192.0.2.1:5060"))]
    pub address: Option<String>,
    /// When it ends unless it is repeated; null when it is not registered.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub expires_at: Option<Timestamp>,
}

/// An address of a carrier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TrunkAddressStatus {
    /// The server as it is configured.
    #[cfg_attr(feature = "openapi", schema(example = "sip:carrier.example"))]
    pub server: String,
    /// One of its addresses.
    #[cfg_attr(feature = "openapi", schema(example = "192.0.2.1:5060"))]
    pub address: String,
    /// Whether it answers OPTIONS, which are sent at the interval `qualify_seconds` of the trunk.
    #[cfg_attr(feature = "openapi", schema(inline))]
    pub state: TrunkAddressState,
    /// Milliseconds from the last OPTIONS that it answered to the answer; null before.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub round_trip_ms: Option<Hundredths>,
    /// When the result of the last OPTIONS was known; null before.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub checked_at: Option<Timestamp>,
    /// Live outbound calls that it has.
    pub outbound_calls: u64,
}

/// A refused request to a carrier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TrunkRefusal {
    /// When.
    pub at: Timestamp,
    /// The address that was asked.
    #[cfg_attr(feature = "openapi", schema(example = "192.0.2.1:5060"))]
    pub address: String,
    /// `INVITE` or `REGISTER`.
    pub method: String,
    /// The status of the response; null when none came.
    #[cfg_attr(feature = "openapi", schema(required, minimum = 300, maximum = 699))]
    pub status: Option<u16>,
    /// The reason phrase of the response.
    pub reason: String,
}

/// The trunks of a running switch.
pub trait TrunkStatuses: Send + Sync {
    /// The state of a trunk of any organisation; `None` until the switch has read it from the directory.
    fn find(&self, trunk: TrunkId) -> PortFuture<'_, Option<TrunkStatus>>;
}
