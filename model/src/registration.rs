//! Registrations of phones as readers see them, and the port that returns them.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::access::Scope;
use crate::call::words;
use crate::ids::{ExtensionId, OrganisationId, TeamId};
use crate::page::{Page, Window};
use crate::port_future::PortFuture;
use crate::quality::Hundredths;
use crate::time::Timestamp;

words! {
    /// Whether a registered phone answers the switch's probes (OPTIONS).
    RegistrationState {
        /// It answered the last probe.
        Reachable = "reachable",
        /// No probe has been answered yet, or none is sent to it.
        Unknown = "unknown",
        /// It does not answer: it is not called until it answers or registers again.
        Unreachable = "unreachable",
    }
}

/// A phone that is registered at an extension. An extension with several phones has a registration of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RegistrationRecord {
    /// The extension.
    pub extension_id: ExtensionId,
    /// The extension's number.
    pub number: String,
    /// The extension's name; may be empty.
    pub name: String,
    /// The extension's organisation.
    pub organisation_id: OrganisationId,
    /// The extension's team; null for none.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub team_id: Option<TeamId>,
    /// The address that the phone registered.
    pub contact: String,
    /// The address and port from which the registration came. Requests to the phone are sent there.
    #[cfg_attr(feature = "openapi", schema(example = "192.0.2.20:5060"))]
    pub source: String,
    /// The transport of SIP: `udp`, `tcp`, `tls`, `ws` or `wss`.
    #[cfg_attr(feature = "openapi", schema(pattern = "^(tcp|tls|udp|ws|wss)$"))]
    pub transport: String,
    /// The phone's User-Agent header; null if it sent none.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub user_agent: Option<String>,
    /// The phone's `+sip.instance` (RFC 5626), which stays the same when its address changes; null if it sent none.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub instance: Option<String>,
    /// Whether it answers probes.
    pub state: RegistrationState,
    /// Milliseconds from the last probe that it answered to the answer; null before.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub round_trip_ms: Option<Hundredths>,
    /// When the phone registered last; a phone repeats its registration.
    pub registered_at: Timestamp,
    /// When the registration ends unless the phone repeats it.
    pub expires_at: Timestamp,
}

/// A query of registrations; every given condition must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistrationQuery {
    /// Registrations of this organisation.
    pub organisation_id: Option<OrganisationId>,
    /// Registrations of this extension.
    pub extension_id: Option<ExtensionId>,
    /// The window.
    pub window: Window,
}

/// The bindings of an extension in the form that survives a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptExtension {
    /// The extension.
    pub extension_id: ExtensionId,
    /// Its address of record.
    pub aor: String,
    /// A digest of the credential that created the bindings.
    pub credential: String,
    /// The bindings; empty if the last one was removed.
    pub bindings: Vec<KeptBinding>,
}

/// A binding in the form that survives a restart; only over UDP, because a connection ends with the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptBinding {
    /// The contact, as a URI.
    pub contact: String,
    /// The index of our listening socket.
    pub listener: u32,
    /// The address from which it was registered.
    pub remote: SocketAddr,
    /// The Path header's entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// Its preference in thousandths.
    pub q_permille: u16,
    /// The `+sip.instance`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The `reg-id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reg_id: Option<u32>,
    /// Whether the device supports ICE.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_ice: bool,
    /// The User-Agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// The Call-ID of the last REGISTER.
    pub call_id: String,
    /// The CSeq of the last REGISTER.
    pub cseq: u32,
    /// The time of the last refresh.
    pub registered_at: Timestamp,
    /// The expiry time.
    pub expires_at: Timestamp,
}

/// The registrations of a running switch.
pub trait PhoneRegistrations: Send + Sync {
    /// The registrations inside `scope`, by number.
    fn list(&self, scope: Scope, query: RegistrationQuery) -> PortFuture<'_, Page<RegistrationRecord>>;
}
